package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/similar"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

const (
	// maxDeduped is how many documents of a request are compared with one another.
	maxDeduped = 1000
	// perDeduped is about what the sketch of each and its part of the answer hold, in bytes.
	perDeduped = 2 << 10
	// heldShare is the part of MaxHeld that the stored documents may take which are read at once: some requests fit beside one another.
	heldShare = 4
	// DefaultPreset names the rule for texts where a request names neither a preset nor an index.
	DefaultPreset = "default"
)

// dedupe answers which of the documents in the body are to be kept. Without an index nothing goes to the engine.
func (s *similarity) dedupe(ctx context.Context) error {
	began := time.Now()
	key, elements, err := s.elements()
	if err != nil {
		return bad(err)
	}
	r, err := s.ruleOfList()
	if err != nil {
		return bad(err)
	}
	list, err := listOf(s.r.URL.RawQuery, r)
	if err != nil {
		return bad(err)
	}
	holds := perDeduped*int64(len(elements)) + 2*int64(len(s.body)) // texts are decoded, and ids go into the answer
	if !s.u.hold.takePlace() || !s.u.hold.take(holds) {
		return errBusy
	}
	if key == "ids" {
		err = s.addStored(ctx, list, elements)
	} else {
		err = s.addGiven(ctx, list, r, key, elements)
	}
	if err != nil {
		return err
	}
	return s.reply(struct {
		Took int64 `json:"took"`
		similar.Deduped
	}{time.Since(began).Milliseconds(), list.Dedupe(r)})
}

// elements returns the list in the body, and under which key it is: texts, documents or ids.
func (s *similarity) elements() (key string, elements [][]byte, err error) {
	if !utf8.Valid(s.body) {
		return "", nil, errors.New("the body is not UTF-8: encode the texts in UTF-8")
	}
	for _, m := range s.members {
		switch m.Key {
		case "index":
			if s.asks.index == "" {
				return "", nil, errors.New("index: must be the name of an index")
			}
			continue
		case "texts", "documents", "ids":
		default:
			return "", nil, fmt.Errorf("%.60q is unknown: send texts, documents or ids; threshold, keep, measure and preset belong in the URL", m.Key)
		}
		if key != "" {
			return "", nil, fmt.Errorf("%s, %s: send one list", key, m.Key)
		}
		if key = m.Key; len(m.Value) == 0 || m.Value[0] != '[' {
			return "", nil, fmt.Errorf("%s: must be a list", key)
		}
		if elements, err = jsonedit.Elements(m.Value); err != nil || len(elements) > maxDeduped {
			return "", nil, fmt.Errorf("%s: has more than %d elements: send several requests", key, maxDeduped)
		}
	}
	switch {
	case key == "":
		return "", nil, errors.New(`texts: is missing: send {"texts": ["…", "…"]}`)
	case key == "ids" && s.asks.index == "":
		return "", nil, errors.New("index: is missing: name the index of these ids")
	}
	return key, elements, nil
}

// ruleOfList returns the rule of the index in the body, or of the preset in the URL.
func (s *similarity) ruleOfList() (*rule.Rule, error) {
	preset, named := adapters.Last(adapters.Params(s.r.URL.RawQuery), "preset")
	switch {
	case s.asks.index != "" && named:
		return nil, errors.New("index, preset: both choose a rule: send one of them")
	case s.asks.index != "" && len(s.indices) == 0:
		return nil, fmt.Errorf("index: %.200q has no rule, or is not there: name another, or send a preset in the URL", s.asks.index)
	case s.asks.index != "":
		return s.indices[0].Rule(s.h.Rules), nil
	case !named:
		preset = DefaultPreset
	}
	if r := s.h.Presets[preset]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("preset: %.60q is not for texts alone: use %s", preset, strings.Join(slices.Sorted(maps.Keys(s.h.Presets)), ", "))
}

// listOf returns an empty list with what a query overrides of the rule.
func listOf(rawQuery string, r *rule.Rule) (*similar.List, error) {
	likeness, err := likenessOf(rawQuery, "threshold", "keep", "measure", "preset")
	if err != nil {
		return nil, err
	}
	l, params := &similar.List{Threshold: likeness.Threshold}, adapters.Params(rawQuery)
	if text, given := adapters.Last(params, "keep"); given {
		l.Keep, err = strconv.Atoi(text)
		if err != nil || l.Keep < 1 || l.Keep > rule.MaxKeep {
			return nil, fmt.Errorf("keep: %q is out of range: use 1 to %d", text, rule.MaxKeep)
		}
	}
	if text, given := adapters.Last(params, "measure"); given {
		l.Measure = rerank.Measure(text)
		switch {
		case l.Measure != rerank.Resemblance && l.Measure != rerank.Containment:
			return nil, fmt.Errorf("measure: %q is unknown: use %s or %s", text, rerank.Resemblance, rerank.Containment)
		case l.Measure == rerank.Containment && !r.Sketcher.Scheme().Features.Sets():
			return nil, fmt.Errorf("measure: containment needs sets, and %s has none: use %s", r.Sketcher.Scheme().Features, rerank.Resemblance)
		}
	}
	return l, nil
}

// addGiven adds texts or documents.
func (s *similarity) addGiven(ctx context.Context, list *similar.List, r *rule.Rule, key string, elements [][]byte) error {
	if err := s.known(ctx); err != nil {
		return err
	}
	for i, element := range elements {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if key == "texts" {
			text, isText := jsonedit.Text(element)
			if !isText {
				return bad(fmt.Errorf("texts[%d]: must be a text", i))
			}
			var made *sketch.Sketch
			if one, ok := r.Sketch([]string{text}); ok {
				made = &one
			}
			list.Add(r, nil, made)
			continue
		}
		members, err := jsonedit.Members(element)
		if err != nil {
			return bad(fmt.Errorf(`documents[%d]: must be an object: send a document, or {"text": "…"}`, i))
		}
		if s.asks.index == "" && jsonedit.Get(members, rule.TextField) == nil {
			return bad(fmt.Errorf(`documents[%d]: has no text: send {"text": "…"}, or an index whose rule says which fields count`, i))
		}
		id := jsonedit.Get(members, "id")
		if len(id) > 0 && (id[0] == '{' || id[0] == '[') {
			id = nil
		}
		_, made := r.Given(element)
		list.Add(r, id, made)
	}
	return nil
}

// addStored adds the documents with these ids.
func (s *similarity) addStored(ctx context.Context, list *similar.List, elements [][]byte) error {
	ids := make([]string, len(elements))
	for i, element := range elements {
		isText := false
		if ids[i], isText = jsonedit.Text(element); !isText || ids[i] == "" {
			return bad(fmt.Errorf("ids[%d]: must be an id, as a text", i))
		}
	}
	list.Decided = s.h.decidedPairs()
	return list.AddStored(ctx, s.h.Rules, s.counted(), s.indices, ids)
}
