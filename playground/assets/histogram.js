// A histogram of the hits by their greatest agreement with a hit above them, and a threshold line that pointer, finger or key can move.

import { byId, draw, two } from './dom.js'

export const least = 0.05 // pairs below are not in a reply
const bins = 38
const across = r => (100 * (Math.min(Math.max(r, least), 1) - least)) / (1 - least) // in percent of the width

// deviation is the standard error of an agreement. A reply's errors has it at 0, 0.01 … 1.
export function deviation (errors, agreement) {
  const x = Math.min(Math.max(agreement, 0), 1) * (errors.length - 1)
  const i = Math.min(Math.floor(x), errors.length - 2)
  return errors[i] + (errors[i + 1] - errors[i]) * (x - i)
}

// listen calls moved with each threshold that the user moves the line to.
export function listen (moved) {
  const [box, line] = [byId('histogram'), byId('threshold')]
  const now = () => Number(line.getAttribute('aria-valuenow'))
  const to = value => {
    line.setAttribute('aria-valuenow', Math.round(100 * Math.min(Math.max(value, least), 1)) / 100) // drawn later, by drawHistogram
    moved(now())
  }
  let before = null // the threshold when the pointer went down, null if it is up
  const follow = event => {
    const { left, width } = byId('bars').getBoundingClientRect()
    to(least + ((event.clientX - left) / width) * (1 - least))
  }
  box.addEventListener('pointerdown', event => {
    if (event.button) return
    before = now()
    box.setPointerCapture(event.pointerId)
    event.preventDefault()
    line.focus({ preventScroll: true })
    follow(event)
  })
  box.addEventListener('pointermove', event => before !== null && follow(event))
  box.addEventListener('pointerup', () => {
    before = null
  })
  box.addEventListener('pointercancel', () => {
    if (before !== null) to(before) // the finger scrolls the page
    before = null
  })
  line.addEventListener('keydown', event => {
    const step = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01, PageDown: -0.05, PageUp: 0.05, Home: -1, End: 1 }
    if (!(event.key in step) || event.altKey || event.ctrlKey || event.metaKey) return
    event.preventDefault()
    to(now() + step[event.key])
  })
}

// drawHistogram draws the bars and the threshold line. says is what a screen reader says about the line.
export function drawHistogram ({ best, threshold, configured, error, says }) {
  const wide = (1 - least) / bins
  const all = new Array(bins).fill(0)
  const over = new Array(bins).fill(0) // those that reach the threshold
  for (const agreement of best) {
    const bin = Math.min(bins - 1, Math.floor((agreement - least) / wide + 1e-9))
    if (bin >= 0) all[bin]++
    if (agreement >= threshold) over[bin]++
  }
  const most = Math.max(...all)
  const bar = (name, n, i) => {
    const high = n && Math.max((90 * n) / most, 3)
    const title = `${all[i]} at ${two(least + i * wide)} to ${two(least + (i + 1) * wide)}`
    return draw(
      'rect',
      { class: name, x: `${(100 * i) / bins + 0.25}%`, width: `${100 / bins - 0.5}%`, y: `${100 - high}%`, height: `${high}%` },
      draw('title', null, title)
    )
  }
  const from = across(threshold - error)
  const label = (x, text, anchor) => draw('text', { x: `${x}%`, y: '100%', dy: 15, 'text-anchor': anchor }, text)
  byId('bars').replaceChildren(
    draw('rect', { class: 'veil', x: `${from}%`, y: 0, width: `${across(threshold + error) - from}%`, height: '100%' }),
    ...all.map((n, i) => bar('bar', n, i)),
    ...over.map((n, i) => bar('bar over', n, i)),
    draw('line', { class: 'axis', x1: 0, x2: '100%', y1: '100%', y2: '100%' }),
    draw('line', { class: 'configured', x1: `${across(configured)}%`, x2: `${across(configured)}%`, y1: 0, y2: '100%' }),
    label(0, 'different', 'start'),
    ...[0.4, 0.6, 0.8].map(r => label(across(r), r.toFixed(1), 'middle')),
    label(100, 'same', 'end')
  )
  const line = byId('threshold')
  line.style.left = `${across(threshold)}%`
  line.dataset.value = two(threshold)
  line.setAttribute('aria-valuenow', threshold)
  line.setAttribute('aria-valuetext', `${two(threshold)}: ${says}`)
}

// scale draws an agreement, its error and the threshold.
export function scale (agreement, error, threshold) {
  const x = r => 4 + 48 * Math.min(Math.max(r, 0), 1) // with room for half a dot at both ends
  return draw(
    'svg',
    { class: 'scale', viewBox: '0 0 56 12', width: 56, height: 12, 'aria-hidden': 'true' },
    draw('line', { class: 'axis', x1: x(0), x2: x(1), y1: 6, y2: 6 }),
    draw('line', { class: 'spread', x1: x(agreement - error), x2: x(agreement + error), y1: 6, y2: 6 }),
    draw('line', { class: 'now', x1: x(threshold), x2: x(threshold), y1: 1, y2: 11 }),
    draw('circle', { class: 'dot', cx: x(agreement), cy: 6, r: 3 })
  )
}
