package cases

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/upstream"
)

// idsAtOnce is how many documents a request asks for: their ids may be in its URL.
const idsAtOnce = 20

// read reads the stored documents of all cases, with what a search reads of them.
func (t *test) read(ctx context.Context) {
	t.stored, t.unread = map[string][]document{}, map[string]error{}
	everywhere, in := idsOf(t.index.Cases)
	if len(everywhere) == 0 && len(in) == 0 {
		return
	}
	indices, err := upstream.Within(ctx, func(ctx context.Context) ([]adapters.Index, error) { return t.engine.Matching(ctx, t.rule.Match) })
	if err != nil {
		t.failed(slices.Concat(everywhere, slices.Concat(slices.Collect(maps.Values(in))...)), t.engine.Explain(err))
		return
	}
	for _, index := range indices {
		if matched := index.Rule(t.engine.Rules); index.Absent || matched == nil || matched.Match != t.rule.Match {
			continue
		}
		ids := slices.Concat(everywhere, in[index.Name])
		if index.As != "" && index.As != index.Name {
			ids = append(ids, in[index.As]...)
		}
		slices.Sort(ids)
		for some := range slices.Chunk(slices.Compact(ids), idsAtOnce) {
			t.look(ctx, index.Name, some)
		}
	}
}

// failed notes why documents could not be read.
func (t *test) failed(ids []string, why error) {
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		t.unread[id] = errors.Join(t.unread[id], why)
	}
}

// idsOf returns the ids that are looked up in all indices, and those that name an index, by that.
func idsOf(cases []config.Case) (everywhere []string, in map[string][]string) {
	in = map[string][]string{}
	for _, c := range cases {
		for _, d := range slices.Concat(c.Same, c.Different) {
			switch {
			case d.ID == "":
			case d.Index == "":
				everywhere = append(everywhere, d.ID)
			default:
				in[d.Index] = append(in[d.Index], d.ID)
			}
		}
	}
	return everywhere, in
}

// look reads documents of an index by a search for their ids, and notes which could not be read.
func (t *test) look(ctx context.Context, index string, ids []string) {
	asked := adapters.Look{
		Index: index, IDs: ids, Size: len(ids), Fields: t.rule.Fields, Judged: true, Deciding: t.rule.Deciding(), Header: t.engine.Config.Header(),
	}
	request, err := t.engine.Kind.LookFor(asked)
	if err != nil && len(ids) > 1 { // one of them can only be looked up alone
		for _, id := range ids {
			t.look(ctx, index, []string{id})
		}
		return
	}
	var looked adapters.Looked
	if err == nil {
		looked, err = lookAt(ctx, t.engine, asked, request)
	}
	if err != nil {
		t.failed(ids, fmt.Errorf("index %s: %w", index, err))
		return
	}
	t.doubting = looked.Doubting
	for _, hit := range looked.Hits {
		if slices.Contains(ids, hit.ID) {
			t.stored[hit.ID] = append(t.stored[hit.ID], document{Seen: hit.Seen, source: hit.Document, index: hit.Name})
		}
	}
}

// lookAt sends the request of a look to the first of the engine's nodes that answers.
func lookAt(ctx context.Context, o *upstream.Engine, asked adapters.Look, request *adapters.Request) (looked adapters.Looked, err error) {
	var reply *adapters.Reply
	for _, node := range o.Config.URLs {
		if reply, err = upstream.Send(ctx, o.Transport, node, request); err == nil || ctx.Err() != nil || !upstream.Unreachable(err) {
			break
		}
	}
	if err == nil {
		looked, err = o.Kind.LookedAt(asked, reply)
	}
	if err != nil {
		return looked, o.Explain(err)
	}
	return looked, nil
}
