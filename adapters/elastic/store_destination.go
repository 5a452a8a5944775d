package elastic

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/neardup/sidecar/adapters"
)

// destination is an index that documents are written back to, known by its UUID.
//
// Between a document's reading and its writing the index can be deleted and created again. A load that is always the same gives the new
// documents the sequence numbers of the old ones, so these alone do not keep a job from writing yesterday's text over today's; and a
// bulk to an index that is gone creates it anew. Therefore writes go through a hidden alias of our own with require_alias: the engine
// drops the alias with the index, and refuses a write to an alias that is not there.
type destination struct {
	index, uuid string
	// alias is empty where there can be none: an index behind a data stream takes no aliases, and credentials may forbid it. Then the UUID
	// is asked for before each request, and documents are changed by updates, which never replace a text.
	alias  string
	update bool
	// embeds says that the engine refuses scripts, since it computes embeddings of the documents.
	embeds bool
	// vectors says that the engine shows vectors only where they are asked for.
	vectors bool

	mu sync.Mutex // held until the first document is compared
	// compared says that one document was written and found unchanged but for our fields.
	compared bool
}

// destinations are the destinations of one engine by UUID.
type destinations struct {
	mu  sync.Mutex
	all map[string]*destination
}

// aliasOf returns the name of our alias of the index with a UUID.
func aliasOf(uuid string) string { return "neardup-writes-" + hex.EncodeToString([]byte(uuid)) }

// destination returns the index that documents were read from, ready to be written to, or says why it can't be written to.
func (s *Store) destination(ctx context.Context, index, uuid string) (*destination, error) {
	known := &s.shared.destinations
	known.mu.Lock()
	defer known.mu.Unlock()
	if t := known.all[uuid]; t != nil && t.index == index {
		return t, nil
	}
	made, err := s.made(ctx, index)
	if err == nil && made.uuid != uuid || missing(err) {
		return nil, adapters.ErrRecreated
	}
	if err == nil {
		err = made.writable()
	}
	if err != nil {
		return nil, err
	}
	t := &destination{index: index, uuid: uuid, alias: aliasOf(uuid), update: made.update, embeds: made.embeds, vectors: made.vectors}
	added, err := s.pin(ctx, t)
	if err != nil {
		return nil, err
	}
	if !added {
		t.alias, t.update = "", true
	}
	known.all[uuid] = t
	return t, nil
}

// pin adds the alias to the index, unless the engine refuses. Only then is it asked whether this is still the same index.
func (s *Store) pin(ctx context.Context, t *destination) (added bool, err error) {
	err = s.do(ctx, aliasAction("add", t.index, t.alias, `,"is_hidden":true`), nil)
	switch {
	case missing(err):
		return false, adapters.ErrRecreated
	case errors.Is(err, adapters.ErrBusy) || err != nil && !refusedBy(err):
		return false, err
	}
	added = err == nil
	err = s.same(ctx, t)
	if errors.Is(err, adapters.ErrRecreated) && added {
		s.after(ctx, aliasAction("remove", t.index, t.alias, ""))
	}
	return added, err
}

// same fails with adapters.ErrRecreated if the index is not the one that documents were read from.
func (s *Store) same(ctx context.Context, t *destination) error {
	settings, err := s.settings(ctx, t.index, uuidSetting)
	if err == nil && settings[uuidSetting] != t.uuid || missing(err) {
		return adapters.ErrRecreated
	}
	return err
}

func aliasAction(action, index, alias, more string) raw {
	body := fmt.Sprintf(`{"actions":[{%q:{"index":%s,"alias":%q%s}}]}`, action, adapters.AppendString(nil, index), alias, more)
	return raw{"POST", "/_aliases", "", body}
}

// name is what the destination is called in a request that writes to it.
func (t *destination) name() string {
	if t.alias != "" {
		return t.alias
	}
	return t.index
}

// write sends a request that writes to the destination, and again where another process has removed the alias when it was done. lost reports
// whether the engine found no index of that name.
func (s *Store) write(ctx context.Context, t *destination, send func() (lost bool, err error)) error {
	for range aliasTries {
		if t.alias == "" {
			if err := s.same(ctx, t); err != nil {
				return err
			}
		}
		lost, err := send()
		if err != nil || !lost {
			return err
		}
		if t.alias == "" {
			return adapters.ErrRecreated
		}
		if added, err := s.pin(ctx, t); err != nil {
			return err
		} else if !added { // the request may hold whole documents, which go through the alias alone
			return fmt.Errorf("the alias %s is gone, and the engine refuses to add it again", t.alias)
		}
	}
	return fmt.Errorf("the alias %s is removed again and again: is another job at work on %s?", t.alias, t.index)
}

// aliasTries is how often a request is sent whose alias is gone each time.
const aliasTries = 5

// noIndex is the type of the error by which the engines say that there is no index of a name.
const noIndex = "index_not_found_exception"

func lostBy(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && missing(err) && strings.HasPrefix(r.reason, noIndex)
}

// Release implements adapters.Releaser.
func (s *Store) Release(ctx context.Context, index string) {
	known := &s.shared.destinations
	known.mu.Lock()
	defer known.mu.Unlock()
	for uuid, t := range known.all {
		if t.index == index {
			delete(known.all, uuid)
			if t.alias != "" {
				s.after(ctx, aliasAction("remove", index, t.alias, ""))
			}
		}
	}
}
