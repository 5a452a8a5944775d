package elastic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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
	body, err := bodyOf(l), error(nil)
	if l.Search != nil {
		if body, err = searchBody(l); err != nil {
			return nil, fmt.Errorf("query: %w", err)
		}
	}
	if l.Judged {
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

// bodyOf returns the body of a look for words or ids.
func bodyOf(l adapters.Look) []byte {
	wanted := []byte(`{"match_all":{}}`)
	if l.Words != "" {
		wanted = fmt.Appendf(nil, `{"multi_match":{"lenient":true,"query":%s,"fields":%s}}`, jsonedit.AppendString(nil, l.Words), stringsOf(l.Fields))
	}
	if l.IDs != nil {
		wanted = fmt.Appendf(nil, `{"ids":{"values":%s}}`, stringsOf(l.IDs))
	}
	return fmt.Appendf(nil, `{"track_total_hits":true,"size":%d,"query":%s,"_source":%s}`, l.Size, wanted, shownOf(l))
}

// shownOf returns a source filter for the fields that a look shows.
func shownOf(l adapters.Look) []byte {
	shown := slices.Clone(l.Fields)
	for _, field := range l.Titles {
		if !slices.Contains(shown, field) {
			shown = append(shown, field)
		}
	}
	return sourceOf(shown)
}

// searchBody returns the body of a client's own search. Where the first ranks are read, the search has no other page, reads what is shown, and
// asks for nothing beside its hits.
func searchBody(l adapters.Look) ([]byte, error) {
	if err := adapters.Object(l.Search); err != nil {
		return nil, err
	}
	beside := slices.Concat(perHit, once, []string{"from", "size", "search_after", "track_total_hits"})
	body, err := jsonedit.Cut(l.Search, func(key string) bool {
		return adapters.IsControl(key) || l.Size > 0 && slices.Contains(beside, key)
	})
	if l.Size == 0 {
		return body, err
	}
	for _, set := range []struct{ key, value string }{
		{"size", strconv.Itoa(l.Size)}, {"track_total_hits", "true"}, {"_source", string(shownOf(l))},
	} {
		if err == nil {
			body, err = jsonedit.Set(body, set.key, []byte(set.value))
		}
	}
	return body, err
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
			Name: index, Document: h.Document(nil), Score: h.score(), Folded: h.folded(),
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

// folded returns the hits that are listed as folded into the hit.
func (h *hit) folded() (list []adapters.Named) {
	if !bytes.Contains(h.raw, []byte(`"`+innerHits+`"`)) {
		return nil
	}
	var listed struct {
		Inner map[string]struct {
			Hits struct {
				Hits []struct {
					Index string `json:"_index"`
					ID    string `json:"_id"`
				}
			}
		} `json:"inner_hits"`
	}
	_ = json.Unmarshal(h.raw, &listed) // none in an object of another form
	for _, folded := range listed.Inner[innerHits].Hits.Hits {
		list = append(list, adapters.Named(folded))
	}
	return list
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

// inLog finds the index that a line of a slow log names, and the index that a plain line names if it is of a whole search.
var inLog = regexp.MustCompile(`\[([^\[\]]+)\]\[\d+\]|\bindices\[([^\[\],]+)\]`)

// ReadQuery returns the query of a line: words, as they are or as a JSON string; the JSON body of a search; or a line of the engine's slow log of
// searches, which holds one.
func (d Dialect) ReadQuery(line string) (q adapters.Query, err error) {
	line = strings.TrimSpace(line)
	switch plain := strings.Index(line, " source["); {
	case strings.HasPrefix(line, "{"):
		q.Search = []byte(line)
		if err := adapters.Object(q.Search); err != nil {
			return q, err
		}
		var logged struct {
			ECS        string `json:"elasticsearch.slowlog.source"`
			ECSMessage string `json:"elasticsearch.slowlog.message"`
			Type       string `json:"type"`
			Source     string `json:"source"`
			Message    string `json:"message"`
		}
		if json.Unmarshal(q.Search, &logged) != nil { // a member of another type: no line of a log
			return q, nil
		}
		switch {
		case logged.ECS != "":
			return d.logged(logged.ECS, logged.ECSMessage)
		case strings.HasSuffix(logged.Type, "_slowlog"):
			return d.logged(logged.Source, logged.Message)
		}
	case strings.HasPrefix(line, "[") && plain > 0 && strings.Contains(line[:plain], " took["):
		return d.logged(line[plain+len(" source["):], line[:plain])
	default:
		q.Words = adapters.Typed(line)
	}
	return q, nil
}

// logged returns the query of a line of a slow log, given what begins with the body of the search, and what names its index. Logs in JSON hold the body
// escaped twice. It can be empty.
func (d Dialect) logged(source, message string) (q adapters.Query, err error) {
	if strings.HasPrefix(source, `{\"`) {
		_ = json.Unmarshal([]byte(`"`+source+`"`), &source) // what is cut off stays as it is
	}
	if q.Search = []byte("{}"); strings.HasPrefix(source, "{") {
		var body json.RawMessage
		if json.NewDecoder(strings.NewReader(source)).Decode(&body) != nil {
			return q, errors.New("the search in this line of a slow log is cut off")
		}
		q.Search = body
	}
	if found := inLog.FindStringSubmatch(message); found != nil {
		q.Index = d.ruleName(found[1] + found[2])
	}
	return q, nil
}
