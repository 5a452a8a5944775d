// The page of a set of queries: each is run with and without collapsing, one after the other.

import { engines, Problem, queries, report, run } from './api.js'
import { busy, byId, count, counted, draw, make, millis, spoken } from './dom.js'
import { least } from './histogram.js'
import { Target } from './target.js'

const tenths = ms => ms.toFixed(1)
const largest = 5_000_000 // bytes of a file
const longest = 2000 // the address holds queries up to this many characters

const chosen = { engine: '', index: '' }
let asked = {} // the choices of the last run, which its rows are for: the index, and the thresholds under and against
let rows = []
let notRun = {} // how many queries: elsewhere and left
let running = null // an AbortController while queries are run
const target = new Target(chosen, { list: () => list().catch(trouble), picked: showConfigured })

const question = more => ({
  engine: asked.engine,
  index: asked.index,
  ...(asked.under && { threshold: asked.under }),
  ...(asked.against && { against: asked.against }),
  ...more
})

// ---- the address

function readAddress () {
  const hash = new URLSearchParams(location.hash.slice(1))
  chosen.engine = hash.get('engine') ?? ''
  chosen.index = hash.get('index') ?? ''
  byId('under').value = hash.get('threshold') ?? ''
  byId('against').value = hash.get('against') ?? ''
  byId('query').value = hash.get('queries') ?? ''
}

function writeAddress () {
  const hash = new URLSearchParams({ engine: asked.engine, index: asked.index })
  if (asked.under) hash.set('threshold', asked.under)
  if (asked.against) hash.set('against', asked.against)
  const text = byId('query').value
  if (text.length <= longest) hash.set('queries', text)
  history.replaceState(null, '', '#' + hash)
}

// ---- the tab's memory: queries and results, for a person who comes back from a search

const storageKey = 'neardup.queries'

function remember () {
  try {
    sessionStorage.setItem(storageKey, JSON.stringify({ hash: location.hash, text: byId('query').value, rows, notRun }))
  } catch {
    /* too much, or a browser that keeps nothing */
  }
}

// remembered returns the tab's memory if it is for this address. If the page has no address, it restores that too.
function remembered () {
  try {
    const kept = JSON.parse(sessionStorage.getItem(storageKey))
    if (!location.hash && kept?.hash) history.replaceState(null, '', kept.hash)
    if (kept?.hash === location.hash) return kept
  } catch {
    /* nothing */
  }
  return null
}

async function restore (kept) {
  if (!kept.rows.length || !chosen.index) return
  keepChoices()
  notRun = kept.notRun
  rows = kept.rows
  byId('empty').hidden = true
  busy(true)
  await showReport()
  busy(false)
}

// ---- the index

function showConfigured () {
  byId('under').placeholder = target.rule?.threshold ?? ''
}

async function list () {
  byId('problem').hidden = true
  const allowed = await target.load()
  busy(false)
  if (!allowed) return target.login.ask()
  showConfigured()
  if (!chosen.index) throw new Problem(0, 'No rule matches any index here.', 'Add one to indices in config.yaml.')
}

// ---- the run

// trouble shows an error, unless it is of a request that was cancelled.
function trouble (error) {
  if (error.name === 'AbortError') return
  mark(/^line (\d+):/.exec(target.showError(error))?.[1])
}

// mark selects a line in the box of queries.
function mark (line) {
  if (!line) return
  const box = byId('query')
  const lines = box.value.split('\n')
  const from = lines.slice(0, line - 1).reduce((sum, { length }) => sum + length + 1, 0)
  box.focus()
  box.setSelectionRange(from, from + lines[line - 1].length)
  box.scrollTop = (line - 2) * parseFloat(getComputedStyle(box).lineHeight)
  box.setAttribute('aria-invalid', true)
}

// threshold returns the number in a field; null if it is empty.
function threshold (id) {
  const field = byId(id)
  if (field.value === '' && field.validity.valid) return null
  if (field.valueAsNumber >= least && field.valueAsNumber <= 1) return field.valueAsNumber
  field.focus()
  throw new Problem(0, `${field.labels[0].textContent}: use a number from ${least} to 1.`, '')
}

