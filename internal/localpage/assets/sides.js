// Two texts side by side.

import { diff, textOf, tokens, wordsOf } from './diff.js'
import { byId, make, spoken } from './dom.js'
import { around, elided } from './elided.js'

// showSides shows two texts in #text-a and #text-b, and returns whether a word differs. The marks of each say which parts are boilerplate:
// from one place in the text to before another.
export function showSides (a, b, marksA, marksB) {
  const [left, right, differ] = sides(marked(tokens(a), marksA ?? []), marked(tokens(b), marksB ?? []))
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
        left.push(...shown(a, from, to))
        right.push(...shown(b, at, at + n))
      } else {
        const [x, y] = elided(end - start, [shown(a, from + start, from + end), shown(b, at + start, at + end)])
        left.push(...shown(a, from, from + start), x, ' ', ...shown(a, from + end, to))
        right.push(...shown(b, at, at + start), y, ' ', ...shown(b, at + end, at + n))
      }
      at += n
    }
  })
  return [left, right, runs.some(({ kind }) => kind !== 'same')]
}

// marked notes which tokens are boilerplate.
function marked (list, marks) {
  let at = list.before.length
  for (const token of list) {
    token.boilerplate = marks.some(([from, to]) => from <= at && at < to)
    at += token.text.length + token.rest.length
  }
  return list
}

// pieces cuts tokens where boilerplate begins and ends.
function * pieces (list, from, to) {
  for (let end; from < to; from = end) {
    for (end = from + 1; end < to && list[end].boilerplate === list[from].boilerplate;) end++
    yield { from, end, kind: list[from].boilerplate ? 'boilerplate' : null }
  }
}

// shown returns tokens as text, in which boilerplate is marked.
function shown (list, from, to) {
  return Array.from(pieces(list, from, to), ({ from, end, kind }) => kind
    ? make('span', { class: kind }, spoken('boilerplate: '), textOf(list, from, end))
    : textOf(list, from, end))
}

// only marks words that the other text does not have here. Line breaks between them are not marked.
function only (list, from, to) {
  const marks = []
  for (const { from: start, end, kind } of pieces(list, from, to)) {
    const parts = wordsOf(list, start, end).split(/(\n\s*)/)
    const said = (start === from ? 'only here: ' : '') + (kind ? 'boilerplate: ' : '')
    marks.push(...parts.map((part, i) => (i % 2 ? part : part && make('mark', { class: kind }, i === 0 && said ? spoken(said) : '', part))))
    marks.push(end === to ? spoken(';') : '', list[end - 1].rest)
  }
  return marks
}
