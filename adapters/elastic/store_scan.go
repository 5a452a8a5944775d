package elastic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
)

const (
	// scanPage is how many documents one page of a scan holds: enough to keep the engine busy, few enough to be held whole, several
	// times over, where documents are large.
	scanPage = 100
	// scanHeld is how long the engine keeps a scan open between two pages; a throttled job takes its time over one.
	scanHeld = 30 * time.Minute
	// patchBytes is how large one bulk of patches grows.
	patchBytes = 5 << 20
	// patchTries is how often a document is sent again that the engine had no room for. Patches are conditional, so sending one
	// twice changes nothing.
	patchTries = 6
)

// version is the state of a document that a patch must meet.
type version struct {
	seqNo, primaryTerm int64
	routing            string
	// merge says that the sketch has to be merged in by an update rather than written with the whole document.
	merge bool
}

type scanHit struct {
	ID          string          `json:"_id"`
	Routing     string          `json:"_routing"`
	SeqNo       int64           `json:"_seq_no"`
	PrimaryTerm int64           `json:"_primary_term"`
	Source      json.RawMessage `json:"_source"`
}

type scanReply struct {
	ScrollID string               `json:"_scroll_id"`
	Shards   struct{ Failed int } `json:"_shards"`
	Hits     struct {
		Total struct{ Value int }
		Hits  []scanHit
	}
}

// Scan implements adapters.Store. It reads by scroll, which both engines have and which keeps one state of the index for as
// long as the scan takes.
func (s *Store) Scan(
	ctx context.Context, index string, rule *adapters.Rule, sel adapters.Selection, yield func(adapters.Page) error,
) error {
	if sel.Random {
		return s.sample(ctx, index, rule, sel.Limit, yield)
	}
	merge, err := s.rewritable(ctx, index)
	if err != nil {
		return fmt.Errorf("scan %s: %w", index, err)
	}
	return s.scroll(ctx, index, `"sort":["_doc"]`, merge, yield)
}

// scroll reads the documents of an index, in the order and of the query that are given as members of a search's body.
func (s *Store) scroll(ctx context.Context, index, query string, merge bool, yield func(adapters.Page) error) error {
	if err := s.do(ctx, esapi.IndicesRefreshRequest{Index: []string{url.PathEscape(index)}}, nil); err != nil {
		return fmt.Errorf("scan %s: %w", index, err) // a search sees what was refreshed alone
	}
	var reply scanReply
	query = `{"size":` + strconv.Itoa(scanPage) + `,` + query + `,"seq_no_primary_term":true,"track_total_hits":true}`
	request := esapi.SearchRequest{Index: []string{url.PathEscape(index)}, Scroll: scanHeld, Body: strings.NewReader(query)}
	err := s.do(ctx, request, &reply)
	if err != nil {
		return fmt.Errorf("scan %s: %w", index, err)
	}
	total := reply.Hits.Total.Value
	defer func() { // with time of its own: ctx may have ended the scan
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.do(ctx, esapi.ClearScrollRequest{ScrollID: []string{reply.ScrollID}}, nil) // it would end by itself, later
	}()
	for {
		if reply.Shards.Failed > 0 {
			return fmt.Errorf("scan %s: %d shards failed: run it again when the index is whole", index, reply.Shards.Failed)
		}
		if len(reply.Hits.Hits) == 0 {
			return nil
		}
		if err := yield(pageOf(reply, total, merge)); err != nil {
			return err
		}
		next := scanReply{ScrollID: reply.ScrollID}
		body, err := json.Marshal(map[string]string{"scroll": "30m", "scroll_id": reply.ScrollID})
		if err != nil {
			return err
		}
		if err := s.do(ctx, esapi.ScrollRequest{Body: bytes.NewReader(body)}, &next); err != nil {
			return fmt.Errorf("scan %s: %w", index, err)
		}
		reply = next
	}
}

func pageOf(reply scanReply, total int, merge bool) adapters.Page {
	page := adapters.Page{Total: total}
	for _, h := range reply.Hits.Hits {
		page.Documents = append(page.Documents, adapters.Stored{
			ID: h.ID, Source: h.Source,
			Version: version{seqNo: h.SeqNo, primaryTerm: h.PrimaryTerm, routing: h.Routing, merge: merge},
		})
	}
	return page
}