// keepChoices keeps the choices for a run, so that a change during or after it does not mix two indices.
const keepChoices = () => {
  asked = { ...chosen, under: threshold('under'), against: threshold('against'), configured: target.rule?.threshold ?? '' }
}

async function runAll () {
  byId('problem').hidden = true
  byId('query').removeAttribute('aria-invalid')
  if (!chosen.index) await list() // which says why no index is chosen
  if (!chosen.index) return
  keepChoices()
  writeAddress()
  rows = []
  const stopping = (running = new AbortController())
  byId('results').hidden = byId('empty').hidden = true
  busy(true)
  try {
    const { queries: list, elsewhere, left } = await queries(question({ text: byId('query').value }), stopping.signal)
    if (!list.length) {
      byId('query').focus()
      throw new Problem(0, elsewhere ? 'All of these searches are for other indices.' : 'Write queries, one a line.', '')
    }
    notRun = { elsewhere, left: left + list.length }
    byId('verdict').replaceChildren()
    byId('downloads').hidden = true
    progress(0, list.length)
    showTable()
    let drawn = 0
    for (const [number, one] of list.entries()) {
      if (stopping.signal.aborted) break
      try {
        rows.push(await run(question({ ...one, number }), stopping.signal))
      } catch (error) {
        if (error.name === 'AbortError') break
        if (error.refused || !error.status) throw error
        rows.push({ query: one.query, count: one.count, total: -1, hits: 0, collapsed: null, changes: 0, error: `${error.message} ${error.hint}` })
      }
      notRun.left = left + list.length - rows.length
      progress(rows.length, list.length)
      if (performance.now() - drawn > 300) {
        showTable()
        drawn = performance.now()
      }
    }
    if (rows.length) await showReport()
  } finally {
    running = null
    progress(0, 0)
    busy(false)
  }
}

function progress (done, all) {
  byId('progress').hidden = byId('stop-field').hidden = !all
  byId('run').disabled = Boolean(all)
  byId('done').max = all || 1
  byId('done').value = done
  byId('progress-says').textContent = `${count(done)} of ${counted(all, 'query', 'queries')}`
}

// ---- the results

let saved = []
async function showReport () {
  const { html, ...all } = await report(question({ rows, ...notRun }))
  rows = all.queries
  showTable()
  byId('verdict').replaceChildren(...all.summary.map(sentence => make('p', null, sentence)))
  saved.forEach(URL.revokeObjectURL)
  saved = [
    [html, 'text/html', 'as-html'],
    [JSON.stringify(all, null, 2), 'application/json', 'as-json']
  ].map(([text, type, id]) => (byId(id).href = URL.createObjectURL(new Blob([text], { type }))))
  byId('downloads').hidden = false
}

const sum = (row, of) => (row.collapsed ?? []).reduce((n, page) => n + (of(page) || 0), 0)
const folded = row => sum(row, page => page.folded)

// orders are the sort keys of the rows; the highest comes first.
const orders = {
  changes: row => row.changes,
  empty: row => sum(row, page => page.empty),
  nothing: row => Number(row.total === 0 && !row.error),
  slow: row => Math.max(0, ...(row.collapsed ?? []).map(page => page.total_ms || 0))
}

// showTable shows the rows in the chosen order.
function showTable () {
  const two = Boolean(asked.against)
  const order = orders[byId('order').value]
  rows.sort((a, b) => order(b) - order(a) || b.changes - a.changes || folded(b) - folded(a) || b.count - a.count)
  const name = value => (value ? `threshold ${value}` : `the configured threshold, ${asked.configured}`)
  byId('legend').replaceChildren(
    make('span', null, two ? `A: ${name(asked.under)}. B: ${name(asked.against)}. Different: how many results only one of them shows.` : `At ${name(asked.under)}.`),
    ...[['kept', 'results that stay'], ['new', 'new results'], ['gone', 'slots left empty']].map(([key, text]) =>
      make('span', null, make('i', { class: 'key ' + key }), text)
    ),
    make('span', null, 'Time: total, and below it engine + sidecar.')
  )
  const head = ['Query', 'Times asked', ...(two ? ['Different', 'Setting'] : []), 'Page 1', 'Copies hidden', 'New results', 'Slots filled', 'Groups', 'Time', 'Without neardup']
  byId('table').replaceChildren(
    make(
      'table',
      { class: 'queries', role: 'table' },
      make('caption', { class: 'spoken' }, 'The queries.'),
      make(
        'thead',
        { role: 'rowgroup' },
        make('tr', { role: 'row' }, head.map(text => make('th', { role: 'columnheader', scope: 'col', class: text === 'Page 1' && 'page' }, text === 'Setting' ? spoken(text) : text)))
      ),
      rows.map(row => body(row, two))
    )
  )
  byId('results').hidden = false
}

