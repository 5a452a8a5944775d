package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// trial is one question about what the engine gives back of the sketch, answered for one way to map it.
type trial struct {
	name string
	run  func(g giver) (string, error)
}

// giver is one way to map the field, in a small index that is filled.
type giver struct {
	e         *engine
	index     string
	mapping   string
	documents []document
}

// trials are in the order of the table.
var trials = []trial{
	{"by name, 1,000 documents, byte for byte", exactly("", `["`+field+`"]`)},
	{"by `neardup*`", exactly("", `["neardup*"]`)},
	{"by name and by `neardup*`", exactly("", `["`+field+`","neardup*"]`)},
	{"as an object with `field`", exactly("", `[{"field":"`+field+`"}]`)},
	{"through an alias", exactly(prefix+"alias", `["`+field+`"]`)},
	{"through a filtered alias", exactly(prefix+"filtered", `["`+field+`"]`)},
	{"beside an index without the field", beside("")},
	{"beside one that maps it as keyword", beside(`{"type":"keyword"}`)},
	{"beside one that maps it as binary with doc values", beside(`{"type":"binary","doc_values":true}`)},
	{"beside one that maps it as text", beside(`{"type":"text"}`)},
	{"beside one that maps it as text with a keyword below", beside(`{"type":"text","fields":{"keyword":{"type":"keyword"}}}`)},
	{"beside one that maps it as binary", beside(`{"type":"binary"}`)},
	{"beside one that maps it as a disabled object", beside(`{"type":"object","enabled":false}`)},
	{"by `fields`", byFields},
	{"`null`", stores(`null`)},
	{"an empty string", stores(`""`)},
	{"an empty list", stores(`[]`)},
	{"a list of two", stores(`["AQgAAA==","AAECAw=="]`)},
	{"no base64: `\"some words\"`", stores(`"some words"`)},
	{"base64 without padding", stores(`"AQgAAA"`)},
	{"a number", stores(`12`)},
	{"an object", stores(`{"a":"b"}`)},
	{"4,000 bytes", stores(long(4000))},
	{"30,000 bytes", stores(long(30000))},
	{"a partial document without it", partial(`{"title":"x"}`)},
	{"a partial document `null`", partial(`{"` + field + `":null}`)},
	{"the hit says the same in `_source`", sourceFilter},
	{"inner hits and a nested query", nested},
	{"`collapse` with inner hits", innerHits},
	{"a field added to a filled index", added},
	{"the mapping comes back as", mappingBack},
	{"`index: false` in a binary mapping", declared(`{"type":"binary","index":false,"doc_values":true}`)},
	{"mapped again as keyword", remapped(`{"type":"keyword","index":false,"doc_values":true}`)},
	{"mapped again as binary", remapped(`{"type":"binary","doc_values":true}`)},
	{"dynamic templates and date detection", dynamic},
	{"sorting by it", asked(`{"sort":["` + field + `"]}`)},
	{"terms of it", asked(`{"size":0,"aggs":{"a":{"terms":{"field":"` + field + `"}}}}`)},
	{"a term query of it", asked(`{"query":{"term":{"` + field + `":"AQgAAA=="}}}`)},
}

// given prints what the engine gives back of the sketch mapped as a keyword and as binary.
func (e *engine) given(_ options, c *corpus) error {
	documents := c.documents[:min(1000, len(c.documents))]
	var givers []giver
	for _, v := range variants[1:3] {
		g := giver{e: e, index: v.index("given"), mapping: v.mapping, documents: documents}
		if err := e.create(g.index, "default", v.properties(texts)); err != nil {
			return err
		}
		if _, err := e.bulk(g.index, lines(documents, 0, true)); err != nil {
			return err
		}
		if err := e.settle(g.index); err != nil {
			return err
		}
		givers = append(givers, g)
	}
	head("What `docvalue_fields` gives back, and more", "asked for", variants[1].name, variants[2].name)
	for _, t := range trials {
		cells := []string{t.name}
		for _, g := range givers {
			found, err := t.run(g)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", t.name, g.index, err)
			}
			cells = append(cells, strings.ReplaceAll(found, "|", "/"))
		}
		row(cells...)
	}
	e.dropAll()
	return nil
}

// found is a reply to a search.
type found struct {
	Shards struct {
		Total, Failed int
		Failures      []struct{ Reason struct{ Reason string } }
	} `json:"_shards"`
	Hits struct {
		Hits []struct {
			Index  string                     `json:"_index"`
			ID     string                     `json:"_id"`
			Source map[string]json.RawMessage `json:"_source"`
			Fields map[string][]string
			Inner  map[string]struct {
				Hits struct {
					Hits []struct{ Fields map[string][]string }
				}
			} `json:"inner_hits"`
		}
	}
}

