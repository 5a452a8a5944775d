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
	// product is the engine's product, and at the address of the first node that answers.
	product adapters.Product
	at      string
	// problems are those of indices that are not yet among the checks.
	problems []problem
	// search is an index with documents to search for, if possible one that is ready, and its fields with text.
	search struct {
		index  string
		fields []string
		ready  bool
	}
}

// network opens connections to engines. Tests replace it.
type network interface {
	// open opens the engine with the credentials of jobs.
	open(*config.Engine) (*upstream.Engine, error)
}

type realNetwork struct{}

func (realNetwork) open(e *config.Engine) (*upstream.Engine, error) { return upstream.Open(e) }

func (p *engineChecks) ok(what, format string, args ...any) {
	p.add(Check{stateOK, p.engine.Name, what, fmt.Sprintf(format, args...), "", nil})
}

func (p *engineChecks) warn(what, hint, format string, args ...any) {
	p.add(Check{stateWarn, p.engine.Name, what, fmt.Sprintf(format, args...), hint, nil})
}

func (p *engineChecks) fail(what, hint, format string, args ...any) {
	p.add(Check{stateFail, p.engine.Name, what, fmt.Sprintf(format, args...), hint, nil})
}

// problem is a check of one index that others may fail for the same cause.
type problem struct {
	Check
	index, cause string
}

// found adds a problem of an index. The format is for its line; cause is for the line that it shares with others.
func (p *engineChecks) found(state, what, hint, index, cause, format string, args ...any) {
	p.problems = append(p.problems, problem{Check{state, p.engine.Name, what, fmt.Sprintf(format, args...), hint, nil}, index, cause})
}

// addProblems adds the checks of the problems that were found: one for each cause.
func (p *engineChecks) addProblems() {
	for len(p.problems) > 0 {
		first, others, names := p.problems[0], []problem(nil), []string(nil)
		for _, other := range p.problems {
			if other.State == first.State && other.Check.Check == first.Check.Check && other.Hint == first.Hint && other.cause == first.cause {
				names = append(names, other.index)
			} else {
				others = append(others, other)
			}
		}
		if names = slices.Compact(names); len(names) > 1 {
			first.Text, first.Indices = fmt.Sprintf("%d indices (%s): %s", len(names), few(names), first.cause), names
		}
		p.add(first.Check)
		p.problems = others
	}
}

// check checks one engine: its nodes, credentials, rules and indices, their cases, a search, the sidecar's listener and sniffing.
func (p *engineChecks) check(ctx context.Context) {
	if p.engine.Kind == kind.Embedded {
		p.ok("node", "the embedded engine runs inside serve: there is nothing to check from outside")
		p.cases(ctx)
		p.listener(ctx)
		return
	}
	if !p.nodes(ctx) {
		p.Engine = nil
		p.cases(ctx)
		return
	}
	p.credentials()
	seen := map[string]bool{}
	for i, rule := range p.Rules {
		p.rule(ctx, fmt.Sprintf("%s.indices[%d]", p.key, i), rule, seen)
	}
	p.addProblems()
	p.cases(ctx)
	p.searchEngine(ctx)
	running := p.listener(ctx)
	if p.Kind.Sniffed() {
		p.sniffing(ctx, running)
	}
}

// nodes checks each node, and reports whether there is one that the other checks can use.
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
	addFault := p.fail
	if slices.Contains(errs, nil) { // requests then go to the other nodes
		addFault = p.warn
	}
	for i, text := range p.engine.URLs {
		product := products[i]
		if errs[i] != nil {
			hint := fmt.Sprintf("start it, or correct %s.urls[%d]", p.key, i)
			if strings.Contains(errs[i].Error(), "answered 401") {
				hint = fmt.Sprintf("set %s.credentials to some that may log in", p.key)
			}
			addFault("node", hint, "%s: %v", text, errs[i])
			continue
		}
		if p.node(text, product) {
			p.at = cmp.Or(p.at, text)
		}
		if p.product.Cluster != "" && product.Cluster != "" && p.product.Cluster != product.Cluster {
			p.fail("node", fmt.Sprintf("make an entry in engines for each cluster, with the nodes of one cluster in %s.urls", p.key),
				"%s belongs to another cluster than the nodes before it", text)
		}
		if p.product.Name == "" {
			p.product = product
		}
	}
	return p.at != ""
}