// rewritable reports how a stored document can be given a sketch without losing anything of it. Written again with its source, it
// keeps every byte; where a final pipeline would run over it again, only an update leaves the rest alone. Where the source is
// not all that was indexed, neither does.
func (s *Store) rewritable(ctx context.Context, index string) (merge bool, err error) {
	var mappings map[string]struct {
		Mappings struct {
			Source json.RawMessage `json:"_source"`
		}
	}
	if err := s.do(ctx, esapi.IndicesGetMappingRequest{Index: []string{url.PathEscape(index)}}, &mappings); err != nil {
		return false, err
	}
	for name, m := range mappings {
		if len(m.Mappings.Source) > 0 && string(m.Mappings.Source) != `{"enabled":true}` {
			return false, fmt.Errorf("index %s keeps only a part of its documents (_source is %s): send the documents again instead",
				name, m.Mappings.Source)
		}
	}
	var settings map[string]struct{ Settings map[string]string }
	yes := true
	err = s.do(ctx, esapi.IndicesGetSettingsRequest{Index: []string{url.PathEscape(index)}, FlatSettings: &yes}, &settings)
	for _, one := range settings {
		if final := one.Settings["index.final_pipeline"]; final != "" && final != "_none" {
			merge = true
		}
	}
	return merge, err
}

// Patch implements adapters.Store.
func (s *Store) Patch(ctx context.Context, index string, _ *adapters.Rule, patches []adapters.Patch) ([]adapters.Result, error) {
	results := make([]adapters.Result, len(patches))
	waiting := make([]int, len(patches))
	for i := range waiting {
		waiting[i] = i
	}
	for try := 0; len(waiting) > 0; try++ {
		var again []int
		for len(waiting) > 0 {
			n, body, err := bulkOf(patches, waiting)
			if err != nil {
				return nil, err
			}
			busy, err := s.patch(ctx, index, body, waiting[:n], results)
			if err != nil {
				return nil, fmt.Errorf("patch %s: %w", index, err)
			}
			again, waiting = append(again, busy...), waiting[n:]
		}
		if len(again) == 0 || try == patchTries {
			return results, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second << try):
		}
		waiting = again
	}
	return results, nil
}

// bulkOf returns the bulk of the first n of the waiting patches.
func bulkOf(patches []adapters.Patch, waiting []int) (n int, body []byte, err error) {
	for n < len(waiting) && len(body) < patchBytes {
		p := patches[waiting[n]]
		v, ok := p.Version.(version)
		if !ok {
			return 0, nil, errors.New("a patch of a document that was not read from this store")
		}
		meta := map[string]any{"_id": p.ID, "if_seq_no": v.seqNo, "if_primary_term": v.primaryTerm}
		if v.routing != "" {
			meta["routing"] = v.routing
		}
		op, document := "index", []byte(nil)
		if v.merge {
			op, document = "update", fmt.Appendf(nil, `{"doc":{%s}}`, p.Fields(true))
		} else {
			meta["pipeline"] = "_none"
			if document, err = adapters.WithOurs(p.Source, p.Ours); err != nil {
				return 0, nil, fmt.Errorf("document %s: %w", p.ID, err)
			}
		}
		line, err := json.Marshal(map[string]any{op: meta})
		if err != nil {
			return 0, nil, err
		}
		body = append(append(append(append(body, line...), '\n'), oneLine(document)...), '\n')
		n++
	}
	return n, body, nil
}

// oneLine returns a document as one line: a line break in JSON stands between values and means nothing.
func oneLine(document []byte) []byte {
	if bytes.IndexByte(document, '\n') < 0 {
		return document
	}
	return bytes.ReplaceAll(document, []byte("\n"), []byte(" "))
}

// patch sends one bulk and returns which of its documents the engine had no room for.
func (s *Store) patch(
	ctx context.Context, index string, body []byte, which []int, results []adapters.Result,
) (busy []int, err error) {
	var reply struct {
		Items []map[string]struct{ Status int }
	}
	err = s.do(ctx, esapi.BulkRequest{Index: url.PathEscape(index), Body: bytes.NewReader(body)}, &reply)
	if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusTooManyRequests {
		for _, i := range which {
			results[i] = adapters.Refused
		}
		return which, nil
	}
	if err != nil {
		return nil, err
	}
	if len(reply.Items) != len(which) {
		return nil, fmt.Errorf("%d results for %d documents", len(reply.Items), len(which))
	}
	for i, item := range reply.Items {
		for _, outcome := range item {
			switch status := outcome.Status; {
			case status < 300:
				results[which[i]] = adapters.Patched
			case status == http.StatusConflict:
				results[which[i]] = adapters.Changed
			case status == http.StatusNotFound:
				results[which[i]] = adapters.Gone
			case status == http.StatusTooManyRequests:
				results[which[i]] = adapters.Refused
				busy = append(busy, which[i])
			default:
				results[which[i]] = adapters.Refused
			}
		}
	}
	return busy, nil
}