// ask sends a search and returns the reply, or how it was refused.
func (g giver) ask(target, body string) (found, string, error) {
	var f found
	status, data, err := g.e.send("POST", target+"/_search", []byte(body))
	if err != nil {
		return f, "", err
	}
	if status != 200 {
		return f, refusal(status, data), nil
	}
	err = json.Unmarshal(data, &f)
	return f, "", err
}

func refusal(status int, data []byte) string {
	var e struct {
		Error struct {
			Reason string
			Root   []struct{ Reason string } `json:"root_cause"`
			Cause  struct{ Reason string }   `json:"caused_by"`
		}
	}
	_ = json.Unmarshal(data, &e) // without a reason the status is shown
	reason := e.Error.Reason
	if len(e.Error.Root) > 0 {
		reason = e.Error.Root[0].Reason
	}
	if e.Error.Cause.Reason != "" {
		reason += ": " + e.Error.Cause.Reason
	}
	return fmt.Sprintf("%d: %.160s", status, reason)
}

// exactly counts the documents whose value comes back as it was indexed.
func exactly(target, list string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		name := target
		if name == "" {
			name = g.index
		} else if err := g.alias(name); err != nil {
			return "", err
		}
		f, refused, err := g.ask(name, `{"size":1000,"_source":false,"docvalue_fields":`+list+`}`)
		if err != nil || refused != "" {
			return refused, err
		}
		right, unpadded, values := 0, 0, 0
		for _, h := range f.Hits.Hits {
			var at int
			if _, err := fmt.Sscan(h.ID, &at); err != nil {
				return "", err
			}
			values = max(values, len(h.Fields[field]))
			list, want := h.Fields[field], g.documents[at].sketch
			switch {
			case len(list) == 0:
			case list[0] == want:
				right++
			case list[0] == strings.TrimRight(want, "="):
				unpadded++
			}
		}
		said := fmt.Sprintf("%d of %d, values each: %d", right, len(f.Hits.Hits), values)
		if unpadded > 0 {
			said += fmt.Sprintf("; **%d without their padding**", unpadded)
		}
		return said, nil
	}
}

func (g giver) alias(name string) error {
	filter := ""
	if strings.HasSuffix(name, "filtered") {
		filter = `,"filter":{"exists":{"field":"text"}}`
	}
	return g.e.do("POST", "_aliases", fmt.Appendf(nil,
		`{"actions":[{"remove":{"index":"%s*","alias":%q,"must_exist":false}},{"add":{"index":%q,"alias":%q%s}}]}`,
		prefix+"given", name, g.index, name, filter), nil)
}

// beside searches two indices, of which the other maps the field in its own way (or not at all).
func beside(mapping string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		other := variant{name: "other", mapping: mapping}
		index := other.index("beside")
		if err := g.e.create(index, "default", other.properties(texts)); err != nil {
			return "", err
		}
		withField := mapping != ""
		if _, err := g.e.bulk(index, lines(g.documents[:10], 0, withField && !strings.Contains(mapping, "object"))); err != nil {
			return "", err
		}
		if err := g.e.settle(index); err != nil {
			return "", err
		}
		f, refused, err := g.ask(g.index+","+index, `{"size":2000,"_source":false,"docvalue_fields":["`+field+`"]}`)
		if err != nil || refused != "" {
			return refused, err
		}
		ours, others := 0, 0
		for _, h := range f.Hits.Hits {
			if len(h.Fields[field]) == 1 && h.Index == g.index {
				ours++
			} else if len(h.Fields[field]) == 1 {
				others++
			}
		}
		said := fmt.Sprintf("%d of 1000 and %d of 10", ours, others)
		if f.Shards.Failed > 0 {
			said += fmt.Sprintf("; **%d of %d shards failed**: %.90s", f.Shards.Failed, f.Shards.Total, f.Shards.Failures[0].Reason.Reason)
		}
		return said, nil
	}
}

func byFields(g giver) (string, error) {
	f, refused, err := g.ask(g.index, `{"size":1000,"_source":false,"fields":["`+field+`"]}`)
	if err != nil || refused != "" {
		return refused, err
	}
	right := 0
	for _, h := range f.Hits.Hits {
		values := h.Fields[field]
		if len(values) == 1 && slices.ContainsFunc(g.documents, func(d document) bool { return d.sketch == values[0] }) {
			right++
		}
	}
	return fmt.Sprintf("%d of %d", right, len(f.Hits.Hits)), nil
}
