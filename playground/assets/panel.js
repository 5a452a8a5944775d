// The panel beside the lists: the threshold with its histogram, the times, the YAML, the rule.

import { byId, count, counted, make, millis, two } from './dom.js'
import { deviation, drawHistogram, least } from './histogram.js'

// yamlOf returns the rule's YAML with the chosen threshold and, if one was chosen, the window.
export function yamlOf (yaml, threshold, window) {
  const put = (text, key, value) =>
    text.replace(new RegExp(`^([ \\t]*(?:- )?${key}:[ \\t]*)[\\d.]+`, 'm'), (_, before) => before + value)
  yaml = put(yaml, 'threshold', String(threshold))
  return window ? put(yaml, 'window', String(window)) : yaml
}

// showThreshold draws what depends on the threshold and the hits. looked is how many hits a reply has at most.
export function showThreshold (view, looked) {
  const { reply, threshold, best } = view
  const error = deviation(reply.errors, threshold)
  const hidden = view.folded.groups.reduce((n, group) => n + group.folded.length, 0)
  const close = best.filter(agreement => agreement >= threshold - error && agreement < threshold + error).length
  const says = `${hidden} of ${counted(reply.hits.length, 'hit')} hidden`
  drawHistogram({ best, threshold, configured: reply.rule.threshold, error, says })
  const exactly = byId('exactly')
  if (document.activeElement !== exactly || Number(exactly.value) !== threshold) exactly.value = threshold
  const unlike = best.filter((agreement, rank) => rank && agreement < least).length
  byId('threshold-says').textContent =
    'Each hit is counted once, at its agreement with the most similar hit above it. ' +
    (unlike ? `${counted(unlike, 'hit')} agree${unlike === 1 ? 's' : ''} with none and ${unlike === 1 ? 'has' : 'have'} no bar. ` : '') +
    `In the strip (± ${two(error)}), chance decides which side a hit falls on: ${close ? counted(close, 'hit') : 'no hit'}.`
  byId('window-says').textContent =
    'How many hits the sidecar compares.' +
    (view.preset && !view.chosenWindow ? ` Set by the preset ${view.preset}.` : '') +
    ((view.chosenWindow ?? reply.rule.window) > looked ? ` This page compares the first ${count(looked)} of them.` : '')
  for (const id of ['exactly', 'window']) byId(id).removeAttribute('aria-invalid')
  const button = byId('configured')
  button.textContent =
    threshold === reply.rule.threshold
      ? view.preset ? `set by ${view.preset}` : 'as configured'
      : `back to ${reply.rule.threshold}`
  button.setAttribute('aria-disabled', threshold === reply.rule.threshold)
  byId('yaml').textContent = yamlOf(reply.yaml, threshold, view.chosenWindow)
  byId('copied').textContent = ''
}

// showReply draws what depends on the reply alone. looked is how many hits it has at most. agrees says whether the page shows what the
// sidecar answered.
export function showReply (reply, looked, agrees) {
  const { timing, rule, sidecar } = reply
  byId('timing').textContent =
    `Engine ${millis(timing.engine_ms)}, sidecar ${millis(timing.own_ms)}, total ${millis(timing.total_ms)} ` +
    `for ${counted(reply.hits.length, 'hit')}.`
  byId('rule').replaceChildren(
    make(
      'dl',
      { class: 'terms' },
      term('Indices', rule.match),
      term('Fields', rule.fields.join(', ')),
      term('Measure', rule.measure),
      term('Least shingles', count(rule.min_shingles)),
      term('Least words', count(rule.min_words)),
      rule.keep > 1 && term('Kept of a group', count(rule.keep)),
      rule.transitive && term('Groups', 'transitive'),
      rule.representative && term('Shown', rule.representative),
      rule.conditions.length > 0 && term('Only together', rule.conditions.join('; ')),
      term(
        'Sketch',
        `${rule.family}${rule.k ? `, ${rule.k} positions` : ''}${rule.bits ? ` of ${counted(rule.bits, 'bit')}` : ''}`
      ),
      term('Neardup', make('code', null, sidecar.outcome || sidecar.error || `status ${sidecar.status}`)),
      agrees && term('Checked', 'the sidecar returns the same list')
    )
  )
  const notes = []
  if (reply.hits.length >= looked && reply.total !== reply.hits.length) {
    const all = reply.total < 0 ? '' : ` of ${count(reply.total)}`
    notes.push(`This page compares the first ${count(reply.hits.length)}${all} hits.`)
  }
  if (/^bypassed/.test(sidecar.outcome)) notes.push(`The sidecar itself did not collapse this search (${sidecar.outcome}).`)
  if (agrees === false) {
    notes.push('The sidecar returned another list. Either the index has changed meanwhile, or stored sketches do not match their texts, or a transitive group holds two hits that were decided to be different.')
  }
  byId('looked').textContent = notes.join(' ')
}

const term = (title, value) => make('div', null, make('dt', null, title), make('dd', null, value))

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
    says.textContent = 'Selected: press Ctrl+C (⌘C)'
  }
}
