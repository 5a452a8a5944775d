// The groups of an index, and what a person decides about them.

import { byId, count, counted, make, two } from './dom.js'
import { call, save, work, working } from './local.js'
import { showSides } from './sides.js'

let state = null
let asked = {} // the filter and order of the list
let list = { total: 0, groups: [] }
let group = null
let at = 0 // the member that is compared, from 1
const decisions = [] // of this visit: where each was made

const percent = x => `${x > 0 && x < 0.01 ? '<\u202f1' : Math.round(100 * x)}\u202f%`

function showState () {
  const { plan, threshold, date_field: dated, apart, decided, groups } = state
  const { documents, go, others } = plan.counts
  byId('index').textContent = `${plan.index}, threshold ${two(threshold)}`
  document.title = `neardup: groups of ${plan.index}`
  const copies = go - apart
  byId('summary').textContent = copies
    ? `${percent(copies / documents)} of the documents are copies: ${count(copies)} of ${count(documents)}.`
    : `No copies among ${counted(documents, 'document')}.`
  byId('portion').style.width = `${100 * copies / Math.max(documents, 1)}%`
  const more = [kept[plan.keep] ?? `The document that stays is chosen by: ${plan.keep}.`]
  if (others) more.push(others === 1
    ? '1 more document belongs to a cluster, but is not a near-duplicate of the one that stays: it stays too.'
    : `${count(others)} more documents belong to a cluster, but are not near-duplicates of the one that stays: they stay too.`)
  if (apart) more.push(apart === 1 ? 'You decided that 1 document is different: it stays.' : `You decided that ${count(apart)} documents are different: they stay.`)
  if (decided) more.push(`${counted(decided, 'pair was', 'pairs were')} decided before: sidecar decide --list shows them.`)
  byId('more').textContent = groups ? more.join(' ') : ''
  showPassages()
  for (const id of ['bar', 'tools', 'panes']) byId(id).hidden = !groups
  for (const element of document.querySelectorAll('.dated')) element.hidden = !dated
}

// showPassages lists the boilerplate of the index.
function showPassages () {
  const { passages, all_passages: all } = state
  byId('boilerplate').hidden = !all
  byId('passages-count').textContent = `Boilerplate: ${counted(all, 'passage')}${all > passages.length ? `, of which ${count(passages.length)} are shown` : ''}`
  byId('passages').tBodies[0].replaceChildren(...passages.map(({ number, documents, text }) =>
    make('tr', null, make('th', { scope: 'row' }, number), make('td', null, documents ? count(documents) : '–'), make('td', { dir: 'auto', lang: '' }, text))))
}

// showContained lists the boilerplate of the two texts that are compared.
function showContained (best, one) {
  const [a, b] = [best, one].map(({ passages }) => passages ?? [])
  const all = [...a, ...b.filter(({ number }) => !a.some(other => other.number === number))]
  byId('contained').hidden = !all.length
  byId('contained-list').replaceChildren(...all.map(({ number, documents, text }) => {
    const [inA, inB] = [a, b].map(list => list.some(other => other.number === number))
    const where = inA && inB ? 'in both texts' : inA ? 'in the text that stays' : 'in the other text'
    return make('li', null, `Passage ${number}${documents ? `, in ${count(documents)} documents` : ''}, ${where}: `, make('span', { dir: 'auto', lang: '' }, text))
  }))
}

const kept = Object.fromEntries(['newest', 'oldest', 'longest', 'first'].map(by => [by, `The ${by} document of each group stays.`]))

// load shows the part of the list that begins at a position.
async function load (from) {
  list = await call('list', { ...asked, at: from })
  list.at = from
  byId('listed').textContent = counted(list.total, 'group')
  byId('plan').textContent = `Clean-up plan for ${counted(list.stay, 'group')}, ${counted(list.go, 'document')}`
  byId('legend').textContent = `Number of documents · lowest agreement${list.groups.some(one => one.host) ? ' · host of the one that stays' : ''}`
  byId('groups').replaceChildren(...list.groups.map(one =>
    make('li', null, make('button', { type: 'button', class: 'entry', 'data-number': one.number, click: () => open(one.number) },
      make('b', null, count(one.size - one.apart)),
      make('span', { class: 'name' }, one.title || one.id),
      make('span', { class: 'note' }, [`agreement ≥ ${two(one.least)}`, one.host, one.apart ? `${one.apart} different` : '', one.out ? 'not in the plan' : ''].filter(Boolean).join(' · '))))))
  byId('place').textContent = list.total ? `${count(from + 1)} to ${count(from + list.groups.length)} of ${count(list.total)}` : ''
  byId('back').setAttribute('aria-disabled', from === 0)
  byId('on').setAttribute('aria-disabled', from + list.groups.length >= list.total)
  mark()
}

