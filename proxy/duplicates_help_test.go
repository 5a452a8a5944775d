package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/elastic"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/proxy"
)

// bank is the store of an engine that answers bulks and single documents, and keeps what was sent. It is a stand-in for a real one where
// a fault is wanted.
type bank struct {
	*engine
	rule *rule.Rule
	// fault, if set, is asked before each scan; each has the documents of a scan in another order.
	fault func(ctx context.Context, s adapters.Selection) error
	// refused are the ids that the engine refuses, reply what it answers to a write in place of the truth, if set.
	refused map[string]bool
	reply   func(w http.ResponseWriter, status int, body string)
	// unseen says that searches do not find yet what was written.
	unseen bool

	mu    sync.Mutex
	docs  map[string]string
	made  int
	scans []adapters.Selection
	sent  []string // bodies of writes
	turn  int
}

func newBank(t testing.TB, index string, on rule.OnDuplicate, clusters bool) *bank {
	t.Helper()
	r := newRule(t)
	r.Profile.Threshold, r.Profile.MinShingles = 0.6, 8
	r.Bands, r.Rows, r.OnDuplicate, r.Clusters = 24, 4, on, clusters
	b := &bank{engine: newEngine(index), rule: r, docs: map[string]string{}}
	b.engine.answer = b.write
	return b
}

// front starts a sidecar before the bank.
func (b *bank) front(t testing.TB) front {
	t.Helper()
	return serve(t, b.engine, b.of(nil))
}

// of returns what sets up a sidecar before the bank, with a transport of its own unless that is nil.
func (b *bank) of(transport http.RoundTripper) func(*proxy.Engine) {
	return func(e *proxy.Engine) {
		e.Rules = rule.Rules{b.rule}
		e.Open = func(adapters.Header, string) adapters.Store { return b }
		e.Dialect = elastic.Dialect{}
		if transport != nil {
			e.Transport = transport
		}
	}
}

func (b *bank) put(id, title string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.docs[id] = enrichedBy(b.rule, title, "")
}

// enrichedBy returns a document as it is stored under the rule, in its own cluster or another.
func enrichedBy(r *rule.Rule, title, cluster string) string {
	s, _ := r.Sketch([]string{title})
	o := rule.Ours{Sketch: s.String(), Bands: r.BandKeys(&s)}
	if r.Clusters {
		if o.Cluster = cluster; cluster == "" {
			o.Cluster = r.ClusterID(s.Fingerprint)
		}
	}
	plain, _ := json.Marshal(map[string]string{"title": title})
	document, _ := rule.WithOurs(plain, o)
	return string(document)
}

// Resolve implements adapters.Store.
func (b *bank) Resolve(_ context.Context, name string) ([]adapters.Index, error) {
	return []adapters.Index{{Name: name, Ready: true, Mapped: true}}, nil
}

// Prepare implements adapters.Store.
func (b *bank) Prepare(ctx context.Context, name string, _ bool) ([]adapters.Index, error) {
	return b.Resolve(ctx, name)
}

// Scan implements adapters.Store.
func (b *bank) Scan(ctx context.Context, _ string, _ *rule.Rule, s adapters.Selection, yield func(adapters.Page) error) error {
	b.mu.Lock()
	b.scans = append(b.scans, s)
	fault := b.fault
	b.mu.Unlock()
	if fault != nil {
		if err := fault(ctx, s); err != nil {
			return err
		}
	}
	b.mu.Lock()
	var page adapters.Page
	for id, document := range b.docs {
		holds := slices.Contains(s.IDs, id) || !b.unseen && slices.ContainsFunc(rule.OursOf([]byte(document)).Bands, func(key int64) bool { return slices.Contains(s.Bands, key) })
		if holds {
			page.Documents = append(page.Documents, adapters.Stored{ID: id, Source: []byte(document)})
		}
	}
	b.turn++
	slices.SortFunc(page.Documents, func(x, y adapters.Stored) int { return (b.turn%2*2 - 1) * strings.Compare(x.ID, y.ID) })
	b.mu.Unlock()
	if len(page.Documents) == 0 {
		return nil
	}
	return yield(page)
}

// Patch implements adapters.Store.
func (b *bank) Patch(context.Context, string, *rule.Rule, []adapters.Stored) ([]adapters.Result, error) {
	panic("a write patches nothing")
}

