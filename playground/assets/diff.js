// The words in which two texts differ: Myers' algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986) in linear
// space. Words are compared much as sketches do: without case, accents, punctuation and white space.
// Numbers keep their points, and signs are words.

const segmenter = globalThis.Intl?.Segmenter && new Intl.Segmenter(undefined, { granularity: 'word' })
const wordy = /[\p{L}\p{N}]/u
const parts = /[\p{L}\p{M}\p{N}]+|[^\p{L}\p{M}\p{N}]/gu
// Signs are words: those of money, arithmetic and comparison, percent and degree.
const sign = /^(?:[$%&+<=>°‰‱]|(?![\0-\x7f⁄])[\p{Sc}\p{Sm}])$/u

// tokens splits a text into words {text, key, rest}, also in scripts without spaces. key is what is compared. rest is
// the text between the word and the next. The list's before is the text before the first word.
export function tokens (text) {
  const list = []
  list.before = ''
  for (const { segment } of segmenter
    ? segmenter.segment(text)
    : Array.from(text.matchAll(parts), ([segment]) => ({ segment }))) {
    const before = list.length ? list.at(-1).rest : list.before
    const between = rest => {
      if (list.length) list.at(-1).rest = rest
      else list.before = rest
    }
    if (wordy.test(segment)) {
      // A hyphen is a minus if a digit follows and no letter or digit precedes.
      if (/^[0-9]/.test(segment) && before.endsWith('-') && (before.length > 1 || !list.length)) {
        between(before.slice(0, -1))
        list.push({ text: '-', key: '−', rest: '' })
      }
      list.push({ text: segment, key: folded(segment), rest: '' })
    } else if (segment === '=' && before.endsWith('!')) {
      between(before.slice(0, -1))
      list.push({ text: '!=', key: '≠', rest: '' })
    } else if (sign.test(segment)) list.push({ text: segment, key: segment, rest: '' })
    else between(before + segment)
  }
  return list
}

// textOf returns tokens as text, with the text after the last word.
export const textOf = (list, from, to) => list.slice(from, to).map(({ text, rest }) => text + rest).join('')

// wordsOf returns tokens as text that ends with the last word. There must be one.
export const wordsOf = (list, from, to) => textOf(list, from, to - 1) + list[to - 1].text

// accents are combining marks that editions of one text often leave out, and the Arabic elongation.
const accents = new RegExp(
  '[\\u0300-\\u036f\\u1ab0-\\u1aff\\u1dc0-\\u1dff\\u20d0-\\u20ff\\ufe20-\\ufe2f' + // Latin, Greek, Cyrillic
    '\\u0591-\\u05bd\\u05bf\\u05c1\\u05c2\\u05c4\\u05c5\\u05c7' + // Hebrew
    '\\u0610-\\u061a\\u0640\\u064b-\\u065f\\u0670\\u06d6-\\u06dc\\u06df-\\u06e4\\u06e7\\u06e8\\u06ea-\\u06ed]', // Arabic
  'g'
)

// raised are digits that stand higher or lower, or in a circle, and fractions: 10² is not 102.
const raised = /(?<=\p{N})(?=[²³¹¼-¾⁰-₉⅐-⅟①-⓿])/gu

const folded = word =>
  word
    .replace(raised, ' ')
    .normalize('NFKD')
    .replace(accents, '')
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replace(/(?<!\p{N})[^\p{L}\p{M}\p{N}]|[^\p{L}\p{M}\p{N}](?!\p{N})/gu, '') // 1.5 is not 15
    .normalize('NFKC')

// PATIENCE limits the search for the best cut. Without it, two texts without a common word would take seconds.
const PATIENCE = 2500

