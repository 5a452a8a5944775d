// Two texts side by side.

import { diff, textOf, tokens, wordsOf } from './diff.js'
import { byId, make, spoken } from './dom.js'
import { around, elided } from './elided.js'

// showSides shows two texts in #text-a and #text-b, and returns whether a word differs.
export function showSides (a, b) {
  const [left, right, differ] = sides(tokens(a), tokens(b))
  for (const [id, parts] of [['text-a', left], ['text-b', right]]) {
    byId(id).replaceChildren(...parts)
    byId(id).scrollTop = 0
  }
  return differ
}

// sides returns both texts for display, and whether a word differs. Words that differ are marked, long equal parts are shortened.
function sides (a, b) {
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
        left.push(textOf(a, from, to))
        right.push(textOf(b, at, at + n))
      } else {
        const [x, y] = elided(end - start, [textOf(a, from + start, from + end), textOf(b, at + start, at + end)])
        left.push(textOf(a, from, from + start), x, ' ', textOf(a, from + end, to))
        right.push(textOf(b, at, at + start), y, ' ', textOf(b, at + end, at + n))
      }
      at += n
    }
  })
  return [left, right, runs.some(({ kind }) => kind !== 'same')]
}

// only marks words that the other text does not have here. Line breaks between them are not marked.
function only (list, from, to) {
  const parts = wordsOf(list, from, to).split(/(\n\s*)/)
  const marks = parts.map((part, i) => (i % 2 ? part : part && make('mark', null, i === 0 ? spoken('only here: ') : '', part)))
  return [...marks, spoken(';'), list[to - 1].rest]
}
