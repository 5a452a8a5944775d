// The page: the user's choices, the requests and the results.

import { engines, known, search } from './api.js'
import { busy, byId, count, counted, make, options, two } from './dom.js'
import { fold, nearest, neighbours } from './fold.js'
import { least, listen as listenTo } from './histogram.js'
import { collapsedItem, engineItem } from './lists.js'
import { Pages } from './pager.js'
import { copy, showReply, showThreshold } from './panel.js'
import { isJSON, sought } from './query.js'
import { Target } from './target.js'

let most = 200 // hits that a reply has

const chosen = { engine: '', index: '', query: '', preset: '', threshold: null, window: null }
const view = { reply: null, open: new Set(), words: new Map(), jump }
let presets = []
let asking = new AbortController()

const pages = {
  engine: new Pages('engine', rank => engineItem(view, rank)),
  collapsed: new Pages('collapsed', place => collapsedItem(view, place))
}
const target = new Target(chosen, { list: () => list().catch(trouble), picked })

// ---- the address

function readAddress () {
  const hash = new URLSearchParams(location.hash.slice(1))
  const number = (name, from, to) => {
    const n = hash.has(name) ? Number(hash.get(name)) : NaN
    return n >= from && n <= to ? n : null
  }
  chosen.engine = hash.get('engine') ?? ''
  chosen.index = hash.get('index') ?? ''
  chosen.query = hash.get('q') ?? ''
  chosen.preset = presets.some(one => one.name === hash.get('preset')) ? hash.get('preset') : ''
  chosen.threshold = number('threshold', least, 1)
  chosen.window = Math.floor(number('window', 1, Infinity)) || null
}

function address () {
  const hash = new URLSearchParams({ engine: chosen.engine, index: chosen.index, q: chosen.query })
  if (view.reply) hash.set('threshold', view.threshold)
  if (chosen.preset) hash.set('preset', chosen.preset)
  if (chosen.window) hash.set('window', chosen.window)
  return '#' + hash
}

let shown = '' // the address of what is shown
let writing = 0 // the timer that will write it

// writeAddress sets the page's address to what it shows; add adds it to the browser's history.
function writeAddress (add) {
  clearTimeout(writing)
  writing = 0
  if (shown !== location.hash) history[add ? 'pushState' : 'replaceState'](null, '', shown)
}

// ---- choices

function showPresets () {
  const own = target.rule
  options(
    byId('preset'),
    [
      { value: '', text: 'as configured' },
      ...presets.map(({ name, threshold }) => {
        const why = own?.unfit[name]
        return { value: name, text: `${name}, ${threshold}${why ? `: ${why}` : ''}`, disabled: Boolean(why) }
      })
    ],
    chosen.preset
  )
}

const showWindow = () => {
  byId('window').value = chosen.window ?? view.reply?.rule.window ?? target.rule?.window ?? ''
  byId('window').max = view.reply?.rule.max_window ?? ''
}

// list requests the indices, and searches the chosen one.
async function list () {
  renew()
  clear('Listing the indices …')
  busy(true)
  if (!(await target.load(asking.signal))) return askForCredentials()
  showPresets()
  if (!chosen.index) {
    return clear(
      target.indices.length
        ? 'No rule matches any index here. Add one to indices in config.yaml, with the name or a pattern in match.'
        : 'This engine has no index yet.'
    )
  }
  await find()
}

function askForCredentials () {
  clear(`${chosen.engine} asks for credentials: give your own.`)
  target.login.ask()
}

// picked searches the index that the user has picked.
function picked () {
  Object.assign(chosen, { preset: '', threshold: null, window: null })
  showPresets()
  find(true).catch(trouble)
}

// ---- a search

function renew () {
  asking.abort()
  asking = new AbortController()
}

// find sends the chosen search and shows the result; add adds it to the browser's history.
async function find (add) {
  renew()
  const { signal } = asking
  cancelAnimationFrame(drawing)
  if (writing) writeAddress()
  showQuery(chosen.query)
  showWindow()
  byId('problem').hidden = true
  busy(true)
  if (!view.reply) byId('empty').textContent = 'Searching …'
  try {
    const reply = await search(question(), signal)
    Object.assign(view, { reply, near: neighbours(reply.hits, reply.pairs), sought: sought(chosen.query) })
    if (chosen.window) chosen.window = reply.rule.window // no more than the configuration allows
    view.open.clear()
    view.words.clear()
    pages.engine.page = pages.collapsed.page = 0
    showPresets()
    showWindow()
    refold()
    showReply(reply, most, agrees())
    writeAddress(add)
  } catch (error) {
    if (error.refused && !known(chosen.engine)) return askForCredentials()
    throw error
  } finally {
    if (!signal.aborted) busy(false)
  }
}

