// What a page searches: an engine, one of its indices, and the user's credentials for the engine.

import { indices, known, Problem } from './api.js'
import { busy, byId, count, linked, make, options } from './dom.js'
import { Login } from './login.js'

export class Target {
  // chosen gets the names of the engine and the index. list is called to list the indices again, picked when the user picks an index.
  constructor (chosen, { list, picked }) {
    Object.assign(this, { chosen, list, picked, engines: [], indices: [], note: '', login: new Login(list) })
  }

  get engine () {
    return this.engines.find(({ name }) => name === this.chosen.engine)
  }

  // rule is the rule of the index, or undefined.
  get rule () {
    return this.engine?.rules[this.indices.find(({ name }) => name === this.chosen.index)?.rule ?? -1]
  }

  // pickEngine chooses an engine, or the first if none has this name.
  async pickEngine (name) {
    this.chosen.engine = this.engines.some(one => one.name === name) ? name : this.engines[0].name
    options(
      byId('engine'),
      this.engines.map(({ name, kind }) => ({ value: name, text: name === kind ? name : `${name} (${kind})` })),
      this.chosen.engine
    )
    byId('engine-field').hidden = this.engines.length < 2
    Object.assign(this, { indices: [], note: '' })
    this.showIndices(false)
    this.login.use(this.engine)
    await this.list()
  }

  // load requests the indices. If the chosen one is not among them, it chooses the first that has a rule, or ''. It returns false if the
  // engine wants credentials and the user has given none.
  async load (signal) {
    try {
      Object.assign(this, { note: '' }, await indices({ engine: this.chosen.engine }, signal))
    } catch (error) {
      if (!error.refused) throw error
      if (!known(this.chosen.engine)) return false
      this.showIndices(true)
      throw new Problem(
        error.status,
        error.message,
        `${error.hint} If these credentials may search but not list, type the name of an index.`
      )
    }
    const served = this.indices.filter(one => one.rule >= 0)
    const named = this.note && this.chosen.index // from the address; it may exist although it is not listed
    if (!named && !served.some(one => one.name === this.chosen.index)) this.chosen.index = served[0]?.name ?? ''
    this.showIndices(Boolean(this.note))
    return true
  }

  // showIndices offers the indices; if the user may not list them all, a name can be typed.
  showIndices (typed) {
    const element = typed
      ? make('input', {
          id: 'index',
          list: 'names',
          autocapitalize: 'none',
          spellcheck: 'false',
          value: this.chosen.index,
          'aria-describedby': 'index-says'
        })
      : make('select', { id: 'index', disabled: !this.indices.length })
    if (!typed) {
      options(
        element,
        this.indices.map(({ name, documents, rule }) => ({
          value: name,
          text: name + (rule < 0 ? ' (no rule)' : documents >= 0 ? ` (${count(documents)})` : ''),
          disabled: rule < 0
        })),
        this.chosen.index
      )
    }
    byId('names').replaceChildren(...this.indices.map(({ name }) => make('option', { value: name })))
    byId('index-says').textContent = this.note
    byId('index-says').hidden = !this.note
    element.addEventListener('change', () => {
      this.chosen.index = element.value
      this.picked()
    })
    byId('index').replaceWith(element)
  }

  // showError shows an error, and asks for credentials if the engine refuses those given. It returns the error's message.
  showError (error) {
    busy(false)
    const { message, hint } =
      error instanceof Problem ? error : new Problem(0, `The page made a mistake: ${error.message}`, 'Reload it.')
    const what = message.includes('\n') ? make('p', { class: 'lines' }, message) : make('p', null, make('strong', null, message))
    byId('problem').replaceChildren(what, hint ? make('p', null, linked(hint)) : '')
    byId('problem').hidden = false
    if (error.refused) this.login.ask()
    return message
  }
}