const turn = by => {
  const to = list.at + by * 50
  if (to >= 0 && to < list.total) return work(() => load(to))
}

// mark shows which entry of a list is open.
function mark () {
  for (const entry of byId('groups').querySelectorAll('.entry')) entry.setAttribute('aria-current', Number(entry.dataset.number) === group?.number)
  ;[...byId('members').querySelectorAll('.entry')].forEach((entry, i) => entry.setAttribute('aria-current', i + 1 === at))
}

function open (number) {
  return work(async () => {
    group = await call('group', { number })
    at = 1
    byId('group').hidden = false
    byId('none').hidden = true
    byId('said').textContent = ''
    const [best, ...others] = group.members
    byId('best').replaceChildren(make('span', { class: 'id' }, best.id), ' stays')
    byId('members').replaceChildren(...others.map((one, i) =>
      make('li', null, make('button', { type: 'button', class: 'entry', click: () => choose(i + 1) },
        make('span', { class: 'name' }, one.title || one.id), make('span', { class: 'note' })))))
    byId('rest').textContent = group.more ? `${counted(group.more, 'more copy', 'more copies')} not shown here. The downloads have all.` : ''
    compare()
    byId('group').focus({ preventScroll: true })
    if (byId('list').offsetParent === null) byId('group').scrollIntoView()
  })
}

// reason turns "longest (255 shingles)" into a sentence.
const reason = why => {
  const [, by, detail] = /^(newest|oldest|longest) \((.*)\)$/.exec(why) ?? []
  return by ? `It is the ${by}: ${detail}.` : `Why: ${why}.`
}

const dateOf = ({ fields }) => String((fields ?? []).find(({ name }) => name === state.date_field)?.value ?? '').slice(0, 10)

const stateOf = ({ state }) => state ? ` It ${state === 'gone' ? 'was deleted' : 'has changed'} since the groups were made.` : ''

function choose (to) {
  if (!group || to < 1 || to >= group.members.length) return
  at = to
  compare()
  byId('members').querySelectorAll('.entry')[at - 1].scrollIntoView({ block: 'nearest' })
}

// compare shows what differs between the document that stays and another one.
function compare () {
  const [best, one] = [group.members[0], group.members[at]]
  byId('pair').hidden = !one
  const go = group.members.slice(1).filter(({ verdict }) => verdict !== 'different').length + group.more
  byId('why').textContent = `${reason(group.why)} ${counted(go, 'copy goes', 'copies go')}.${stateOf(best)}`
  byId('leave').setAttribute('aria-pressed', group.out)
  ;[...byId('members').querySelectorAll('.entry')].forEach((entry, i) => {
    const { id, title, agreement, verdict, host, state } = group.members[i + 1]
    const word = { different: 'different: stays', same: 'same' }[verdict]
    entry.lastChild.textContent = [two(agreement), word, state, host, dateOf(group.members[i + 1]), title && title !== id ? id : ''].filter(Boolean).join(' · ')
  })
  mark()
  if (!one) return
  byId('goes').textContent = byId('goes-field').textContent = one.verdict === 'different' ? 'Stays too' : 'Goes'
  byId('what').replaceChildren('What differs in ', make('span', { class: 'id' }, one.id))
  byId('sides').hidden = false // what is hidden does not scroll back to its beginning
  const differ = showSides(best.text, one.text, best.marks, one.marks)
  byId('sides').hidden = !differ
  showContained(best, one)
  const fields = differing(best, one)
  byId('fields').hidden = !fields.length
  byId('fields').tBodies[0].replaceChildren(...fields.map(([name, a, b]) =>
    make('tr', null, make('th', { scope: 'row', class: 'id' }, name), make('td', null, a), make('td', null, b))))
  byId('note').textContent = [differ ? '' : 'No word of the text differs.', fields.length ? '' : 'No short field differs.',
    best.cut || one.cut ? 'Long texts are cut here.' : '', stateOf(one)].filter(Boolean).join(' ')
  for (const button of document.querySelectorAll('[data-verdict]')) {
    if (button.dataset.verdict) button.setAttribute('aria-pressed', one.verdict === button.dataset.verdict)
    else button.setAttribute('aria-disabled', !decisions.length && !one.verdict)
  }
}

