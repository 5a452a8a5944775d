// The two lists: the engine's hits, each with what happens to it, and the collapsed ones, each with what folded into it.
//
// A view has the reply, near (fold.neighbours), folded (fold.fold), threshold, sought (query.sought), open (ranks whose comparison is
// open), words (the comparison elements, by both ranks), and jump(rank), which shows a hit in the collapsed list.

import { diff, textOf, tokens, wordsOf } from './diff.js'
import { counted, make, spoken, two } from './dom.js'
import { around, elided } from './elided.js'
import { between } from './fold.js'
import { deviation, scale } from './histogram.js'
import { excerpt, marked } from './query.js'

const few = 4 // folded versions that are shown at once
const snippetLength = 400

// engineItem returns the item of a rank in the engine's list.
export function engineItem (view, rank) {
  const { hits } = view.reply
  const group = view.folded.groups[view.folded.group[rank]]
  const isFolded = group?.folded.includes(rank)
  const several = group && group.folded.length + group.kept.length > 0
  return make(
    'li',
    {
      class: 'hit' + (isFolded ? ' gone' : several ? ' leads' : ''),
      'data-rank': rank,
      'data-group': several ? view.folded.group[rank] : null
    },
    make('span', { class: 'rank' }, spoken('rank '), String(rank + 1)),
    heading(view, hits[rank]),
    snippet(view, hits[rank]),
    make('p', { class: 'meta' }, fate(view, rank, group, isFolded), about(view, rank))
  )
}

// fate describes, in the engine's list, what happens to a hit.
function fate (view, rank, group, isFolded) {
  if (!group) return make('span', { class: 'tag' }, 'beyond the window')
  if (isFolded) {
    return make(
      'button',
      { type: 'button', class: 'tag fold', click: () => view.jump(rank) },
      `folds into ${group.representative + 1}`,
      spoken(', show it')
    )
  }
  if (group.folded.length && rank === group.representative) {
    return make(
      'button',
      { type: 'button', class: 'tag keep', click: () => view.jump(rank) },
      `stands for ${group.folded.length + group.kept.length + 1}`,
      spoken(', show it')
    )
  }
  return null
}

// collapsedItem is an item of the collapsed list.
export function collapsedItem (view, place) {
  const rank = view.folded.shown[place]
  const hit = view.reply.hits[rank]
  const number = view.folded.group[rank]
  const group = view.folded.groups[number]
  const several = group && group.folded.length + group.kept.length > 0
  const moved = rank === place ? null : make('span', null, `rank ${rank + 1}`)
  return make(
    'li',
    { class: 'hit' + (several ? ' leads' : ''), 'data-rank': rank, 'data-group': several ? number : null },
    make('span', { class: 'rank' }, spoken('place '), String(place + 1)),
    heading(view, hit),
    snippet(view, hit),
    make(
      'p',
      { class: 'meta' },
      moved,
      group ? null : make('span', { class: 'tag' }, 'beyond the window'),
      beside(view, rank, group),
      about(view, rank)
    ),
    nearly(view, rank, group),
    group?.representative === rank && group.folded.length > 0 && versions(view, group),
    whole(view, hit)
  )
}

// beside says, for a shown hit that is not the representative, beside which rank it is shown.
function beside (view, rank, group) {
  if (!group || group.representative === rank) return null
  return make('span', { class: 'tag keep' }, `shown beside rank ${group.representative + 1}`)
}

// nearly says which earlier hit a hit almost folds into.
function nearly (view, rank, group) {
  if (!group || group.leader !== rank) return null
  const leads = new Set(view.folded.groups.map(g => g.leader))
  const close = view.near[rank].filter(
    n =>
      leads.has(n.rank) &&
      n.agreement < view.threshold &&
      n.agreement >= view.threshold - deviation(view.reply.errors, n.agreement)
  )
  if (!close.length) return apart(view, rank)
  const best = close.reduce((a, b) => (b.agreement > a.agreement ? b : a))
  return make(
    'p',
    { class: 'nearly' },
    `Almost folds into rank ${best.rank + 1}: agreement ${two(best.agreement)}, less than one standard error below the threshold.`
  )
}

