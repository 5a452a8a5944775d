// The curve p(r) with the threshold and its error, above the hits by their greatest agreement, on the scale of the slider.

import { deviation, doubt, folds } from './curve.js'
import { draw, make, three, two } from './dom.js'

export const least = 0.05 // pairs below are not in a reply
const edge = 10 // half the slider's thumb
const height = 168
const top = 8
const bottom = 22

// drawCurve draws into a box: curve, threshold, configured, and best, the greatest agreements.
export function drawCurve (box, { curve, threshold, configured, best, measure }) {
  const width = Math.max(box.clientWidth, 200)
  const x = r => edge + ((r - least) / (1 - least)) * (width - 2 * edge)
  const y = p => top + (1 - p) * (height - top - bottom)
  const error = deviation(curve, threshold)
  const svg = draw('svg', {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'img',
    'aria-label': described(curve, threshold, measure)
  })
  const low = x(Math.max(least, threshold - error))
  svg.append(draw('rect', { class: 'veil', x: low, y: top, width: x(Math.min(1, threshold + error)) - low, height: y(0) - top }))
  for (const p of [0, 0.5, 1]) {
    svg.append(draw('line', { class: p ? 'grid' : 'axis', x1: edge, x2: width - edge, y1: y(p), y2: y(p) }))
    if (p) svg.append(draw('text', { class: 'tick', x: edge + 2, y: y(p) + 13 }, p === 1 ? 'p = 1' : '½'))
  }
  for (let r = 0.2; r < 1.05; r += 0.2) {
    svg.append(draw('line', { class: 'axis', x1: x(r), x2: x(r), y1: y(0), y2: y(0) + 4 }))
    svg.append(
      draw(
        'text',
        { class: 'tick', x: Math.min(x(r), width - 9), y: height - 4, 'text-anchor': 'middle' },
        r > 0.95 ? '1' : r.toFixed(1)
      )
    )
  }
  svg.append(bars(best, threshold, x, y))
  const p = folds(curve, threshold)
  const points = []
  for (let i = 0; i <= 190; i++) {
    const r = least + (i / 190) * (1 - least)
    points.push(`${x(r).toFixed(1)},${y(p(r)).toFixed(1)}`)
  }
  svg.append(draw('polyline', { class: 'folds', points: points.join(' ') }))
  svg.append(draw('line', { class: 'now', x1: x(threshold), x2: x(threshold), y1: top - 4, y2: y(0) }))
  const mark = x(configured)
  svg.append(draw('path', { class: 'configured', d: `M${mark - 4} ${y(0) + 8}h8l-4 -7z` }))
  box.replaceChildren(svg)
}

const bins = 38

// bars are the numbers of hits by their greatest agreement with an earlier one.
function bars (best, threshold, x, y) {
  const numbers = new Array(bins).fill(0)
  const wide = (1 - least) / bins
  for (const agreement of best) {
    if (agreement >= least) numbers[Math.min(bins - 1, Math.floor((agreement - least) / wide + 1e-9))]++
  }
  const most = Math.max(1, ...numbers)
  const all = draw('g', {})
  numbers.forEach((n, i) => {
    if (!n) return
    const r = least + i * wide
    const from = x(r) + 0.75
    all.append(
      draw('rect', {
        class: r + wide / 2 >= threshold ? 'bar over' : 'bar',
        x: from,
        width: Math.max(1, x(r + wide) - from - 0.75),
        y: y((0.72 * n) / most),
        height: y(0) - y((0.72 * n) / most)
      })
    )
  })
  return all
}

// described describes the curve at a threshold in words.
export function described (curve, threshold, measure) {
  const { from, to } = doubt(curve, threshold)
  const error = three(deviation(curve, threshold))
  const where = `one pair in twenty folds at a ${measure} of ${two(from)}, nineteen in twenty at ${two(to)}`
  return `At ${two(threshold)}, ${where}; the standard error there is ${error}.`
}

// curveTable shows the curve and the hits as a table of numbers.
export function curveTable (curve, threshold, best) {
  const p = folds(curve, threshold)
  const rows = []
  for (let i = 1; i <= 20; i++) {
    const r = i / 20
    const hits = best.filter(agreement => agreement >= r - 1e-9 && (i === 20 || agreement < r + 0.05 - 1e-9)).length
    rows.push(
      make(
        'tr',
        null,
        make('th', { scope: 'row' }, two(r)),
        make('td', null, three(p(r))),
        make('td', null, three(deviation(curve, r))),
        make('td', null, String(hits))
      )
    )
  }
  const head = ['r', 'p(r)', 'standard error', 'hits from here'].map(name => make('th', { scope: 'col' }, name))
  return make(
    'table',
    null,
    make('caption', null, `At a threshold of ${two(threshold)}`),
    make('thead', null, make('tr', null, head)),
    make('tbody', null, rows)
  )
}

// scale draws an agreement, its error and the threshold.
export function scale (agreement, error, threshold) {
  const x = r => 1 + 54 * Math.min(Math.max(r, 0), 1)
  return draw(
    'svg',
    { class: 'scale', viewBox: '0 0 56 12', width: 56, height: 12, 'aria-hidden': 'true' },
    draw('line', { class: 'axis', x1: 1, x2: 55, y1: 6, y2: 6 }),
    draw('line', { class: 'spread', x1: x(agreement - error), x2: x(agreement + error), y1: 6, y2: 6 }),
    draw('line', { class: 'now', x1: x(threshold), x2: x(threshold), y1: 1, y2: 11 }),
    draw('circle', { class: 'dot', cx: x(agreement), cy: 6, r: 3 })
  )
}

// shares draws the parts of a whole next to one another.
export function shares (parts) {
  const all = Math.max(
    1e-9,
    parts.reduce((sum, part) => sum + part.of, 0)
  )
  const svg = draw('svg', { class: 'shares', viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' })
  let x = 0
  for (const { name, of } of parts) {
    svg.append(draw('rect', { class: name, x, y: 0, width: (100 * of) / all, height: 4 }))
    x += (100 * of) / all
  }
  return svg
}