// showQuery puts a query into its box, and fits the box's height to it.
function showQuery (query) {
  const box = byId('query')
  if (box.value !== query) box.value = query
  box.style.height = 'auto'
  box.style.height = `${box.scrollHeight + box.offsetHeight - box.clientHeight}px`
  box.removeAttribute('aria-invalid')
  byId('query-says').hidden = !isJSON(query)
}

function question () {
  const asked = { engine: chosen.engine, index: chosen.index, query: chosen.query }
  if (chosen.window) asked.window = chosen.window
  if (chosen.preset) asked.preset = chosen.preset
  if (chosen.threshold) asked.threshold = chosen.threshold
  return asked
}

// trouble shows an error, unless it is of a request that was cancelled.
function trouble (error) {
  if (error.name === 'AbortError') return
  clear('')
  const [, line, column] = /line (\d+), column (\d+)/.exec(target.showError(error)) ?? []
  if (line && isJSON(chosen.query)) { // the place in the query
    const at = chosen.query.split('\n').slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, Number(column) - 1)
    byId('query').focus()
    byId('query').setSelectionRange(at, at + 1)
    byId('query').setAttribute('aria-invalid', true)
  }
}

// clear removes the results and says why there are none.
function clear (why) {
  view.reply = null
  busy(false)
  byId('problem').hidden = true
  byId('bench').hidden = true
  byId('empty').hidden = !why
  byId('empty').textContent = why
}

// ---- the results

// refold folds the hits again with the user's choices, and shows the result.
function refold () {
  const { reply, near } = view
  view.threshold = chosen.threshold ?? reply.rule.threshold
  shown = address()
  view.chosenWindow = chosen.window
  view.preset = chosen.preset
  const window = chosen.window ?? reply.rule.window
  view.best = nearest(near, window)
  view.folded = fold(reply.hits, near, {
    threshold: view.threshold,
    window,
    keep: reply.rule.keep,
    transitive: reply.rule.transitive
  })
  const found = reply.hits.length > 0
  byId('empty').hidden = found
  byId('bench').hidden = !found
  if (!found) {
    const wanted = isJSON(chosen.query) ? 'this search' : `“${chosen.query}”`
    byId('empty').textContent = chosen.query ? `The engine finds nothing for ${wanted} in ${chosen.index}. Leave the query empty to see all documents.` : `${chosen.index} is empty.`
    return
  }
  showThreshold(view, most)
  summarise()
  pages.engine.show(reply.hits.length)
  pages.collapsed.show(view.folded.shown.length)
}

// agrees reports whether the page shows what the sidecar answered; undefined if the sidecar did not collapse.
function agrees () {
  const { reply, folded } = view
  if (!/^collapsed(?!.*native)/.test(reply.sidecar.outcome)) return undefined
  return folded.shown.map(rank => reply.hits[rank].id).join('\n') === reply.sidecar.ids.join('\n')
}

let speaking
function summarise () {
  const { reply, folded } = view
  const gone = reply.hits.length - folded.shown.length
  const groups = folded.groups.filter(group => group.folded.length).length
  const hits = counted(reply.hits.length, 'hit')
  const highest = view.best.reduce((a, b) => Math.max(a, b), 0)
  byId('summary').replaceChildren(
    ...(gone
      ? [make('b', null, `${count(gone)} of ${hits} hidden`), ` in ${counted(groups, 'group')}, ${count(folded.shown.length)} shown.`]
      : [
          make('b', null, `None of ${hits} hidden`),
          highest >= least ? `: the greatest agreement is ${two(highest)}.` : reply.hits.length > 1 ? ': no two are alike.' : '.'
        ])
  )
  byId('engine-count').textContent = count(reply.hits.length)
  byId('collapsed-count').textContent = count(folded.shown.length)
  clearTimeout(speaking)
  speaking = setTimeout(() => {
    byId('said').textContent = `At ${two(view.threshold)}: ${byId('summary').textContent}`
  }, 500)
}