// apart says why a hit does not fold into an earlier one, although their agreement reaches the threshold.
function apart (view, rank) {
  const pair = view.reply.apart.find(p => p.rank === rank && p.agreement >= view.threshold)
  return pair
    ? make('p', { class: 'nearly' }, `Agrees with rank ${pair.with + 1} by ${two(pair.agreement)} and does not fold: ${pair.why}.`)
    : null
}

const texts = (view, hit) => view.reply.rule.fields.map(name => hit.fields[name] ?? '')

function heading (view, hit) {
  return make('h3', { dir: 'auto', lang: '' }, marked(hit.title || hit.id, view.sought))
}

function snippet (view, hit) {
  const rest = texts(view, hit)
    .filter(text => text && text !== hit.title)
    .join(' ')
  if (!rest) return null
  return make('p', { class: 'snippet', dir: 'auto', lang: '' }, marked(excerpt(rest, view.sought, snippetLength), view.sought))
}

// about shows the other details of a hit.
function about (view, rank) {
  const hit = view.reply.hits[rank]
  const parts = [make('span', { class: 'id' }, hit.id)]
  if (view.reply.hits.some(other => other.index !== hit.index)) parts.push(make('span', null, hit.index))
  if (Number.isFinite(hit.score)) parts.push(make('span', null, `score ${Number(hit.score.toPrecision(4))}`))
  if (hit.pinned) parts.push(make('span', { class: 'tag' }, 'pinned: never folds'))
  if (hit.sketch === 'none') parts.push(make('span', { class: 'tag' }, 'no sketch: never folds'))
  else if (hit.stale) parts.push(make('span', { class: 'tag' }, 'changed without the sidecar'))
  else if (hit.sketch === 'computed') parts.push(make('span', null, 'sketch computed'))
  if (hit.sketch !== 'none' && hit.shingles < view.reply.rule.min_shingles)
    parts.push(make('span', null, `${counted(hit.shingles, 'shingle')}: folds only with the same words`))
  else if (hit.words > 0 && hit.words < view.reply.rule.min_words)
    parts.push(make('span', null, `${counted(hit.words, 'word')}: folds only with the same words`))
  return parts
}

// versions lists the hits that folded into a representative.
function versions (view, group) {
  const items = group.folded.map(rank => version(view, group, rank))
  const box = make('div', { class: 'versions' }, make('h4', null, counted(items.length, 'folded version')))
  const list = make('ul', { role: 'list' }, items.slice(0, few))
  box.append(list)
  const show = () => {
    list.append(...items.slice(few))
  }
  if (items.length > few && group.folded.slice(few).some(rank => view.open.has(rank))) show()
  else if (items.length > few) {
    const more = make(
      'button',
      {
        type: 'button',
        class: 'plain more',
        click: () => {
          show()
          items[few].querySelector('summary').focus()
          more.remove()
        }
      },
      counted(items.length - few, 'more version')
    )
    box.append(more)
  }
  return box
}

// version is a folded hit; its words are compared when it is opened.
function version (view, group, rank) {
  const hit = view.reply.hits[rank]
  const other = view.reply.hits[group.representative]
  const key = `${group.representative} ${rank}`
  const box = view.words.get(key) ?? make('div', { class: 'words' })
  const show = () => {
    if (!box.childNodes.length) box.append(...differences(view.reply.rule.fields, other, hit, group.representative))
    view.words.set(key, box)
  }
  const summary = make(
    'summary',
    null,
    measured(view, group, rank),
    make('span', { class: 'which' }, `rank ${rank + 1}`),
    hit.title.toLowerCase() === other.title.toLowerCase()
      ? make('span', { class: 'name id' }, hit.id)
      : make('span', { class: 'name', dir: 'auto', lang: '' }, hit.title || hit.id)
  )
  const details = make('details', { 'data-version': rank, open: view.open.has(rank) }, summary, box)
  details.addEventListener('toggle', () => {
    details.open ? view.open.add(rank) : view.open.delete(rank)
    if (details.open) show()
  })
  if (details.open) show()
  return make('li', null, details)
}

