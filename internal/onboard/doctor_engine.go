package onboard

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/upstream"
)

// engineChecks are the checks of one engine.
type engineChecks struct {
	*report
	engine  *config.Engine
	key     string // of the engine in the configuration
	network network
	*upstream.Engine
	// product is what the engine says of itself, and at the address of the first node that does.
	product adapters.Product
	at      string
	// search is an index with documents to search, one that is ready where there is one, and fields with text in it.
	search struct {
		index  string
		fields []string
		ready  bool
	}
}

// network is how doctor reaches engines.
type network interface {
	// open opens the engine for jobs.
	open(*config.Engine) (*upstream.Engine, error)
}

// realNetwork is the network as it is.
type realNetwork struct{}

func (realNetwork) open(e *config.Engine) (*upstream.Engine, error) { return upstream.Open(e) }

func (p *engineChecks) ok(what, format string, args ...any) {
	p.add(Check{stateOK, p.engine.Name, what, fmt.Sprintf(format, args...), ""})
}

func (p *engineChecks) warn(what, hint, format string, args ...any) {
	p.add(Check{stateWarn, p.engine.Name, what, fmt.Sprintf(format, args...), hint})
}

func (p *engineChecks) fail(what, hint, format string, args ...any) {
	p.add(Check{stateFail, p.engine.Name, what, fmt.Sprintf(format, args...), hint})
}

// check makes the checks of one engine.
func (p *engineChecks) check(ctx context.Context) {
	if p.engine.Kind == kind.Embedded {
		p.ok("node", "the embedded engine lives inside serve: there is nothing to look at from outside")
		p.listener(ctx)
		return
	}
	if !p.nodes(ctx) {
		return
	}
	p.credentials()
	seen := map[string]bool{}
	for i, rule := range p.Rules {
		p.rule(ctx, fmt.Sprintf("%s.indices[%d]", p.key, i), rule, seen)
	}
	p.searchEngine(ctx)
	running := p.listener(ctx)
	if p.Kind.Sniffed() {
		p.sniffing(ctx, running)
	}
}

// nodes looks at each node, and reports whether there is one to go on with.
func (p *engineChecks) nodes(ctx context.Context) bool {
	var err error
	if p.Engine, err = p.network.open(p.engine); err != nil {
		p.fail("node", "correct what it says in "+p.key, "%v", err)
		return false
	}
	products, errs := make([]adapters.Product, len(p.engine.URLs)), make([]error, len(p.engine.URLs))
	for i, text := range p.engine.URLs {
		products[i], errs[i] = p.ask(ctx, text)
	}
	dead := p.fail
	if slices.Contains(errs, nil) { // then requests go to the others
		dead = p.warn
	}
	for i, text := range p.engine.URLs {
		product := products[i]
		if errs[i] != nil {
			hint := fmt.Sprintf("start it, or correct %s.urls[%d]", p.key, i)
			if strings.Contains(errs[i].Error(), "answered 401") {
				hint = fmt.Sprintf("set %s.credentials to what may log in there", p.key)
			}
			dead("node", hint, "%s: %v", text, errs[i])
			continue
		}
		if p.node(text, product) {
			p.at = cmp.Or(p.at, text)
		}
		if p.product.Cluster != "" && product.Cluster != "" && p.product.Cluster != product.Cluster {
			p.fail("node", fmt.Sprintf("give each cluster an entry of its own in engines, and %s.urls the nodes of one", p.key),
				"%s belongs to another cluster than the nodes before it", text)
		}
		if p.product.Name == "" {
			p.product = product
		}
	}
	return p.at != ""
}

// ask asks at one address of the engine, or a sidecar's in front of it, what answers there.
func (p *engineChecks) ask(ctx context.Context, at string) (adapters.Product, error) {
	one := *p.engine
	one.URLs = []string{at}
	o, err := p.network.open(&one)
	if err != nil {
		return adapters.Product{}, err
	}
	return within(ctx, o.Store.Product)
}

