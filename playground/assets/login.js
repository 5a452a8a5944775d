// The form for the user's own credentials.

import { forget, give, kept, known } from './api.js'
import { byId, make } from './dom.js'

export class Login {
  // changed is called when the credentials for the engine change.
  constructor (changed) {
    this.changed = changed
    byId('credentials').append(...form())
    byId('credentials').addEventListener('submit', event => {
      event.preventDefault()
      this.take()
    })
    byId('forget').addEventListener('click', () => {
      forget(this.engine.name)
      this.clear()
      this.open(false)
      byId('login-open').focus()
      this.changed()
    })
    byId('login-open').addEventListener('click', () => {
      this.open(byId('credentials').hidden)
      if (!byId('credentials').hidden) this.focus()
    })
    byId('way').addEventListener('change', () => this.choose())
  }

  get way () {
    return this.engine.credentials === 'key' ? 'key' : document.querySelector('input[name=way]:checked').value
  }

  // use sets the engine of the form.
  use (engine) {
    this.engine = engine
    byId('credentials-engine').textContent = engine.name
    byId('way').hidden = engine.credentials === 'key'
    byId('keep').checked = kept(engine.name)
    this.clear()
    this.choose()
    this.open(false)
  }

  choose () {
    const key = this.way === 'key'
    byId('key-field').hidden = !key
    byId('user-field').hidden = byId('password-field').hidden = key
  }

  clear () {
    for (const id of ['user', 'password', 'key']) byId(id).value = ''
  }

  open (wanted) {
    const given = known(this.engine.name) !== undefined
    byId('credentials').hidden = !wanted
    byId('login').hidden = this.engine.credentials === 'none'
    byId('login-open').setAttribute('aria-expanded', wanted)
    byId('forget-field').hidden = !given
    byId('login-state').textContent = given
      ? kept(this.engine.name)
        ? 'kept in this tab'
        : 'kept until you leave the page'
      : 'none given'
  }

  // ask shows the form because the engine wants credentials.
  ask () {
    this.open(true)
    this.focus()
  }

  focus () {
    byId(this.way === 'key' ? 'key' : 'user').focus()
  }

  take () {
    const value = id => byId(id).value
    const given = this.way === 'key' ? { key: value('key').trim() } : { user: value('user'), password: value('password') }
    if (!given.key && !given.user) return this.focus()
    give(this.engine.name, given, byId('keep').checked)
    this.clear()
    this.open(false)
    byId('query').focus()
    this.changed()
  }
}

const form = () => [
  make('h2', { id: 'credentials-title' }, 'Your credentials for ', make('span', { id: 'credentials-engine' })),
  make(
    'p',
    { class: 'note' },
    'They are sent with your searches to the engine, through the sidecar. The sidecar does not store them, and never uses its own instead.'
  ),
  make(
    'fieldset',
    { id: 'way', class: 'switch' },
    make('legend', { class: 'spoken' }, 'Log in with'),
    way('password', 'User and password', true),
    way('key', 'API key', false)
  ),
  make(
    'div',
    { class: 'row' },
    field('user', 'User', { autocomplete: 'username', autocapitalize: 'none', spellcheck: 'false' }),
    field('password', 'Password', { type: 'password', autocomplete: 'current-password' }),
    field('key', 'API key', { type: 'password', autocomplete: 'off', spellcheck: 'false' }),
    make('p', { class: 'field' }, make('button', { class: 'primary', type: 'submit' }, 'Use these')),
    make('p', { class: 'field', id: 'forget-field' }, make('button', { id: 'forget', type: 'button' }, 'Forget them'))
  ),
  make(
    'p',
    { class: 'tick' },
    make('input', { id: 'keep', type: 'checkbox' }),
    make('label', { for: 'keep' }, 'Keep them until this tab is closed (otherwise until you leave the page)')
  )
]

const way = (value, text, checked) =>
  make('label', null, make('input', { type: 'radio', name: 'way', value, checked }), make('span', null, text))

const field = (id, text, attributes) =>
  make(
    'p',
    { class: id === 'key' ? 'field grow' : 'field', id: id + '-field' },
    make('label', { for: id }, text),
    make('input', { id, ...attributes })
  )