// diff returns the edits from a to b, as runs {kind, from, to}: kind "same" and "gone" are tokens of a, "new" tokens of b.
export function diff (a, b) {
  const numbers = new Map()
  const number = ({ key }) => {
    if (!numbers.has(key)) numbers.set(key, numbers.size)
    return numbers.get(key)
  }
  const x = Int32Array.from(a, number)
  const y = Int32Array.from(b, number)
  const gone = new Uint8Array(x.length)
  const fresh = new Uint8Array(y.length)
  compare(x, 0, x.length, y, 0, y.length, gone, fresh)
  return runs(gone, fresh)
}

function runs (gone, fresh) {
  const list = []
  const add = (kind, from, to) => {
    if (to > from) list.push({ kind, from, to })
  }
  for (let i = 0, j = 0; i < gone.length || j < fresh.length;) {
    const [a, b] = [i, j]
    while (i < gone.length && gone[i]) i++
    while (j < fresh.length && fresh[j]) j++
    add('gone', a, i)
    add('new', b, j)
    const same = i
    while (i < gone.length && j < fresh.length && !gone[i] && !fresh[j]) {
      i++
      j++
    }
    add('same', same, i)
  }
  return list
}

// compare marks the tokens of x[a:b] that are gone and those of y[c:d] that are new.
function compare (x, a, b, y, c, d, gone, fresh) {
  for (;;) {
    while (a < b && c < d && x[a] === y[c]) {
      a++
      c++
    }
    while (a < b && c < d && x[b - 1] === y[d - 1]) {
      b--
      d--
    }
    if (a === b || c === d) {
      gone.fill(1, a, b)
      fresh.fill(1, c, d)
      return
    }
    const [i, j] = middle(x, a, b, y, c, d)
    compare(x, a, i, y, c, j, gone, fresh)
    a = i
    c = j
  }
}

// middle returns a point near the middle of a shortest path, by walking from both ends until they meet.
function middle (x, a, b, y, c, d) {
  const n = b - a
  const m = d - c
  const zero = Math.min(n + m, PATIENCE) + 1
  const size = 2 * zero + 1
  const forth = new Int32Array(size).fill(-1) // how far along x the paths from the start reach, by diagonal
  const back = new Int32Array(size).fill(-1) // the same from the end
  forth[zero + 1] = back[zero + 1] = 0
  const delta = n - m
  for (let cost = 0; cost < zero; cost++) {
    for (let k = -cost; k <= cost; k += 2) {
      let i =
        k === -cost || (k !== cost && forth[zero + k - 1] < forth[zero + k + 1]) ? forth[zero + k + 1] : forth[zero + k - 1] + 1
      while (i < n && i - k < m && i - k >= 0 && x[a + i] === y[c + i - k]) i++
      forth[zero + k] = i
      const other = delta - k
      if (delta % 2 && Math.abs(other) < cost && i + back[zero + other] >= n && inside(i, i - k, n, m)) return [a + i, c + i - k]
    }
    for (let k = -cost; k <= cost; k += 2) {
      let i = k === -cost || (k !== cost && back[zero + k - 1] < back[zero + k + 1]) ? back[zero + k + 1] : back[zero + k - 1] + 1
      while (i < n && i - k < m && i - k >= 0 && x[b - 1 - i] === y[d - 1 - i + k]) i++
      back[zero + k] = i
      const other = delta - k
      if (delta % 2 === 0 && Math.abs(other) <= cost && i + forth[zero + other] >= n && inside(i, i - k, n, m))
        return [b - i, d - i + k]
    }
  }
  return farthest(forth, zero, n, m, a, c)
}

const inside = (i, j, n, m) => i >= 0 && j >= 0 && i <= n && j <= m

// farthest returns the farthest point of the paths from the start.
function farthest (forth, zero, n, m, a, c) {
  let best = [0, 0]
  for (let k = -zero + 1; k < zero; k++) {
    const i = Math.min(forth[zero + k], n)
    const j = i - k
    if (inside(i, j, n, m) && i + j > best[0] + best[1] && i + j < n + m) best = [i, j]
  }
  return [a + best[0], c + best[1]]
}
