package elastic

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// notInNames are the characters that no index's name holds.
const notInNames = `\/*?"<>| ,#:`

// LookFor returns the request of a look.
func (Dialect) LookFor(l adapters.Look) (*adapters.Request, error) {
	odd := strings.ContainsAny(l.Index, notInNames) || strings.ContainsAny(l.Index[:min(1, len(l.Index))], "_-+")
	if odd || strings.Trim(l.Index, ".") == "" {
		return nil, fmt.Errorf("index: %q is no single index: name one of those that there are", l.Index)
	}
	wanted := []byte(`{"match_all":{}}`)
	if l.Words != "" {
		wanted = fmt.Appendf(nil, `{"multi_match":{"lenient":true,"query":%s,"fields":%s}}`, jsonedit.AppendString(nil, l.Words), stringsOf(l.Fields))
	}
	if l.IDs != nil {
		wanted = fmt.Appendf(nil, `{"ids":{"values":%s}}`, stringsOf(l.IDs))
	}
	shown := slices.Clone(l.Fields)
	for _, field := range l.Titles {
		if !slices.Contains(shown, field) {
			shown = append(shown, field)
		}
	}
	body := fmt.Appendf(nil, `{"track_total_hits":true,"size":%d,"query":%s,"_source":%s}`, l.Size, wanted, sourceOf(shown))
	if l.Judged {
		var err error
		if body, err = listed(body, "docvalue_fields", new(clientSearch).extractions(false, decidingOf(l.Deciding))); err != nil {
			return nil, err
		}
	}
	header := adapters.Header{"Content-Type": {jsonType}, "Accept": {jsonType}}
	maps.Copy(header, l.Header)
	return &adapters.Request{
		Method: "POST", Path: "/" + url.PathEscape(l.Index) + "/_search", Header: header, Body: body,
	}, nil
}

// LookedAt reads the reply to a look. Where the engine refused, the error is of its own words and status.
func (d Dialect) LookedAt(l adapters.Look, reply *adapters.Reply) (adapters.Looked, error) {
	if reply.Status >= 300 {
		return adapters.Looked{}, refusalOf(reply.Status, reply.Body)
	}
	read, err := parseReply(reply.Body, l.Deciding)
	if errors.Is(err, adapters.ErrWidened) {
		return adapters.Looked{}, &refusal{status: 400, reason: failureIn(reply.Body)}
	}
	if err != nil {
		return adapters.Looked{}, adapters.NotUnderstood(err)
	}
	looked := adapters.Looked{Total: read.total}
	read.texts = true
	for i := range read.hits {
		h := &read.hits[i]
		h.in = read
		index, ok := jsonedit.Text(h.at(h.index))
		id, identified := jsonedit.Text(h.at(h.id))
		if !ok || !identified {
			return adapters.Looked{}, adapters.NotUnderstood(errors.New("a hit without _index or _id"))
		}
		looked.Hits = append(looked.Hits, adapters.LookedHit{
			Seen: rule.Seen{Index: d.ruleName(index), ID: id, Stored: sketchIn(h.at(h.sketch)), Shown: h},
			Name: index, Document: h.Document(nil), Score: h.score(),
		})
	}
	return looked, nil
}

// score returns the hit's score, nil where it has none.
func (h *hit) score() []byte {
	members, _ := jsonedit.Members(h.raw)
	if score := jsonedit.Get(members, "_score"); string(score) != "null" {
		return score
	}
	return nil
}

// failureIn returns the reason of the first failure of a shard.
func failureIn(reply []byte) string {
	var said struct {
		Shards struct {
			Failures []struct{ Reason struct{ Reason string } }
		} `json:"_shards"`
	}
	_ = json.Unmarshal(reply, &said)
	for _, failure := range said.Shards.Failures {
		if failure.Reason.Reason != "" {
			return "a shard failed: " + failure.Reason.Reason
		}
	}
	return "a shard failed"
}