// node says what a node is, and reports whether it is of the engine's kind.
func (p *engineChecks) node(at string, product adapters.Product) bool {
	is, version := kind.OfProduct(product.Name), product.Name+" "+product.Version
	switch {
	case product.Name == "":
		p.warn("node", "see yourself that it is "+p.Kind.Product+" "+p.Kind.TestedVersions(), "%s answers, and does not tell these credentials what it is", at)
	case is.Name != p.engine.Kind:
		p.fail("node", fmt.Sprintf("set %s.kind: %s, or correct its urls", p.key, is.Name), "%s is %s", at, version)
		return false
	case !is.Tested(product.Version):
		p.warn("node", "try what your clients do through the sidecar before you rely on it",
			"%s is %s, which is not tested: %s. Jobs that write to stored documents refuse it without --untested", at, version, is.TestedVersions())
	default:
		p.ok("node", "%s is %s", at, version)
	}
	if len(product.Beside) > 0 {
		p.warn("node", "keep clients from it: what they write there gets no sketch, or keeps that of an older text, and what they search for is not collapsed",
			"%s also takes requests that go past the sidecar: %s", at, strings.Join(product.Beside, ", "))
	}
	return true
}

// rule looks at the indices of one rule. Those that were seen before belong to an earlier one.
func (p *engineChecks) rule(ctx context.Context, key string, rule *rule.Rule, seen map[string]bool) {
	indices, err := within(ctx, func(ctx context.Context) ([]adapters.Index, error) { return p.Matching(ctx, rule.Match) })
	if err != nil {
		p.fail("rule", fmt.Sprintf("%s.credentials must be allowed to read what stands there", p.key), "%s: %v", rule.Match, err)
		return
	}
	if len(indices) == 0 {
		p.warn("rule", "it holds for the first one of that name; if there should be one, correct "+key+".match",
			"%s matches no index yet", rule.Match)
	}
	for _, index := range indices {
		if seen[index.Name] || ctx.Err() != nil {
			continue
		}
		seen[index.Name] = true
		if of := index.Rule(p.Rules); of != nil {
			p.index(ctx, key, index, of)
			continue
		}
		p.warn("rule", "name the index in "+key+".match", "%s leads to %s, and %s", rule.Match, index.Name, index.Why)
	}
}

// sniffing looks at where clients go that ask for the nodes' addresses.
func (p *engineChecks) sniffing(ctx context.Context, running *url.URL) {
	theirs := slices.DeleteFunc(slices.Clone(p.product.Nodes), func(node string) bool {
		return config.ListensAt(p.engine.Listen, &url.URL{Scheme: "http", Host: node[strings.LastIndexByte(node, '/')+1:]})
	})
	told := cmp.Or(p.engine.Advertise, "the address under which they reach the sidecar")
	switch {
	case p.product.Nodes == nil:
		p.ok("sniffing", "the nodes' addresses are not told to these credentials: "+
			"whether clients that sniff would go past the sidecar can't be seen")
	case !p.engine.RewriteSniffing && len(theirs) > 0:
		p.warn("sniffing", fmt.Sprintf("set %s.rewrite_sniffing: true, or switch sniffing off in the clients", p.key),
			"clients that sniff are told %s, and go there past the sidecar", few(theirs))
	case !p.engine.RewriteSniffing:
		p.ok("sniffing", "clients that sniff are told the sidecar's own address")
	case running == nil:
		p.ok("sniffing", "clients that sniff will be told %s", told)
	default:
		p.advertised(ctx, running, told)
	}
}

// advertised asks the running sidecar what it tells clients that sniff.
func (p *engineChecks) advertised(ctx context.Context, running *url.URL, meant string) {
	product, err := p.ask(ctx, running.String())
	nodes := slices.Compact(product.Nodes)
	if err != nil || len(nodes) != 1 || nodes[0] != cmp.Or(p.engine.Advertise, running.Host) {
		p.fail("sniffing", "restart it with this configuration",
			"the sidecar that runs tells clients that sniff %s, not %s", few(nodes), meant)
		return
	}
	p.ok("sniffing", "clients that sniff are told %s", meant)
}

// few returns the first few of a list.
func few(list []string) string {
	const shown = 3
	if len(list) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}
