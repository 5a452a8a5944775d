package chaos

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/neardup/sidecar/sketch"
)

// ours judges the fields of ours that a document carries: a sketch is that of its text, or there is none.
func (v *verdict) ours(s *Stored) {
	members := object(s.Source)
	for name, value := range members {
		if v.rule.Plain && strings.HasPrefix(name, prefix) && string(value) != "null" {
			v.find(Stale, s.ID, name+" stands in an index that was written past the sidecar")
		}
	}
	value, there := members[prefix+"sketch"]
	if !there || string(value) == "null" {
		if bands := members[prefix+"bands"]; len(bands) > 0 && string(bands) != "null" && string(bands) != "[]" {
			v.find(Stale, s.ID, fmt.Sprintf("it has bands and no sketch: %s", s.Source))
		}
		return
	}
	v.figures.Sketched++
	var stored sketch.Sketch
	if err := stored.UnmarshalText([]byte(textOf(members, prefix+"sketch"))); err != nil {
		v.find(Stale, s.ID, fmt.Sprintf("%s is no sketch: %v", value, err))
		return
	}
	var texts []string
	for _, field := range v.rule.Fields {
		if _, ok := members[field]; ok {
			texts = append(texts, textOf(members, field))
		}
	}
	computed, ok := v.rule.Sketcher.Sketch(texts...)
	if !ok || !same(&computed, &stored) {
		text := fmt.Sprintf("its sketch is %s, and that of its text %s: %s", stored.String(), computed.String(), s.Source)
		v.find(Stale, s.ID, text)
	}
}

// same reports whether two sketches are alike in all that is made of the text.
func same(a, b *sketch.Sketch) bool {
	return a.Scheme == b.Scheme && a.Form == b.Form && a.Bits == b.Bits && a.Cut == b.Cut && a.Shingles == b.Shingles &&
		a.Fingerprint == b.Fingerprint && bytes.Equal(a.Payload, b.Payload)
}

// groups judges bands and clusters over the whole index: equal sketches have equal bands, and no cluster holds two topics.
func (v *verdict) groups(stored []Stored) {
	bands, clusters := map[string]string{}, map[string]string{}
	for i := range stored {
		s, members := &stored[i], object(stored[i].Source)
		text, list := textOf(members, prefix+"sketch"), string(members[prefix+"bands"])
		if text != "" && list != "" {
			if other, ok := bands[text]; ok && other != list {
				text := fmt.Sprintf("its bands are %s, and %s with another document of the same sketch", list, other)
				v.find(Stale, s.ID, text)
			}
			bands[text] = list
		}
		cluster, about := textOf(members, prefix+"cluster"), textOf(members, "topic")
		if cluster == "" {
			continue
		}
		if other, ok := clusters[cluster]; ok && other != about {
			v.find(Stale, s.ID, fmt.Sprintf("its cluster %s holds texts of %s and of %s", cluster, about, other))
		}
		clusters[cluster] = about
	}
}

// Page is a page of a search that was answered with 200.
type Page struct {
	Index, Outcome string // Outcome: what the sidecar says that it did
	Hits           []Stored
	Body           []byte
}

// CheckPage returns what is wrong with a page: it is made of documents as they were sent, each once, shows nothing of ours, and
// where it says that it is collapsed no two are near-duplicates.
func (l *Ledger) CheckPage(p Page, rule Rule, near func(a, b *sketch.Sketch) bool) (findings []Finding) {
	find := func(id, text string) { findings = append(findings, Finding{BadPage, p.Index, id, text}) }
	if bytes.Contains(p.Body, []byte(prefix)) {
		find("", fmt.Sprintf("it shows a field of ours: %.500s", p.Body))
	}
	seen := map[string]bool{}
	var shown []sketch.Sketch
	for _, h := range p.Hits {
		if seen[h.ID] {
			find(h.ID, "it stands on the page twice")
		}
		seen[h.ID] = true
		if why := l.sent(p.Index, h.ID, h.Source); why != "" {
			find(h.ID, fmt.Sprintf("%s: %s", why, h.Source))
		}
		if !strings.HasPrefix(p.Outcome, "collapsed") {
			continue
		}
		members := object(h.Source)
		var texts []string
		for _, field := range rule.Fields {
			texts = append(texts, textOf(members, field))
		}
		s, ok := rule.Sketcher.Sketch(texts...)
		if !ok {
			continue
		}
		for i := range shown {
			if near(&s, &shown[i]) {
				find(h.ID, fmt.Sprintf("it is a near-duplicate of another hit (%s): %.2000s", p.Outcome, p.Body))
			}
		}
		shown = append(shown, s)
	}
	return findings
}