// write answers a write of documents.
func (b *bank) write(w http.ResponseWriter, a arrival) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, string(a.body))
	if !strings.Contains(a.uri, "_bulk") {
		id := a.uri[strings.LastIndex(a.uri, "/")+1:]
		b.docs[id] = string(a.body)
		b.answerWith(w, 201, fmt.Sprintf(`{"_index":"news-1","_id":%q,"_version":1,"result":"created"}`, id))
		return
	}
	lines := strings.Split(strings.TrimSuffix(string(a.body), "\n"), "\n")
	items, failed := []string{}, false
	for len(lines) > 0 && lines[0] != "" {
		var action map[string]struct {
			ID string `json:"_id"`
		}
		if err := json.Unmarshal([]byte(lines[0]), &action); err != nil {
			b.answerWith(w, 400, `{"error":"malformed"}`)
			return
		}
		for op, meta := range action {
			id := meta.ID
			if id == "" {
				b.made++
				id = fmt.Sprint("auto", b.made)
			}
			if b.refused[id] {
				failed = true
				items = append(items, fmt.Sprintf(`{%q:{"_index":"news-1","_id":%q,"status":429,"error":{"type":"busy"}}}`, op, id))
			} else {
				items = append(items, fmt.Sprintf(`{%q:{"_index":"news-1","_id":%q,"_version":1,"result":"done","_shards":{"total":2},"_seq_no":%d,"_primary_term":1,"status":201}}`, op, id, len(b.docs)))
				switch op {
				case "delete":
					delete(b.docs, id)
				case "update":
				default:
					b.docs[id] = lines[1]
				}
			}
			if lines = lines[1:]; op != "delete" {
				lines = lines[1:]
			}
		}
	}
	b.answerWith(w, 200, fmt.Sprintf(`{"errors":%v,"took":3,"items":[%s],"more":"kept"}`, failed, strings.Join(items, ",")))
}

func (b *bank) answerWith(w http.ResponseWriter, status int, body string) {
	if b.reply != nil {
		b.reply(w, status, body)
		return
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// clusters returns the clusters in the documents of a body, in their order.
func clusters(body string) (list []string) {
	for line := range strings.Lines(body) {
		document := []byte(strings.TrimSpace(line))
		if bytes.Contains(document, []byte(`"doc":`)) {
			members, _ := jsonedit.Members(document)
			document = jsonedit.Get(members, "doc")
		}
		if rule.HasOurs(document) {
			list = append(list, rule.OursOf(document).Cluster)
		}
	}
	return list
}

// lastSent returns the body of the last write that came.
func (b *bank) lastSent(t testing.TB) string {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.sent) == 0 {
		t.Fatal("nothing was sent")
	}
	return b.sent[len(b.sent)-1]
}

// told is a text of its own for each number, of which the variants are near-duplicates.
func told(n, variant int) string {
	words := make([]string, 40)
	for i := range words {
		words[i] = fmt.Sprintf("w%dx%d", n, i)
	}
	if variant > 0 {
		words[39] = fmt.Sprint("v", variant)
	}
	return strings.Join(words, " ")
}

// line is one operation of a bulk: op is its name, with the id behind a space if there is one.
func line(op, title string) string {
	name, id, has := strings.Cut(op, " ")
	meta := `{}`
	if has {
		meta = fmt.Sprintf(`{"_id":%q}`, id)
	}
	switch name {
	case "delete":
		return fmt.Sprintf("{%q:%s}\n", name, meta)
	case "update":
		return fmt.Sprintf("{%q:%s}\n{\"doc\":{\"title\":%q}}\n", name, meta, title)
	}
	return fmt.Sprintf("{%q:%s}\n{\"title\":%q}\n", name, meta, title)
}

// results returns for each item of a bulk's reply its action, id and result, or status where that says more.
func results(t testing.TB, reply string) (list []string) {
	t.Helper()
	var parsed struct {
		Items []map[string]struct {
			ID     string `json:"_id"`
			Result string
			Status int
		}
	}
	expect.JSON(t, []byte(reply), &parsed)
	for _, item := range parsed.Items {
		for op, o := range item {
			if o.Status >= 300 {
				o.Result = fmt.Sprint(o.Status)
			}
			list = append(list, op+" "+o.ID+" "+o.Result)
		}
	}
	return list
}

// Release implements adapters.Store.
func (b *bank) Release(context.Context, string) {}
