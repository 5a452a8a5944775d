package cluster

import (
	"cmp"
	"slices"
	"sync"
)

// pair is a record that is sorted: by hi, then by lo.
type pair struct{ hi, lo uint64 }

func comparePairs(p, q pair) int {
	if p.hi != q.hi {
		return cmp.Compare(p.hi, q.hi)
	}
	return cmp.Compare(p.lo, q.lo)
}

const (
	// fewPairs is up to how many are sorted by comparing.
	fewPairs = 96
	// apart is from how many on those of one byte are sorted by a goroutine of their own.
	apart = 1 << 14
)

// sortPairs sorts in place by one byte of hi after the other, from the one at shift down ("American flag sort", McIlroy and others
// 1993), a handful by comparing.
func sortPairs(list []pair, shift int) {
	if len(list) <= fewPairs || shift < 0 {
		slices.SortFunc(list, comparePairs)
		return
	}
	var next, end [256]int
	for _, p := range list {
		end[p.hi>>shift&255]++
	}
	sum := 0
	for b, n := range end {
		next[b], sum = sum, sum+n
		end[b] = sum
	}
	for b := range 256 {
		for at := next[b]; at < end[b]; at = next[b] {
			p := list[at]
			for to := int(p.hi >> shift & 255); to != b; to = int(p.hi >> shift & 255) {
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
			sortPairs(part, shift-8)
		} else {
			wait.Go(func() { sortPairs(part, shift-8) })
		}
		start = end
	}
	wait.Wait()
}

// sortKeys sorts numbers by their high 32 bits and keeps the order of those that are equal there. room is as long as the list, and
// has the result.
func sortKeys(list, room []uint64) {
	const digit, mask = 11, 1<<11 - 1
	var count [3][1 << digit]uint32
	for _, x := range list {
		count[0][x>>32&mask]++
		count[1][x>>43&mask]++
		count[2][x>>54]++
	}
	for pass := range count {
		sum, c := uint32(0), &count[pass]
		for i, n := range c {
			c[i], sum = sum, sum+n
		}
		shift := uint(32 + digit*pass)
		for _, x := range list {
			at := &c[x>>shift&mask]
			room[*at] = x
			*at++
		}
		list, room = room, list
	}
}
