// The page on which a person judges pairs.

import { byId, counted, draw, make, two } from './dom.js'
import { call, work, working } from './local.js'
import { showSides } from './sides.js'

let view = null

// act sends a request to the command and draws the answer.
async function act (what, body) {
  if (working()) return
  await work(async () => {
    try {
      const answer = await call(what, body)
      if (what === 'end') ended()
      else show(answer, doneBy(what, body, answer))
    } catch (error) {
      if (view) await call('state').then(answer => show(answer, ''), () => {}) // another tab may have answered
      throw error
    }
  })
}

const writtenTo = config => `Written to ${config}. A running serve reloads it.`

// doneBy says what an action stored beside the answer.
function doneBy (what, { remember, verdict } = {}, { config }) {
  if (what === 'write') return writtenTo(config)
  if (!remember || verdict === 'skip') return ''
  return `The last pair is decided: ${verdict === 'same' ? 'always' : 'never'} together.`
}

function show (answer, done) {
  const before = view?.question
  view = answer
  const { question, finding } = view
  byId('pair').hidden = !question
  byId('empty').hidden = Boolean(question)
  for (const id of ['finding', 'verdicts']) byId(id).hidden = false
  for (const button of document.querySelectorAll('[data-verdict]')) button.setAttribute('aria-disabled', !question)
  byId('remember').disabled = !question
  byId('undo').setAttribute('aria-disabled', finding.same + finding.different + finding.skipped === 0)
  if (question && !(before?.a.id === question.a.id && before.b.id === question.b.id)) {
    showPair(question)
    byId('remember').checked = false
    scrollTo(0, 0)
  }
  showFinding()
  byId('done').textContent = done
  if (before) byId('said').textContent = `${done} ${question ? `${question.title}. ` : ''}Threshold ${two(finding.threshold)}. ${view.progress}`
}

function showPair ({ title, a, b, fields }) {
  byId('number').textContent = title
  const differ = showSides(a.text, b.text)
  for (const [side, document] of [['a', a], ['b', b]]) {
    byId('id-' + side).textContent = document.id
    byId('fields-' + side).replaceChildren(...(fields ?? []).map(one => make('li', null, make('span', { class: 'id' }, one.name), ' ', make('span', { title: one[side] }, one[side]))))
  }
  byId('note').textContent = (differ ? '' : 'No word differs. ') + (a.cut || b.cut ? 'Long texts are cut here.' : '')
}

function showFinding () {
  const { finding, present, advice, refusal, written } = view
  const { threshold, low, high, same, different, skipped } = finding
  const judged = same + different > 0 // before that only the configured threshold is known
  const changed = two(threshold) !== two(present)
  for (const id of ['best', 'brief']) byId(id).textContent = two(judged ? threshold : present)
  byId('interval').textContent = judged
    ? `With a probability of 90 % the best threshold is between ${two(low)} and ${two(high)}. The configured one is ${two(present)}.`
    : 'This is the configured threshold.'
  byId('scale').replaceChildren(judged ? range(threshold, low, high, present) : '')
  for (const id of ['expected', 'config', 'write']) byId(id).hidden = !judged
  byId('expected').textContent = `Expected on ${view.index}: ${[view.expected, changed && view.change].filter(Boolean).join(' ')}`
  byId('counts').textContent = `${counted(same, 'same', 'same')}, ${counted(different, 'different', 'different')}, ${counted(skipped, 'skipped', 'skipped')}. ${view.contradictions}`
  byId('progress').textContent = view.progress
  byId('progress').classList.toggle('done', finding.settled)
  byId('advice').replaceChildren(
    ...(advice ?? []).map(({ rule, reason }) => make('li', null, make('code', null, rule), make('span', { class: 'note' }, reason)))
  )
  byId('yaml').textContent = `indices:\n- match: ${view.match}\n${view.yaml}`
  const writable = refusal === '' && changed
  byId('write').textContent = changed ? `Write ${two(present)} → ${two(threshold)} into ${view.config}` : `${two(present)} is ${written ? 'written to' : 'already in'} ${view.config}`
  byId('write').setAttribute('aria-disabled', !writable)
  byId('write').classList.toggle('primary', writable)
}

// range draws where the threshold may lie between 0 and 1.
function range (threshold, low, high, present) {
  const x = value => `${(100 * value).toFixed(1)}%`
  return draw(
    'svg',
    { width: '100%', height: '28', focusable: 'false' },
    draw('rect', { class: 'line', x: 0, y: 13, width: '100%', height: 2 }),
    draw('rect', { class: 'likely', x: x(low), y: 10, width: x(Math.max(0.01, high - low)), height: 8 }),
    draw('rect', { class: 'present', x: x(present), y: 6, width: 2, height: 16 }),
    draw('circle', { class: 'best', cx: x(threshold), cy: 14, r: 7 })
  )
}

function ended () {
  for (const id of ['pair', 'finding', 'verdicts']) byId(id).hidden = true
  byId('empty').hidden = false
  const { written, present, config, answers } = view
  const what = written ? `Threshold ${two(present)}: ${writtenTo(config)}` : 'No threshold is written.'
  byId('empty').textContent = `The command has ended. ${what} Your answers are in ${answers}.`
  view = null
}

const enabled = button => button.getAttribute('aria-disabled') !== 'true'

function answer (verdict) {
  if (view?.question) act('answer', { a: view.question.a.id, b: view.question.b.id, verdict, remember: byId('remember').checked })
}

for (const button of document.querySelectorAll('[data-verdict]')) button.addEventListener('click', () => answer(button.dataset.verdict))
byId('undo').addEventListener('click', () => enabled(byId('undo')) && act('undo', {}))
byId('write').addEventListener('click', () => enabled(byId('write')) && act('write', {}))
byId('end').addEventListener('click', () => act('end', {}))

const keys = { s: () => answer('same'), d: () => answer('different'), k: () => answer('skip'), u: () => byId('undo').click(), r: () => byId('remember').click() }

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !view) return
  keys[event.key.toLowerCase()]?.()
})

act('state')
