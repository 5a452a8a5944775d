package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// long returns a value of n bytes before base64.
func long(n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(i * 7919 >> 3)
	}
	return `"` + base64.StdEncoding.EncodeToString(raw) + `"`
}

// fresh makes an index of one document without our field and returns its name.
func (g giver) fresh(mappings, body string) (index string, status int, reply []byte, err error) {
	index = prefix + "fresh"
	if err := g.e.create(index, "default", mappings); err != nil {
		return index, 0, nil, err
	}
	status, reply, err = g.e.send("PUT", index+"/_doc/1?refresh=true", []byte(body))
	return index, status, reply, err
}

func (g giver) mappings() string { return variant{mapping: g.mapping}.properties(texts) }

// stores indexes a value and tells what comes back.
func stores(value string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		index, status, reply, err := g.fresh(g.mappings(), `{"title":"t","`+field+`":`+value+`}`)
		if err != nil || status >= 300 {
			return "refused, " + refusal(status, reply), err
		}
		return g.back(index, value)
	}
}

// back shows the doc values of an index of one document, and the value that was indexed.
func (g giver) back(index, value string) (string, error) {
	f, refused, err := g.ask(index, `{"docvalue_fields":["`+field+`"]}`)
	if err != nil || refused != "" {
		return refused, err
	}
	values := f.Hits.Hits[0].Fields[field]
	got, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	switch {
	case len(values) == 0:
		return "nothing", nil
	case len(values) == 1 && `"`+values[0]+`"` == value:
		return "as indexed", nil
	case len(values) == 1 && `"`+values[0]+`"` == strings.ReplaceAll(value, "=", ""):
		return "**without its padding**", nil
	}
	return fmt.Sprintf("%.80s", got), nil
}

// partial updates a document that has a sketch by a part of one.
func partial(part string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		value := `"` + g.documents[0].sketch + `"`
		index, status, reply, err := g.fresh(g.mappings(), `{"title":"t","`+field+`":`+value+`}`)
		if err != nil || status >= 300 {
			return "refused, " + refusal(status, reply), err
		}
		if err := g.e.do("POST", index+"/_update/1?refresh=true", []byte(`{"doc":`+part+`}`), nil); err != nil {
			return "", err
		}
		return g.back(index, value)
	}
}

// sourceFilter asks for the doc value beside a source filter that leaves our field out, and beside one that has it.
func sourceFilter(g giver) (string, error) {
	var said []string
	for _, filter := range []string{`["title"]`, `{"excludes":["` + field + `"]}`, `true`} {
		f, refused, err := g.ask(g.index, `{"size":1,"_source":`+filter+`,"docvalue_fields":["`+field+`"]}`)
		if err != nil || refused != "" {
			return refused, err
		}
		h := f.Hits.Hits[0]
		said = append(said, fmt.Sprintf("%d in source, %d value", len(h.Source), len(h.Fields[field])))
	}
	return strings.Join(said, "; "), nil
}

func nested(g giver) (string, error) {
	mappings := variant{mapping: g.mapping}.properties(texts + `,"parts":{"type":"nested","properties":{"name":{"type":"text"}}}`)
	value := `"` + g.documents[0].sketch + `"`
	index, status, reply, err := g.fresh(mappings, `{"title":"t","parts":[{"name":"a"},{"name":"b"}],"`+field+`":`+value+`}`)
	if err != nil || status >= 300 {
		return "refused, " + refusal(status, reply), err
	}
	f, refused, err := g.ask(index, `{"docvalue_fields":["`+field+`"],"query":{"nested":{"path":"parts",`+
		`"query":{"match":{"parts.name":"a"}},`+
		`"inner_hits":{"docvalue_fields":["neardup*"]}}}}`)
	if err != nil || refused != "" {
		return refused, err
	}
	h := f.Hits.Hits[0]
	inner := h.Inner["parts"].Hits.Hits
	return fmt.Sprintf("hit: %d value; inner hit: %d", len(h.Fields[field]), len(inner[0].Fields[field])), nil
}

