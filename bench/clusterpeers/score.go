package main

// score is how much of what was found is right, and how much of what is right was found.
type score struct{ Precision, Recall float64 }

func (s score) f1() float64 {
	if s.Precision+s.Recall == 0 {
		return 0
	}
	return 2 * s.Precision * s.Recall / (s.Precision + s.Recall)
}

func scoreOf(both, found, wanted int) score {
	s := score{1, 1}
	if found > 0 {
		s.Precision = float64(both) / float64(found)
	}
	if wanted > 0 {
		s.Recall = float64(both) / float64(wanted)
	}
	return s
}

// sameClusters compares the pairs of documents that are in one cluster.
func sameClusters(found, wanted []int32) score {
	ours, theirs, both := map[int32]int{}, map[int32]int{}, map[[2]int32]int{}
	for i := range found {
		ours[found[i]]++
		theirs[wanted[i]]++
		both[[2]int32{found[i], wanted[i]}]++
	}
	return scoreOf(pairsIn(both), pairsIn(ours), pairsIn(theirs))
}

// pairsIn is how many pairs lie within sets of these sizes.
func pairsIn[K comparable](sizes map[K]int) (sum int) {
	for _, n := range sizes {
		sum += n * (n - 1) / 2
	}
	return sum
}

// samePairs compares pairs.
func samePairs(found, wanted []pair) score {
	all := make(map[pair]bool, len(wanted))
	for _, p := range wanted {
		all[p] = true
	}
	seen := make(map[pair]bool, len(found))
	both := 0
	for _, p := range found {
		if !seen[p] && all[p] {
			both++
		}
		seen[p] = true
	}
	return scoreOf(both, len(seen), len(all))
}

// copies are the documents that are not the first of their cluster: those that go when one of each cluster stays.
func copies(clusters []int32) []bool {
	seen, list := map[int32]bool{}, make([]bool, len(clusters))
	for i, c := range clusters {
		list[i] = seen[c]
		seen[c] = true
	}
	return list
}

// sameCopies compares which documents are copies.
func sameCopies(found, wanted []bool) score {
	var both, ours, theirs int
	for i := range found {
		if found[i] {
			ours++
		}
		if wanted[i] {
			theirs++
		}
		if found[i] && wanted[i] {
			both++
		}
	}
	return scoreOf(both, ours, theirs)
}