const cell = (label, attributes, ...content) => make('td', { role: 'cell', 'data-label': label, ...attributes }, ...content)

// body returns the rows of the table for a query: one for each page.
function body (row, two) {
  const span = two && row.collapsed ? { rowspan: 2 } : {}
  const link = threshold => '/#' + new URLSearchParams({ engine: asked.engine, index: asked.index, q: row.query, ...(threshold && { threshold }) })
  const first = [
    make('th', { role: 'rowheader', scope: 'row', class: 'query', ...span }, make('a', { href: link(asked.under), title: 'Show this search' }, row.query)),
    cell('Times asked', span, count(row.count)),
    two && row.collapsed && cell('Different', span, count(row.changes))
  ]
  const lines = row.collapsed
    ? row.collapsed.map((page, side) => [...(side ? [] : first), two && cell('', { class: 'side' }, make('a', { href: link(side ? asked.against : asked.under), title: `Show this search at ${'AB'[side]}` }, 'AB'[side])), ...cells(row, page)])
    : [[...first, cell('', { class: 'failed', colspan: two ? 9 : 7 }, row.error)]]
  return make('tbody', { role: 'rowgroup' }, lines.map(line => make('tr', { role: 'row' }, line)))
}

function cells (row, page) {
  if (page.error) return [cell('', { class: 'failed', colspan: 7 }, page.error)]
  const times = [time('Time', page), time('Without neardup', row.engine_page)]
  if (page.left_alone) return [cell('', { class: 'left', colspan: 5 }, `left alone: ${page.left_alone}`), ...times]
  const kept = page.hits - page.new
  return [
    cell('Page 1', { class: 'page' },
      draw('svg', { viewBox: `0 0 ${row.hits || 1} 1`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
        draw('rect', { class: 'kept', width: kept, height: 1 }), draw('rect', { class: 'new', x: kept, width: page.new, height: 1 })),
      spoken(counted(page.hits, 'result'))),
    cell('Copies hidden', null, count(page.folded)),
    cell('New results', null, count(page.new)),
    cell('Slots filled', null, page.folded ? `${count(page.filled)} of ${count(page.folded)}` : '–'),
    cell('Groups', null, count(page.groups)),
    ...times
  ]
}

const time = (label, times) =>
  cell(label, { class: 'time' }, millis(times.total_ms), make('small', null, `${tenths(times.engine_ms)} + ${tenths(times.sidecar_ms)}`))

// ---- what the user does

function listen () {
  byId('ask').addEventListener('submit', event => {
    event.preventDefault()
    if (!running) runAll().catch(trouble)
  })
  byId('order').addEventListener('change', showTable)
  window.addEventListener('pagehide', remember)
  byId('stop').addEventListener('click', () => running?.abort())
  byId('engine').addEventListener('change', event => {
    chosen.index = ''
    target.pickEngine(event.target.value).catch(trouble)
  })
  byId('open').addEventListener('click', () => byId('file').click())
  byId('file').addEventListener('change', event => read(event.target.files[0]).catch(trouble))
  byId('query').addEventListener('keydown', event => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) byId('ask').requestSubmit()
  })
}

async function read (file) {
  if (!file) return
  if (file.size > largest) throw new Problem(0, `${file.name} is larger than 5 MB.`, `Use a part of it, or run: sidecar try ${file.name}`)
  byId('query').value = await file.text()
  byId('file').value = ''
  byId('query').focus()
}

async function start () {
  listen()
  const kept = remembered()
  readAddress()
  if (kept) byId('query').value = kept.text
  target.engines = (await engines()).engines
  if (!target.engines.length) throw new Problem(0, 'The configuration has no engine.', 'Add one to engines in config.yaml.')
  await target.pickEngine(chosen.engine)
  if (kept) await restore(kept)
}

start().catch(trouble)
