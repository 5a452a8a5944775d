// Folding in the page, so that moving the threshold needs no request. It does the same as package rerank of the sidecar, but
// takes the agreements from a reply instead of sketches. A test compares the two.

// neighbours returns, for each rank, the earlier ranks that it can fold into at some threshold: {rank, agreement, same, decided, vectors}, sorted by rank.
export function neighbours (hits, pairs) {
  const list = hits.map(() => [])
  for (const [i, j, agreement, same] of pairs) list[j].push({ rank: i, agreement, same: same === 1, decided: same === 2, vectors: same === 3 })
  for (const of of list) of.sort((a, b) => a.rank - b.rank)
  return list
}

// fold returns the collapsed list over the ranks in the window: {groups, group, shown}. A group is {leader,
// representative, kept, folded} in ranks. group has the number of each rank's group, -1 beyond the window. shown are the ranks
// of the collapsed list in order; those beyond the window come last, unchanged.
export function fold (hits, near, { threshold, window, keep = 1, transitive = false }) {
  const end = Math.min(Math.max(window, 0), hits.length)
  const members = (transitive ? components : grouped)(hits, near, threshold, end)
  const group = new Array(hits.length).fill(-1)
  const place = new Array(end).fill(-1) // the rank that is shown in each place
  const groups = members.map((ranks, n) => {
    for (const rank of ranks) group[rank] = n
    return choose(hits, ranks, keep, place)
  })
  const shown = place.filter(rank => rank >= 0)
  for (let rank = end; rank < hits.length; rank++) shown.push(rank)
  return { groups, group, shown }
}

// grouped adds each hit to the group of the first leader that it folds into.
function grouped (hits, near, threshold, end) {
  const groups = []
  const leads = new Map()
  for (let rank = 0; rank < end; rank++) {
    const into = !hits[rank].pinned && near[rank].find(n => n.agreement >= threshold && leads.has(n.rank))
    if (into) {
      groups[leads.get(into.rank)].push(rank)
      continue
    }
    leads.set(rank, groups.length)
    groups.push([rank])
  }
  return groups
}

// components groups connected hits. A component joins the first pinned hit that ranks before it and is near one of its hits.
function components (hits, near, threshold, end) {
  const first = Array.from({ length: end }, (_, rank) => rank)
  const of = rank => {
    while (first[rank] !== rank) rank = first[rank] = first[first[rank]]
    return rank
  }
  const join = (a, b) => {
    first[Math.max(of(a), of(b))] = Math.min(of(a), of(b))
  }
  const adopted = new Map()
  for (let rank = 0; rank < end; rank++) {
    if (hits[rank].pinned) continue
    for (const n of near[rank]) if (n.agreement >= threshold && !hits[n.rank].pinned) join(rank, n.rank)
  }
  for (let rank = 0; rank < end; rank++) {
    if (hits[rank].pinned) continue
    const root = of(rank)
    const before = adopted.get(root) ?? root
    const pinned = near[rank].find(n => n.rank < before && n.agreement >= threshold && hits[n.rank].pinned)
    if (pinned) adopted.set(root, pinned.rank)
  }
  for (const [root, pinned] of adopted) join(root, pinned)
  const groups = new Map()
  for (let rank = 0; rank < end; rank++) {
    const root = of(rank)
    groups.has(root) ? groups.get(root).push(rank) : groups.set(root, [rank])
  }
  return [...groups.values()]
}

// choose makes a group of its members, and sets the places of those that are shown. The best takes the leader's place. If the leader
// is shown too, it takes the place of the best.
function choose (hits, members, keep, place) {
  const leader = members[0]
  const rest = hits[leader].pinned ? members.slice(1) : members.slice()
  rest.sort((a, b) => hits[a].order - hits[b].order || a - b)
  const best = hits[leader].pinned ? [leader, ...rest] : rest
  const kept = best.slice(1, Math.max(keep, 1))
  const folded = best.slice(Math.max(keep, 1))
  place[leader] = best[0]
  for (const rank of kept) place[rank === leader ? best[0] : rank] = rank
  const rising = (a, b) => a - b
  return { leader, representative: best[0], kept: kept.sort(rising), folded: folded.sort(rising) }
}

// between returns the pair of two ranks, or undefined if they can't fold.
export function between (near, a, b) {
  const earlier = Math.min(a, b)
  return near[Math.max(a, b)].find(n => n.rank === earlier)
}

// nearest returns for each rank its greatest agreement with an earlier one within the window, 0 for none.
export function nearest (near, window) {
  return near.slice(0, Math.max(window, 0)).map(list => list.reduce((most, n) => Math.max(most, n.agreement), 0))
}
