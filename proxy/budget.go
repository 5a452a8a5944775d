package proxy

const (
	// burst is how many second sendings one target may have saved up, and how many it may have had from the common store.
	burst = 5
	// maxSaved is how many second sendings the common store of an engine holds, so that a burst of trouble after a quiet day stays
	// a burst.
	maxSaved = 20
)

// purse is what the searches of one target, under one set of credentials, may cost in requests that are sent a second time. Every search
// earns a share of one for its target; what a target can't hold goes to a common store, from which every target may have a few until it
// has earned its own. So a target that is always in trouble spends its own and never that of others, and all together never spend more
// than was earned.
type purse struct {
	earned float64 // by its own searches
	lent   float64 // taken from the common store
}

// earn counts a search of the target, and reports whether it may be tried although it could need a second sending.
func (c *catalog) earn(who client, target string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := &c.entry(who, target).purse
	p.earned += c.share
	if over := p.earned - burst; over > 0 {
		p.earned, c.saved = burst, min(c.saved+over, maxSaved)
	}
	return p.earned >= 1 || p.lent < burst && c.saved >= 1
}

// spend takes one second sending.
func (c *catalog) spend(who client, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := &c.entry(who, target).purse; p.earned >= 1 || p.lent >= burst {
		p.earned--
	} else {
		p.lent++
		c.saved--
	}
}

// refund gives one back where it turned out to be no trouble of ours, first to the common store if it came from there.
func (c *catalog) refund(who client, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := &c.entry(who, target).purse; p.lent < 1 {
		p.earned = min(p.earned+1, burst)
	} else {
		p.lent--
		c.saved = min(c.saved+1, maxSaved)
	}
}