// differing returns the fields in which two documents differ, except a field that holds the id.
function differing (a, b) {
  const values = ({ fields, id }) => new Map((fields ?? []).map(({ name, value }) => [name, typeof value === 'string' ? value : JSON.stringify(value)]).filter(([, text]) => text !== id))
  const [x, y] = [values(a), values(b)]
  return [...new Set([...x.keys(), ...y.keys()])].filter(name => x.get(name) !== y.get(name)).map(name => [name, x.get(name) ?? '–', y.get(name) ?? '–'])
}

function decide (verdict) {
  const one = group?.members[at]
  if (!one || working()) return
  const place = { number: group.number, at }
  return work(async () => {
    state = await call('decide', { number: place.number, id: one.id, verdict })
    decisions.push(place)
    await decided(one, verdict)
    byId('said').textContent = `${one.id}: ${verdict}.`
    if (at + 1 < group.members.length) choose(at + 1)
  })
}

// decided redraws the page after a decision was stored.
async function decided (one, verdict) {
  one.verdict = verdict
  showState()
  compare()
  await load(list.at)
}

// undo goes back to the pair that was decided last, and undoes that decision.
async function undo () {
  const last = decisions.at(-1) ?? (group?.members[at]?.verdict && { number: group.number, at })
  if (!last || working()) return
  if (group?.number !== last.number) await open(last.number)
  if (group?.number !== last.number) return // it could not be opened
  choose(last.at)
  const one = group.members[at]
  return work(async () => {
    state = await call('decide', { number: group.number, id: one.id, verdict: '' })
    decisions.pop()
    const { verdict, stored } = state
    await decided(one, verdict)
    byId('said').textContent = `Taken back. ${one.id}: ${stored || 'no decision'}.`
  })
}

// leave leaves the group out of the plan, or puts it back.
function leave () {
  if (!group || working()) return
  return work(async () => {
    await call('leave', { number: group.number, out: !group.out })
    group.out = !group.out
    compare()
    byId('said').textContent = group.out ? 'This group is not in the plan.' : 'This group is in the plan.'
    await load(list.at)
  })
}

function close () {
  const number = group?.number
  group = null
  byId('group').hidden = true
  byId('none').hidden = false
  mark()
  byId('groups').querySelector(`[data-number="${number}"]`)?.focus()
}

// step moves to the next or the previous group of the list.
async function step (by) {
  const entries = list.groups.map(one => one.number)
  const to = entries.indexOf(group.number) + by
  if (to >= 0 && to < entries.length) return open(entries[to])
  if ((by > 0 && list.at + entries.length < list.total) || (by < 0 && list.at > 0)) {
    await turn(by)
    return open((by > 0 ? list.groups[0] : list.groups.at(-1)).number)
  }
}

// move moves the focus in the list of groups.
function move (by) {
  const entries = [...byId('groups').querySelectorAll('.entry')]
  const to = entries.indexOf(document.activeElement) + by
  entries[Math.max(0, Math.min(to, entries.length - 1))]?.focus()
}

const keys = {
  n: () => group ? choose(at + 1) : move(1),
  p: () => group ? choose(at - 1) : move(-1),
  N: () => group && step(1),
  P: () => group && step(-1),
  s: () => decide('same'),
  d: () => decide('different'),
  u: undo,
  x: leave,
  Escape: () => group && close()
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && !'np'.includes(event.key) || working()) return
  if (event.target.matches('input, select, textarea')) return
  const act = keys[event.key]
  if (act) {
    act()
    event.preventDefault()
  }
})

const chosen = () => ({ order: byId('order').value, field: byId('value').value && byId('field').value, value: byId('value').value, from: byId('from').value, to: byId('to').value })

byId('filter').addEventListener('submit', event => {
  event.preventDefault()
  asked = chosen()
  work(() => load(0))
})
byId('filter').addEventListener('change', () => byId('filter').requestSubmit())
byId('back').addEventListener('click', () => turn(-1))
byId('on').addEventListener('click', () => turn(1))
byId('close').addEventListener('click', close)
for (const button of document.querySelectorAll('[data-verdict]')) button.addEventListener('click', () => button.dataset.verdict ? decide(button.dataset.verdict) : undo())
for (const button of document.querySelectorAll('[data-form]')) {
  button.addEventListener('click', () => work(() => save('export?' + new URLSearchParams({ ...asked, form: button.dataset.form }), 'groups.' + button.dataset.form)))
}
byId('plan').addEventListener('click', () => work(() => save('plan?' + new URLSearchParams(asked), 'plan.json')))
byId('leave').addEventListener('click', leave)

work(async () => {
  state = await call('state')
  byId('all').hidden = false
  showState()
  byId('field').append(...(state.fields ?? []).map(name => make('option', { value: name }, name)))
  asked = chosen()
  await load(0)
})
