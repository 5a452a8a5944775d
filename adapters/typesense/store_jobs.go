package typesense

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// leastParts is how many parts a collection has at least.
const leastParts = 4

// Split returns the names of n parts of a collection: shares of its documents by a hash of their ids, so that each document is in the
// same part whatever happens to the others. Reading one part costs an export of the collection. There are a few at least, so that
// others can join in.
func Split(_ context.Context, st adapters.Store, index string, n int) ([]string, error) {
	if _, ok := st.(*store); !ok {
		return nil, errForeign
	}
	if n < 1 {
		return nil, fmt.Errorf("split %s into %d parts: use at least 1", index, n)
	}
	n = max(n, leastParts)
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strconv.Itoa(i) + "/" + strconv.Itoa(n)
	}
	return parts, nil
}

// IdentityOf returns when a collection was made, which tells it from another that was made under its name.
func IdentityOf(ctx context.Context, st adapters.Store, index string) (string, error) {
	s, ok := st.(*store)
	if !ok {
		return "", errForeign
	}
	c, err := s.collection(ctx, index)
	return strconv.FormatInt(c.CreatedAt, 10), err
}

// share is a part of a collection; the zero value is all of it.
type share struct{ number, of uint64 }

// parsePart reads the name of a part, as Split gave it.
func parsePart(name string) (share, error) {
	if name == "" {
		return share{}, nil
	}
	first, second, _ := strings.Cut(name, "/")
	number, err1 := strconv.ParseUint(first, 10, 32)
	of, err2 := strconv.ParseUint(second, 10, 32)
	if err1 != nil || err2 != nil || number >= of {
		return share{}, fmt.Errorf("part %q: is no share of a collection: use one such as 0/4", name)
	}
	return share{number, of}, nil
}

// holds reports whether the document with the id is in the share.
func (s share) holds(id string) bool { return s.of == 0 || xxhash.Sum64String(id)%s.of == s.number }

// size returns how many of so many documents are in the share, about; over all shares it adds up to them.
func (s share) size(documents int) int {
	if s.of == 0 {
		return documents
	}
	all, number, of := uint64(documents), s.number, s.of
	return int(all*(number+1)/of - all*number/of)
}

// Remove takes our fields out of a collection's documents and then out of its schema. What it finds is all that there is, unless
// documents go on coming with our fields: then the note says how many did. The collection of journals goes as a whole.
func Remove(ctx context.Context, st adapters.Store, index string) (note string, err error) {
	s, ok := st.(*store)
	if !ok {
		return "", errForeign
	}
	if index == JournalIndex {
		return "", s.dropJournals(ctx)
	}
	if _, err := s.strip(ctx, index); err != nil {
		return "", err
	}
	c, err := s.collection(ctx, index)
	if err != nil {
		return "", err
	}
	var drops []string
	for _, f := range c.Fields {
		if adapters.Our(f.Name) {
			drops = append(drops, `{"name":"`+f.Name+`","drop":true}`)
		}
	}
	if len(drops) > 0 {
		_, err := s.get(func(c *api.Client) (*http.Response, error) {
			body := strings.NewReader(`{"fields":[` + strings.Join(drops, ",") + `]}`)
			return c.UpdateCollectionWithBody(ctx, index, "application/json", body)
		})
		if err != nil {
			return "", fmt.Errorf("drop our fields from the schema of %s: %w", index, err)
		}
	}
	late, err := s.strip(ctx, index)
	if err != nil || late == 0 {
		return "", err
	}
	return fmt.Sprintf("%d documents of %s came with our fields while these were removed: take its entry out of the configuration, "+
		"restart the sidecars and run this again", late, index), nil
}

// strip takes our fields out of all documents of a collection that have them, and returns of how many.
func (s *store) strip(ctx context.Context, index string) (stripped int, err error) {
	nulls := adapters.Ours{}.Fields(true)
	err = s.Scan(ctx, index, nil, adapters.Selection{Brief: true, Marked: true}, func(p adapters.Page) error {
		var lines []byte
		for _, d := range p.Documents {
			lines = appendUpdate(lines, d.ID, nulls)
		}
		replies, err := s.importLines(ctx, index, lines)
		if err != nil {
			return err
		}
		stripped += len(replies)
		for _, line := range replies {
			// One that was deleted meanwhile is in no need of it.
			if !bytes.Contains(line, []byte(`"success":true`)) && !bytes.Contains(line, []byte(`"code":404`)) {
				return fmt.Errorf("take our fields out of the documents of %s: the engine answers %.300s", index, line)
			}
		}
		return nil
	})
	return stripped, err
}
