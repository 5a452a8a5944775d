package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/upstream"
)

const (
	// idsAtOnce is how many documents a request asks for: their ids may be in its URL.
	idsAtOnce = 20
	// maxReply is the largest reply that is read.
	maxReply = 64 << 20
)

// read reads the stored documents of all cases, with what a search reads of them.
func (t *test) read(ctx context.Context) {
	t.stored = map[string][]document{}
	everywhere, in := idsOf(t.index.Cases)
	if len(everywhere) == 0 && len(in) == 0 {
		return
	}
	indices, err := t.engine.Matching(ctx, t.rule.Match)
	if err != nil {
		t.unread = t.engine.Explain(err)
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
			if err := t.look(ctx, index.Name, some); err != nil {
				t.unread = errors.Join(t.unread, fmt.Errorf("index %s: %w", index.Name, err))
			}
		}
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

// look reads documents of an index by a search for their ids.
func (t *test) look(ctx context.Context, index string, ids []string) error {
	asked := adapters.Look{
		Index: index, IDs: ids, Size: len(ids), Fields: t.rule.Fields, Judged: true, Deciding: t.rule.Deciding(), Header: t.engine.Config.Header(),
	}
	request, err := t.engine.Kind.LookFor(asked)
	if err != nil {
		return err
	}
	reply, err := send(ctx, t.engine, request)
	if err != nil {
		return t.engine.Explain(err)
	}
	looked, err := t.engine.Kind.LookedAt(asked, reply)
	if err != nil {
		return t.engine.Explain(err)
	}
	t.doubting = looked.Doubting
	for _, hit := range looked.Hits {
		if slices.Contains(ids, hit.ID) {
			t.stored[hit.ID] = append(t.stored[hit.ID], document{Seen: hit.Seen, source: hit.Document, index: hit.Name})
		}
	}
	return nil
}

// send sends a request to the first of the engine's nodes that answers.
func send(ctx context.Context, o *upstream.Engine, request *adapters.Request) (reply *adapters.Reply, err error) {
	for _, node := range o.Config.URLs {
		if reply, err = sendTo(ctx, o, node, request); err == nil || ctx.Err() != nil || !upstream.Unreachable(err) {
			break
		}
	}
	return reply, err
}

func sendTo(ctx context.Context, o *upstream.Engine, node string, request *adapters.Request) (*adapters.Reply, error) {
	r, err := http.NewRequestWithContext(ctx, request.Method, strings.TrimSuffix(node, "/")+request.Path, bytes.NewReader(request.Body))
	if err != nil {
		return nil, err
	}
	r.URL.RawQuery, r.Header = request.RawQuery, http.Header(request.Header).Clone()
	resp, err := o.Transport.RoundTrip(r) // it follows no redirect: the credentials are for this address alone
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err == nil && len(body) > maxReply {
		err = fmt.Errorf("the documents of the cases are larger than %d MB", maxReply>>20)
	}
	return &adapters.Reply{Status: resp.StatusCode, Header: adapters.Header(resp.Header), Body: body}, err
}
