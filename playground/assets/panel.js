// The panel next to the lists: the threshold with its curve, the YAML, the times, the rule.

import { curveTable, described, drawCurve, shares } from './chart.js'
import { byId, count, counted, make, millis, two } from './dom.js'

// yamlOf is the rule's YAML with the threshold and, if one was chosen, the window of the page.
export function yamlOf (yaml, threshold, window) {
  const put = (text, key, value) =>
    text.replace(new RegExp(`^([ \\t]*(?:- )?${key}:[ \\t]*)[\\d.]+`, 'm'), (_, before) => before + value)
  yaml = put(yaml, 'threshold', String(threshold))
  return window ? put(yaml, 'window', String(window)) : yaml
}

// showThreshold draws what depends on the threshold and the hits.
export function showThreshold (view) {
  const { reply, threshold, best } = view
  const { measure } = reply.rule
  drawCurve(byId('curve'), { curve: reply.curve, threshold, configured: reply.rule.threshold, best, measure })
  const folded = view.folded.groups.reduce((n, group) => n + group.folded.length, 0)
  for (const id of ['threshold', 'exactly'])
    if (document.activeElement !== byId(id) || Number(byId(id).value) !== threshold) byId(id).value = threshold
  byId('threshold').setAttribute('aria-valuetext', `${two(threshold)}: ${folded} of ${reply.hits.length} fold`)
  byId('threshold-says').textContent = described(reply.curve, threshold, measure)
  const button = byId('configured')
  button.textContent =
    threshold === reply.rule.threshold
      ? `as ${view.preset ? `${view.preset} has it` : 'configured'}`
      : `back to ${reply.rule.threshold}`
  button.setAttribute('aria-disabled', threshold === reply.rule.threshold)
  byId('yaml').textContent = yamlOf(reply.yaml, threshold, view.chosenWindow)
  byId('copied').textContent = ''
  if (byId('table').closest('details').open) byId('table').replaceChildren(curveTable(reply.curve, threshold, best))
}

// showReply draws what depends on the reply alone; looked is how many hits it has at most, agrees whether the sidecar's answer is what
// is shown.
export function showReply (reply, looked, agrees) {
  const { timing, rule, sidecar } = reply
  const own = timing.own_ms
  byId('timing').replaceChildren(
    shares([
      { name: 'engine', of: timing.engine_ms },
      { name: 'own', of: own }
    ]),
    make(
      'dl',
      { class: 'times' },
      term('engine', 'Engine', millis(timing.engine_ms)),
      term('own', 'neardup', millis(own)),
      term('', 'Together', millis(timing.total_ms)),
      term('', 'Without neardup', millis(timing.plain_ms))
    ),
    make('p', { class: 'note' }, 'Of this one search, which reads more hits than a page needs.')
  )
  byId('rule').replaceChildren(
    make(
      'dl',
      { class: 'terms' },
      term('', 'Indices', rule.match),
      term('', 'Fields', rule.fields.join(', ')),
      term('', 'Measure', rule.measure),
      term('', 'Least shingles', count(rule.min_shingles)),
      term('', 'Least words', count(rule.min_words)),
      rule.keep > 1 && term('', 'Kept of a group', count(rule.keep)),
      rule.transitive && term('', 'Groups', 'transitive'),
      rule.representative && term('', 'Shown', rule.representative),
      rule.conditions.length > 0 && term('', 'Only together', rule.conditions.join('; ')),
      term(
        '',
        'Sketch',
        `${rule.family}${rule.k ? `, ${rule.k} positions` : ''}${rule.bits ? ` of ${counted(rule.bits, 'bit')}` : ''}`
      ),
      term('', 'Neardup', make('code', null, sidecar.outcome || sidecar.error || `status ${sidecar.status}`)),
      agrees && term('', 'Checked', 'the sidecar answers the list that is shown')
    )
  )
  const notes = []
  if (reply.hits.length >= looked && reply.total !== reply.hits.length) {
    const all = reply.total < 0 ? '; how many there are the engine does not say' : ` hits of ${count(reply.total)}`
    notes.push(`The page looks at the first ${count(reply.hits.length)}${all}.`)
  }
  if (/^bypassed/.test(sidecar.outcome)) notes.push(`The sidecar itself did not collapse this search (${sidecar.outcome}).`)
  if (agrees === false) {
    notes.push('The sidecar’s own answer is another list: the index has changed meanwhile, or stored sketches do not match their texts.')
  }
  byId('looked').textContent = notes.join(' ')
  byId('window-says').textContent = `Hits that are compared; at most ${count(rule.max_window)} in this page.`
}

const term = (name, title, value) => make('div', name ? { class: name } : null, make('dt', null, title), make('dd', null, value))

// copy copies the YAML to the clipboard, and says so.
export async function copy () {
  const says = byId('copied')
  try {
    await navigator.clipboard.writeText(byId('yaml').textContent)
    says.textContent = 'Copied'
  } catch {
    // without https, or not allowed
    const range = document.createRange()
    range.selectNodeContents(byId('yaml'))
    getSelection().removeAllRanges()
    getSelection().addRange(range)
    says.textContent = 'Marked: copy it with your keyboard'
  }
}
