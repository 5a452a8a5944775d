// Two texts side by side.

import { diff } from './diff.js'
import { make, spoken } from './dom.js'

const around = 12 // how many equal words are shown next to a difference

// sides returns both texts for display, and whether they differ. Words that differ are marked, long equal parts are shortened.
export function sides (a, b) {
  const runs = diff(a, b)
  const left = [a.before]
  const right = [b.before]
  let at = 0 // in b
  runs.forEach(({ kind, from, to }, i) => {
    const n = to - from
    if (kind === 'gone') left.push(...only(a, from, to))
    else if (kind === 'new') {
      right.push(...only(b, from, to))
      at = to
    } else {
      const start = Math.min(n, around)
      const end = i === runs.length - 1 ? n : Math.max(start, n - around)
      if (end - start < 15 || runs.length === 1) {
        left.push(words(a, from, to))
        right.push(words(b, at, at + n))
      } else {
        const parts = [[a, from, left], [b, at, right]].map(([list, first, side]) => {
          const button = make('button', { type: 'button', class: 'plain elided', 'aria-label': `Show ${end - start} equal words` }, `… ${end - start} equal words …`)
          side.push(words(list, first, first + start), button, ' ', words(list, first + end, first + n))
          return { button, text: words(list, first + start, first + end) }
        })
        for (const { button } of parts)
          button.addEventListener('click', () => {
            for (const part of parts) {
              const shown = make('span', { tabindex: '-1' }, part.text)
              const focused = part.button === button
              part.button.replaceWith(shown)
              if (focused) shown.focus()
            }
          })
      }
      at += n
    }
  })
  return [left, right, runs.some(({ kind }) => kind !== 'same')]
}

const words = (list, from, to) => list.slice(from, to).map(({ text, rest }) => text + rest).join('')

// only marks words that the other text does not have here. Line breaks between them are not marked.
function only (list, from, to) {
  const last = list[to - 1]
  const parts = (words(list, from, to - 1) + last.text).split(/(\n\s*)/)
  const marks = parts.map((part, i) => (i % 2 ? part : part && make('mark', null, i === 0 ? spoken('only here: ') : '', part)))
  return [...marks, spoken(';'), last.rest]
}