// ask returns the product that answers at one address of the engine, or of a sidecar in front of it.
func (p *engineChecks) ask(ctx context.Context, at string) (adapters.Product, error) {
	one := *p.engine
	one.URLs = []string{at}
	o, err := p.network.open(&one)
	if err != nil {
		return adapters.Product{}, err
	}
	return upstream.Within(ctx, o.Store.Product)
}

// node checks a node's product and version, and reports whether it is of the engine's kind.
func (p *engineChecks) node(at string, product adapters.Product) bool {
	found, version := kind.OfProduct(product.Name), product.Name+" "+product.Version
	switch {
	case product.Name == "":
		p.warn("node", "check yourself that it is "+p.Kind.Product+" "+p.Kind.TestedVersions(), "%s answers, and does not tell these credentials what it is", at)
	case found.Name != p.engine.Kind:
		p.fail("node", fmt.Sprintf("set %s.kind: %s, or correct its urls", p.key, found.Name), "%s is %s", at, version)
		return false
	case !found.Tested(product.Version):
		p.warn("node", "try what your clients do through the sidecar before you rely on it",
			"%s is %s, which is not tested: %s. Jobs that write to stored documents refuse it without --untested", at, version, found.TestedVersions())
	default:
		p.ok("node", "%s is %s", at, version)
	}
	if len(product.Beside) > 0 {
		p.warn("node", "keep clients from using it: documents written there get no sketch or keep an old one, and searches are not collapsed",
			"%s also accepts requests that bypass the sidecar: %s", at, strings.Join(product.Beside, ", "))
	}
	return true
}

// rule checks the indices of one rule. Indices in seen belong to an earlier rule.
func (p *engineChecks) rule(ctx context.Context, key string, rule *rule.Rule, seen map[string]bool) {
	indices, err := upstream.Within(ctx, func(ctx context.Context) ([]adapters.Index, error) { return p.Matching(ctx, rule.Match) })
	if err != nil {
		p.fail("rule", fmt.Sprintf("%s.credentials must be allowed to read it", p.key), "%s: %v", rule.Match, err)
		return
	}
	if len(indices) == 0 {
		p.warn("rule", "it applies to the first one of that name; if there should be one, correct "+key+".match",
			"%s matches no index yet", rule.Match)
	}
	for _, index := range indices {
		if seen[index.Name] || ctx.Err() != nil {
			continue
		}
		seen[index.Name] = true
		if matched := index.Rule(p.Rules); matched != nil {
			p.index(ctx, key, index, matched)
			continue
		}
		p.warn("rule", "name the index in "+key+".match", "%s leads to %s, and %s", rule.Match, index.Name, index.Why)
	}
}

// sniffing checks which addresses clients get that ask for those of the nodes.
func (p *engineChecks) sniffing(ctx context.Context, running *url.URL) {
	theirs := slices.DeleteFunc(slices.Clone(p.product.Nodes), func(node string) bool {
		return config.ListensAt(p.engine.Listen, &url.URL{Scheme: "http", Host: node[strings.LastIndexByte(node, '/')+1:]})
	})
	advertised := cmp.Or(p.engine.Advertise, "the address under which they reach the sidecar")
	switch {
	case p.product.Nodes == nil:
		p.ok("sniffing", "these credentials may not see the nodes' addresses: "+
			"whether clients that sniff would bypass the sidecar is unknown")
	case !p.engine.RewriteSniffing && len(theirs) > 0:
		p.warn("sniffing", fmt.Sprintf("set %s.rewrite_sniffing: true, or switch sniffing off in the clients", p.key),
			"clients that sniff get %s, and bypass the sidecar", few(theirs))
	case !p.engine.RewriteSniffing:
		p.ok("sniffing", "clients that sniff get the sidecar's own address")
	case running == nil:
		p.ok("sniffing", "clients that sniff will get %s", advertised)
	default:
		p.advertised(ctx, running, advertised)
	}
}

// advertised checks the address that the running sidecar gives to clients that sniff.
func (p *engineChecks) advertised(ctx context.Context, running *url.URL, want string) {
	product, err := p.ask(ctx, running.String())
	nodes := slices.Compact(product.Nodes)
	if err != nil || len(nodes) != 1 || nodes[0] != cmp.Or(p.engine.Advertise, running.Host) {
		p.fail("sniffing", "restart it with this configuration",
			"the running sidecar gives clients that sniff %s, not %s", few(nodes), want)
		return
	}
	p.ok("sniffing", "clients that sniff get %s", want)
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
