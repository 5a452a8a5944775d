package cluster

import (
	"cmp"
	"slices"
	"sync"
)

// row is what is sorted: by its first number, then by its second.
type row interface{ [2]uint64 | [3]uint64 }

// pair is the usual one.
type pair = [2]uint64

func compareRows[R row](p, q R) int {
	if p[0] != q[0] {
		return cmp.Compare(p[0], q[0])
	}
	return cmp.Compare(p[1], q[1])
}

const (
	// fewRows is up to how many are sorted by insertion: two thirds of the time that slices.SortFunc takes.
	fewRows = 48
	// apart is from how many on those of one byte are sorted by a goroutine of their own.
	apart = 1 << 14
)

// sortRows sorts in place by one byte of the first number after the other, from the one at shift down ("American flag sort", McIlroy and others
// 1993), a handful by comparing.
func sortRows[R row](list []R, shift int) {
	if shift < 0 {
		slices.SortFunc(list, compareRows[R])
		return
	}
	if len(list) <= fewRows {
		insertRows(list)
		return
	}
	var next, end [256]int
	for _, p := range list {
		end[p[0]>>shift&255]++
	}
	sum := 0
	for b, n := range end {
		next[b], sum = sum, sum+n
		end[b] = sum
	}
	for b := range 256 {
		for at := next[b]; at < end[b]; at = next[b] {
			p := list[at]
			for to := int(p[0] >> shift & 255); to != b; to = int(p[0] >> shift & 255) {
				list[next[to]], p = p, list[next[to]]
				next[to]++
			}
			list[at] = p
			next[b]++
		}
	}
	var wait sync.WaitGroup
	start := 0
	for _, end := range end {
		if part := list[start:end]; len(part) < apart {
			sortRows(part, shift-8)
		} else {
			wait.Go(func() { sortRows(part, shift-8) })
		}
		start = end
	}
	wait.Wait()
}

// insertRows sorts a handful.
func insertRows[R row](list []R) {
	for i := 1; i < len(list); i++ {
		p, at := list[i], i
		for ; at > 0 && (p[0] < list[at-1][0] || p[0] == list[at-1][0] && p[1] < list[at-1][1]); at-- {
			list[at] = list[at-1]
		}
		list[at] = p
	}
}
