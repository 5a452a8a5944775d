package proxy

import (
	"slices"
	"sync"
	"time"
)

// idle are the connections of a Transport that no request is using, with the limits that an http.Transport has for its own.
type idle struct {
	mu    sync.Mutex
	hosts map[string][]*direct // the one that was used last is at the end
	n     int
	sweep *time.Timer // nil for none
	ages  int         // how often all were closed: what is older is not kept
}

// age returns the age that connections are made in.
func (i *idle) age() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ages
}

// get returns the connection to a host that was used last, and nil for none.
func (i *idle) get(host string) *direct {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := i.hosts[host]
	if len(list) == 0 {
		return nil
	}
	last := len(list) - 1
	c := list[last]
	list[last] = nil
	i.hosts[host] = list[:last]
	i.n--
	return c
}

// put keeps a connection for another request, or closes it where there are enough or all were to be closed meanwhile.
func (i *idle) put(c *direct) {
	i.mu.Lock()
	full := c.age != i.ages || i.n >= c.of.MaxIdleConns || len(i.hosts[c.host]) >= c.of.MaxIdleConnsPerHost
	if !full {
		if i.hosts == nil {
			i.hosts = map[string][]*direct{}
		}
		c.since = clock()
		i.hosts[c.host] = append(i.hosts[c.host], c)
		i.n++
		if i.sweep == nil {
			limit := c.of.IdleConnTimeout
			i.sweep = time.AfterFunc(limit, func() { i.expire(limit) })
		}
	}
	i.mu.Unlock()
	if full {
		c.cut()
	}
}

// expire closes what has not been used for so long, and looks again when the next is due.
func (i *idle) expire(limit time.Duration) {
	i.mu.Lock()
	if i.sweep == nil { // there is none
		i.mu.Unlock()
		return
	}
	now, next := clock(), time.Duration(-1)
	var old []*direct
	for host, list := range i.hosts {
		n := 0
		for n < len(list) && now-list[n].since >= limit {
			n++
		}
		old = append(old, list[:n]...)
		if i.hosts[host] = slices.Delete(list, 0, n); len(i.hosts[host]) > 0 {
			if due := limit - (now - i.hosts[host][0].since); next < 0 || due < next {
				next = due
			}
		}
	}
	i.n -= len(old)
	i.sweep.Stop()
	if i.sweep = nil; next >= 0 {
		i.sweep = time.AfterFunc(next, func() { i.expire(limit) })
	}
	i.mu.Unlock()
	for _, c := range old {
		c.cut()
	}
}

// close closes all of them, and those that are in use once they no longer are.
func (i *idle) close() {
	i.mu.Lock()
	i.ages++
	i.mu.Unlock()
	i.expire(0)
}
