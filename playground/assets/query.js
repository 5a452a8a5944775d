// A query is words, or the JSON of a client's own search. Its words are marked in the texts that were found.

import { tokens } from './diff.js'
import { make } from './dom.js'

export const isJSON = query => query.trimStart().startsWith('{')

// notSought matches the members of a search whose texts are not searched words.
const notSought = /^(filter|must_not|fields?|default_field|path|type|(default_)?operator|analyzer|minimum_should_match|fuzziness|rewrite|(score|boost)_mode|functions|script.*)$/

// wordsIn adds the texts in a part of a search to a list.
function wordsIn (part, list) {
  if (typeof part === 'string') list.push(part)
  else if (part && typeof part === 'object')
    for (const [name, value] of Object.entries(part)) if (!notSought.test(name)) wordsIn(value, list)
  return list
}

const unspaced = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u

// sought returns a regular expression for the words of a query; null if it has none.
export function sought (query) {
  let texts = [query]
  if (isJSON(query)) {
    const { query: wanted, q } = JSON.parse(query)
    texts = wordsIn([wanted, q], [])
  }
  const words = new Set(tokens(texts.join(' ')).map(({ text }) => text.toLowerCase()).filter(text => /[\p{L}\p{N}]/u.test(text)))
  if (!words.size) return null
  const one = word => {
    const text = word.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
    return unspaced.test(word) ? text : `(?<![\\p{L}\\p{M}\\p{N}])${text}(?![\\p{L}\\p{M}\\p{N}])`
  }
  return new RegExp([...words].slice(0, 100).map(one).join('|'), 'giu') // only the first 100 words of a very long query
}

// marked returns a text with the sought words in <mark> elements.
export function marked (text, sought) {
  const list = []
  let from = 0
  for (const { 0: word, index } of sought ? text.matchAll(sought) : []) {
    list.push(text.slice(from, index), make('mark', null, word))
    from = index + word.length
  }
  return [...list, text.slice(from)]
}

// excerpt returns a part of a text. If the first sought word is far in, the part begins shortly before it.
export function excerpt (text, sought, most) {
  const first = sought ? text.search(sought) : 0
  const from = first > 40 ? Math.min(text.indexOf(' ', first - 25) + 1, first) : 0
  const cut = text.slice(from, from + most)
  return (from ? '… ' : '') + (cut.toWellFormed?.() ?? cut)
}
