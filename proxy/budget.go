package proxy

const (
	// burst is how many second sendings one target may have saved up, and how many it may have had from the common store.
	burst = 5
	// maxSaved is how many second sendings the common store of an engine holds, so that a burst of trouble after a quiet day stays
	// a burst.
	maxSaved = 20
)

// purse is what the searches of one target, under one set of credentials, may cost in requests that are sent a second time.
type purse struct {
	earned float64 // by its own searches
	lent   float64 // taken from the common store
}

// budget is what the searches of an engine may cost in requests that are sent a second time. Every search earns a share of one for its
// target; what a target can't hold goes to a common store, from which every target may have a few until it has earned its own. So a
// target that is always in trouble spends its own and never that of others, and all together never spend more than was earned.
type budget struct {
	share float64
	saved float64 // the common store
}

// allow says whether a search may be tried that could need a second sending.
func (b *budget) allow(p *purse) bool {
	p.earned += b.share
	if over := p.earned - burst; over > 0 {
		p.earned, b.saved = burst, min(b.saved+over, maxSaved)
	}
	return p.earned >= 1 || p.lent < burst && b.saved >= 1
}

// spend takes one second sending.
func (b *budget) spend(p *purse) {
	if p.earned >= 1 || p.lent >= burst {
		p.earned--
		return
	}
	p.lent++
	b.saved--
}

// refund gives one back where it turned out to be no trouble of ours, first to the common store if it came from there.
func (b *budget) refund(p *purse) {
	if p.lent < 1 {
		p.earned = min(p.earned+1, burst)
		return
	}
	p.lent--
	b.saved = min(b.saved+1, maxSaved)
}

// allow says whether a search of the target may be tried that could need a second sending.
func (c *catalog) allow(who client, target string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.budget.allow(&c.entry(who, target).purse)
}

// spend takes a second sending of the target's.
func (c *catalog) spend(who client, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget.spend(&c.entry(who, target).purse)
}

// refund gives a second sending of the target's back.
func (c *catalog) refund(who client, target string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budget.refund(&c.entry(who, target).purse)
}
