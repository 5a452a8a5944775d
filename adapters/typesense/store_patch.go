package typesense

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// together is how many documents are patched at a time. The fewer, the shorter a sketch that does not fit can be there, and
// the longer a backfill takes ([016]: docs/decisions/016-patch-and-look.md).
const together = 100

// tries is how often a sketch is written to a document that keeps changing, before it is cleared and left to its writer or to the
// next run.
const tries = 3

// Patch implements adapters.Store. The engine knows no version of a document, so an update can't be made to depend on one. But it
// answers an update with the whole document as that update left it, so it is known which text each sketch came to: where that
// is another one, the next update brings its sketch, and in the end clears it. From one update to the next such a document
// carries a sketch of a former text; where the process ends just then it does so until the next run. To make it rare, the
// documents are read anew just before. Whatever is written through the sidecar after an update that fits brings its own sketch or
// clears ours.
func (s *Store) Patch(
	ctx context.Context, index string, rule *rule.Rule, patches []adapters.Stored,
) ([]adapters.Result, error) {
	if slices.ContainsFunc(patches, func(p adapters.Stored) bool { return p.Wanted == nil }) {
		return nil, adapters.ErrUnwanted
	}
	var results []adapters.Result
	for some := range slices.Chunk(patches, together) {
		done, err := s.patch(ctx, index, rule, some)
		if err != nil {
			return nil, err
		}
		results = append(results, done...)
	}
	return results, nil
}

// patching is a patch on its way.
type patching struct {
	adapters.Stored
	at   int       // among the documents
	ours rule.Ours // what is to be written; what is not there is cleared
	// strips says that all that is ours is to go from a document whose text could be sketched, or that no rule matches.
	strips bool
}

// patchingOf takes up a patch. Without a rule there is nothing that our fields could rightly hold.
func patchingOf(r *rule.Rule, at int, p adapters.Stored) patching {
	one := patching{Stored: p, at: at, ours: *p.Wanted}
	if r == nil {
		one.strips, one.ours = true, rule.Ours{}
	} else if p.Wanted.Equal(rule.Ours{}) {
		want, _ := r.OursFor(p.Source, p.ID)
		one.strips = !want.Equal(rule.Ours{})
	}
	return one
}

// wanted returns what our fields of a document, as it is now, are to hold by the patch, and whether they do. The patch's cluster
// is right as long as the text is the one that was read.
func (p patching) wanted(r *rule.Rule, source []byte) (want rule.Ours, right bool) {
	if p.strips {
		return want, !rule.HasOurs(source)
	}
	want, right = r.OursFor(source, p.ID)
	switch {
	case !r.Clusters:
		return want, right
	case p.Wanted.Cluster != "" && p.Wanted.Sketch == want.Sketch:
		want.Cluster = p.Wanted.Cluster
	case want.Sketch == "": // its cluster may be the one that the patch gave to a text that is gone
		want.Cluster = r.ClusterID(r.NumberOf(p.ID))
	}
	return want, rule.OursOf(source).Equal(want)
}

// outdone reports whether another has written our fields since the document was read, or to a document that is to be stripped a text
// too, and rightly so.
func (p patching) outdone(r *rule.Rule, source []byte) bool {
	if _, right := r.OursFor(source, p.ID); !right {
		return false
	}
	if !rule.OursOf(source).Equal(rule.OursOf(p.Source)) {
		return true
	}
	then, _ := r.Wanted(p.Source)
	now, _ := r.Wanted(source)
	return p.strips && (then == nil) != (now == nil)
}

// Release implements adapters.Store: patches leave nothing.
func (s *Store) Release(context.Context, string) {}

func (s *Store) patch(
	ctx context.Context, index string, rule *rule.Rule, patches []adapters.Stored,
) ([]adapters.Result, error) {
	now := map[string][]byte{}
	if rule != nil {
		ids := make([]string, len(patches))
		for i, p := range patches {
			ids[i] = p.ID
		}
		if err := s.Scan(ctx, index, rule, adapters.Selection{IDs: ids}, func(p adapters.Page) error {
			for _, d := range p.Documents {
				now[d.ID] = d.Source
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	results, left := make([]adapters.Result, len(patches)), []patching{}
	for i, p := range patches {
		one := patchingOf(rule, i, p)
		if source, there := now[p.ID]; there {
			right := false
			if one.ours, right = one.wanted(rule, source); right || one.outdone(rule, source) {
				results[i] = adapters.Changed
				continue
			}
		}
		left = append(left, one)
	}
	for try := 1; len(left) > 0; try++ {
		var err error
		if left, err = s.send(ctx, index, rule, left, results); err != nil || try > tries {
			return results, err
		}
		for i := range left {
			if try == tries {
				left[i].ours = cleared(rule, left[i].ID)
			}
		}
	}
	return results, nil
}

// cleared returns the fields of a document without a sketch: it has a cluster of its own nevertheless.
func cleared(rule *rule.Rule, id string) (none rule.Ours) {
	if rule.Clusters {
		none.Cluster = rule.ClusterID(rule.NumberOf(id))
	}
	return none
}

// send sends patches and sets their results by the documents that the engine answers. It returns those that left a document
// with another sketch than its text has, each with that text's own. What is null is left out of the document, whether the field is
// declared or not.
func (s *Store) send(
	ctx context.Context, index string, under *rule.Rule, patches []patching, results []adapters.Result,
) (unfit []patching, err error) {
	var lines []byte
	for _, p := range patches {
		lines = appendUpdate(lines, p.ID, p.ours.Fields(rule.OurFields...))
	}
	n := 0
	err = s.update(ctx, index, lines, func(line []byte) error {
		if n == len(patches) {
			return errors.New("more replies than documents")
		}
		p := patches[n]
		n++
		document, result, err := updated(line)
		if results[p.at] = result; document == nil {
			return err
		}
		fitting, right := p.wanted(under, unflattened(document))
		if right {
			return nil
		}
		results[p.at] = adapters.Changed
		if p.ours.Sketch != "" { // else it was cleared, as it was meant to be
			p.ours = fitting
			unfit = append(unfit, p)
		}
		return nil
	})
	if err == nil && n < len(patches) {
		err = fmt.Errorf("update documents of %s: fewer replies than documents", index)
	}
	return unfit, err
}

// appendUpdate appends a line that sets our fields of a document.
func appendUpdate(lines []byte, id string, fields []byte) []byte {
	lines = jsonedit.AppendString(append(lines, `{"id":`...), id)
	return append(append(append(lines, ','), fields...), '}', '\n')
}

// updated reads one line of an import's reply: the document as it was left, if it was updated.
func updated(line []byte) (document []byte, result adapters.Result, err error) {
	members, err := jsonedit.Members(line)
	if err != nil {
		return nil, adapters.Refused, err
	}
	switch document = jsonedit.Get(members, "document"); {
	case string(jsonedit.Get(members, "success")) != "true":
		switch code := count(members, "code"); {
		case code == 404:
			return nil, adapters.Gone, nil
		case busy(code):
			return nil, adapters.Busy, nil
		}
		return nil, adapters.Refused, nil
	case len(document) == 0 || document[0] != '{':
		return nil, adapters.Refused, fmt.Errorf("%w: no document in %.200s", adapters.ErrNotUnderstood, line)
	}
	return document, adapters.Patched, nil
}