// measured shows the agreement with the representative or, if there is none, with the leader.
function measured (view, group, rank) {
  const pair = between(view.near, group.representative, rank)
  if (!pair) {
    const led = between(view.near, group.leader, rank)
    return make('span', { class: 'agreement' }, led ? `${two(led.agreement)} with rank ${group.leader + 1}` : 'by way of others')
  }
  if (pair.decided) return make('span', { class: 'agreement' }, 'decided')
  if (pair.vectors) return make('span', { class: 'agreement' }, 'by vectors')
  if (pair.same) return make('span', { class: 'agreement' }, scale(1, 0, view.threshold), make('span', null, 'same text'))
  const error = deviation(view.reply.errors, pair.agreement)
  const close = pair.agreement < view.threshold + error
  return make(
    'span',
    { class: 'agreement' },
    scale(pair.agreement, error, view.threshold),
    spoken('agreement '),
    make('span', null, two(pair.agreement)),
    close && make('span', { class: 'tag' }, pair.agreement < view.threshold ? 'by way of others' : 'only just')
  )
}

// differences shows the fields in which two hits differ, with the words that only one of them has.
function differences (names, other, hit, rank) {
  const compared = names.map(name => {
    const [a, b] = [tokens(other.fields[name] ?? ''), tokens(hit.fields[name] ?? '')]
    return { name, a, b, runs: diff(a, b) }
  })
  const sum = kind =>
    compared.reduce((n, { runs }) => n + runs.reduce((m, run) => m + (run.kind === kind ? run.to - run.from : 0), 0), 0)
  const [gone, fresh] = [sum('gone'), sum('new')]
  const equal = names.every(name => other.fields[name] === hit.fields[name])
  const head = make(
    'p',
    { class: 'note' },
    gone + fresh
      ? [
          make('ins', null, counted(fresh, 'word')),
          ' only here, ',
          make('del', null, counted(gone, 'word')),
          ` only in rank ${rank + 1}.`
        ]
      : equal
        ? 'Nothing differs.'
        : 'No word differs, only case, accents, punctuation or white space.',
    hit.cut || other.cut ? ' Long texts are cut here; the sketches are of the whole.' : null
  )
  return [head, ...compared.filter(({ runs }) => runs.some(run => run.kind !== 'same')).map(one => field(one, rank))]
}

function field ({ name, a, b, runs }, rank) {
  const text = make('p', { class: 'text', dir: 'auto', lang: '' }, a.before)
  runs.forEach(({ kind, from, to }, i) => {
    if (kind === 'same') text.append(...same(a, from, to, i === 0, i === runs.length - 1))
    else if (kind === 'gone') {
      const replaced = runs[i + 1]?.kind === 'new'
      text.append(
        make('del', null, spoken(`only in rank ${rank + 1}: `), wordsOf(a, from, to)),
        spoken(';'),
        replaced ? ' ' : a[to - 1].rest
      )
    } else text.append(make('ins', null, spoken('only here: '), wordsOf(b, from, to)), spoken(';'), b[to - 1].rest)
  })
  return make('div', { class: 'part' }, make('p', { class: 'name' }, name), text)
}

// same shows a run of equal words, shortened if it is long.
function same (list, from, to, first, last) {
  const start = first ? from : Math.min(to, from + around)
  const end = last ? to : Math.max(from, to - around)
  if (end - start < 2 * around) return [textOf(list, from, to)]
  const [button] = elided(end - start, [textOf(list, start, end)])
  return [textOf(list, from, start), button, ' ', textOf(list, end, to)]
}

// whole is a hit's text, made when it is opened.
function whole (view, hit) {
  const box = make('div', { class: 'words' })
  const details = make('details', { class: 'whole' }, make('summary', null, 'Text', spoken(` of ${hit.title || hit.id}`)), box)
  details.addEventListener('toggle', () => {
    if (!details.open || box.childNodes.length) return
    for (const name of view.reply.rule.fields) {
      box.append(
        make(
          'div',
          { class: 'part' },
          make('p', { class: 'name' }, name),
          make('p', { class: 'text', dir: 'auto', lang: '' }, marked(hit.fields[name] ?? '', view.sought))
        )
      )
    }
    if (hit.cut) box.append(make('p', { class: 'note' }, 'Long texts are cut here; the sketch is of the whole text.'))
  })
  return details
}
