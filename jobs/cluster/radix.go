package cluster

import (
	"cmp"
	"runtime"
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
	// apart is from how many on a bucket is sorted by a goroutine of its own.
	apart = 1 << 14
)

// sortPairs sorts in place on all cores: by one byte after the other from the highest on ("American flag sort", McIlroy and
// others 1993), a handful by comparing.
func sortPairs(list []pair) {
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wait sync.WaitGroup
	var sorted func(list []pair, shift int)
	sorted = func(list []pair, shift int) {
		for len(list) > fewPairs && shift >= 0 {
			bounds, one := flag(list, uint(shift))
			shift -= 8
			if one { // all of one byte
				continue
			}
			for b := range 256 {
				part := list[bounds[b]:bounds[b+1]]
				if len(part) < apart {
					sorted(part, shift)
					continue
				}
				select {
				case limit <- struct{}{}:
					wait.Add(1)
					go func() {
						defer wait.Done()
						sorted(part, shift)
						<-limit
					}()
				default:
					sorted(part, shift)
				}
			}
			return
		}
		slices.SortFunc(list, comparePairs)
	}
	sorted(list, 56)
	wait.Wait()
}

// flag puts the pairs in the order of one byte of hi and returns where each value begins; one says that there is but one value.
func flag(list []pair, shift uint) (bounds [257]int, one bool) {
	var count [256]int
	for i := range list {
		count[list[i].hi>>shift&255]++
	}
	if count[list[0].hi>>shift&255] == len(list) {
		return bounds, true
	}
	for b, n := range count {
		bounds[b+1] = bounds[b] + n
	}
	var next [256]int
	copy(next[:], bounds[:256])
	for b := range 256 {
		for at := next[b]; at < bounds[b+1]; at = next[b] {
			p := list[at]
			for to := int(p.hi >> shift & 255); to != b; to = int(p.hi >> shift & 255) {
				list[next[to]], p = p, list[next[to]]
				next[to]++
			}
			list[at] = p
			next[b]++
		}
	}
	return bounds, false
}

// sortKeys sorts numbers by their high 32 bits and keeps the order of those that are equal there. room is as long as the list;
// the result is one of the two.
func sortKeys(list, room []uint64) []uint64 {
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
	return list
}