// jump shows a hit of the engine's list in the collapsed list.
function jump (rank) {
  const { folded } = view
  const group = folded.groups[folded.group[rank]]
  const isFolded = group.folded.includes(rank)
  document.querySelector('input[name=which][value=collapsed]').checked = true
  byId('lists').dataset.which = 'collapsed'
  if (isFolded) view.open.add(rank)
  pages.collapsed.turnTo(folded.shown.indexOf(group.representative))
  pages.collapsed.show(folded.shown.length)
  const item = byId('collapsed-list').querySelector(`[data-rank="${group.representative}"]`)
  const target = item.querySelector(isFolded ? `[data-version="${rank}"] summary` : 'summary')
  target.focus({ preventScroll: true })
  target.scrollIntoView({ block: 'center' })
}

// ---- what the user does

let drawing = 0
const later = () => {
  cancelAnimationFrame(drawing)
  drawing = requestAnimationFrame(() => view.reply && refold())
  clearTimeout(writing)
  writing = setTimeout(writeAddress, 300) // browsers limit how often the address may change
}

function setThreshold (value) {
  if (!(value >= least && value <= 1)) return
  chosen.threshold = value
  later()
}

// refuse says what values a field takes. The next valid change removes the message.
function refuse (field, says, what) {
  field.setAttribute('aria-invalid', true)
  byId(says).textContent = byId('said').textContent = what
}

// light highlights the members of a group in both lists.
function light (event) {
  const group = event.target.closest?.('[data-group]')?.dataset.group
  for (const item of document.querySelectorAll('[data-group]')) item.classList.toggle('lit', item.dataset.group === group)
}

function listen () {
  byId('ask').addEventListener('submit', event => {
    event.preventDefault()
    chosen.query = byId('query').value
    find(true).catch(trouble)
  })
  byId('engine').addEventListener('change', event => {
    Object.assign(chosen, { index: '', preset: '', threshold: null, window: null })
    target.pickEngine(event.target.value).catch(trouble)
  })
  byId('query').addEventListener('input', event => showQuery(event.target.value))
  byId('query').addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
    if (isJSON(event.target.value) && !event.ctrlKey && !event.metaKey) return
    event.preventDefault()
    byId('ask').requestSubmit()
  })
  byId('preset').addEventListener('change', event => {
    Object.assign(chosen, { preset: event.target.value, threshold: null, window: null })
    find(true).catch(trouble)
  })
  listenTo(setThreshold)
  byId('exactly').addEventListener('input', event => setThreshold(event.target.valueAsNumber))
  byId('exactly').addEventListener('change', ({ target: field }) => {
    if (field.valueAsNumber >= least && field.valueAsNumber <= 1) field.value = view.threshold
    else refuse(field, 'threshold-says', `Threshold: use a number from ${least} to 1.`)
  })
  byId('configured').addEventListener('click', () => {
    chosen.threshold = null
    later()
  })
  byId('window').addEventListener('input', event => {
    const window = Math.floor(event.target.valueAsNumber)
    if (!(window >= 1 && window <= (view.reply?.rule.max_window))) return
    chosen.window = window
    later()
  })
  byId('window').addEventListener('change', ({ target: field }) => {
    const largest = view.reply?.rule.max_window
    if (!(field.valueAsNumber >= 1 && field.valueAsNumber <= largest)) refuse(field, 'window-says', `Window: use a number from 1 to ${count(largest)}.`)
  })
  byId('copy').addEventListener('click', copy)
  byId('which').addEventListener('change', event => {
    byId('lists').dataset.which = event.target.value
  })
  for (const name of ['mouseover', 'focusin']) byId('lists').addEventListener(name, light)
  byId('lists').addEventListener('mouseleave', light)
  window.addEventListener('popstate', () => {
    clearTimeout(writing)
    writing = 0
    readAddress()
    view.reply = null
    target.pickEngine(chosen.engine).catch(trouble)
  })
}

async function start () {
  listen()
  byId('settings').open = matchMedia('(min-width: 72rem)').matches
  const scene = await engines()
  most = scene.ranks
  presets = scene.presets
  target.engines = scene.engines
  byId('version').textContent = scene.version
  const listed = [...byId('links').children].map(link => link.getAttribute('href'))
  for (const { path, says } of scene.links)
    if (!listed.includes(path))
      byId('links').append(' ', make('a', { href: path, title: says }, path.replaceAll('/', ' ').trim()))
  if (!target.engines.length) return clear('The configuration has no engine: add one to engines in config.yaml.')
  readAddress()
  await target.pickEngine(chosen.engine)
}

start().catch(trouble)