// innerHits collapses by a keyword field of the client's own.
func innerHits(g giver) (string, error) {
	mappings := variant{mapping: g.mapping}.properties(texts + `,"group":{"type":"keyword"}`)
	value := `"` + g.documents[0].sketch + `"`
	index, status, reply, err := g.fresh(mappings, `{"title":"t","group":"a","`+field+`":`+value+`}`)
	if err != nil || status >= 300 {
		return "refused, " + refusal(status, reply), err
	}
	f, refused, err := g.ask(index, `{"docvalue_fields":["`+field+`"],"collapse":{"field":"group",`+
		`"inner_hits":{"name":"g","docvalue_fields":["`+field+`"]}}}`)
	if err != nil || refused != "" {
		return refused, err
	}
	h := f.Hits.Hits[0]
	return fmt.Sprintf("hit: %d value; inner hit: %d", len(h.Fields[field]), len(h.Inner["g"].Hits.Hits[0].Fields[field])), nil
}

// added declares the field in an index that has documents already, and patches one.
func added(g giver) (string, error) {
	index, status, reply, err := g.fresh(`{"dynamic":"strict","properties":{`+texts+`}}`, `{"title":"t"}`)
	if err != nil || status >= 300 {
		return "refused, " + refusal(status, reply), err
	}
	if err := g.e.do("PUT", index+"/_mapping", []byte(`{"properties":{"`+field+`":`+g.mapping+`}}`), nil); err != nil {
		return "", err
	}
	before, err := g.back(index, "")
	if err != nil {
		return "", err
	}
	value := `"` + g.documents[0].sketch + `"`
	if err := g.e.do("POST", index+"/_update/1?refresh=true", []byte(`{"doc":{"`+field+`":`+value+`}}`), nil); err != nil {
		return "", err
	}
	after, err := g.back(index, value)
	return before + ", after a partial document " + after, err
}

func mappingBack(g giver) (string, error) {
	_, data, err := g.e.send("GET", g.index+"/_mapping/field/"+field, nil)
	_, data, _ = bytes.Cut(data, []byte(`"mapping":`))
	return "`" + strings.TrimRight(string(data), "}") + "`", err
}

// declared makes an index with another mapping of our field.
func declared(mapping string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		index := prefix + "declared"
		g.e.drop(index)
		g.e.indices = append(g.e.indices, index)
		status, data, err := g.e.send("PUT", index, []byte(`{"mappings":{"properties":{"`+field+`":`+mapping+`}}}`))
		if err != nil || status >= 300 {
			return "refused, " + refusal(status, data), err
		}
		_, data, err = g.e.send("GET", index+"/_mapping/field/"+field, nil)
		_, data, _ = bytes.Cut(data, []byte(`"mapping":`))
		return "accepted, `" + strings.TrimRight(string(data), "}") + "`", err
	}
}

// remapped tells whether the mapping can be changed in place.
func remapped(mapping string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		status, data, err := g.e.send("PUT", g.index+"/_mapping", []byte(`{"properties":{"`+field+`":`+mapping+`}}`))
		if err != nil || status >= 300 {
			return "refused, " + refusal(status, data), err
		}
		return "accepted", nil
	}
}

// dynamic declares the field beside rules that would map any new text otherwise.
func dynamic(g giver) (string, error) {
	mappings := `{"dynamic":"true","date_detection":true,"numeric_detection":true,` +
		`"dynamic_templates":[{"all":{"match":"*","mapping":{"type":"text"}}}],` +
		`"properties":{"` + field + `":` + g.mapping + `}}`
	value := `"` + g.documents[0].sketch + `"`
	index, status, reply, err := g.fresh(mappings, `{"title":"2015/09/02","`+field+`":`+value+`}`)
	if err != nil || status >= 300 {
		return "refused, " + refusal(status, reply), err
	}
	return g.back(index, value)
}

// asked sends a search that names our field.
func asked(body string) func(giver) (string, error) {
	return func(g giver) (string, error) {
		f, refused, err := g.ask(g.index, body)
		if err != nil || refused != "" {
			return refused, err
		}
		return fmt.Sprintf("answered, %d of %d shards failed", f.Shards.Failed, f.Shards.Total), nil
	}
}
