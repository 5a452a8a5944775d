package elastic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// mostTerms is how many terms one clause takes: engines grant 65,536.
const mostTerms = 60000

// anyBand returns a query for documents with one of the band keys.
func anyBand(keys []int64) string {
	clauses := []string{`{"match_none":{}}`}
	for some := range slices.Chunk(keys, mostTerms) {
		list, _ := json.Marshal(some) // numbers always marshal
		clauses = append(clauses, `{"terms":{"`+rule.BandsField+`":`+string(list)+`}}`)
	}
	return `{"bool":{"should":[` + strings.Join(clauses, ",") + `]}}`
}

// bandsInOneSearch reports whether documents are chosen by bands, and one search finds all of them.
func (r *scan) bandsInOneSearch() bool {
	return r.sel.Bands != nil && r.sel.Part == "" && r.sel.After == "" && r.sel.Limit > 0 && r.sel.Limit <= maxResultWindow
}

// readByBands reads the documents that one search finds by their bands.
func (r *scan) readByBands(ctx context.Context) error {
	body := `{"size":` + strconv.Itoa(r.sel.Limit) + `,` + r.source + bySeqNo + `,"track_total_hits":false,` +
		`"seq_no_primary_term":true,"query":` + r.query + `}`
	found, err := r.search(ctx, post(r.index+"/_search", "", body))
	if err != nil {
		return err
	}
	return r.yieldDocuments(found.hits, "")
}

// readSample reads documents chosen at random, all where there are no more: their ids first, which take little room, and then
// themselves.
func (r *scan) readSample(ctx context.Context) error {
	if !r.sel.Brief {
		if err := r.s.refresh(ctx, r.index); err != nil {
			return err
		}
	}
	query := fmt.Sprintf(`"query":{"function_score":{"query":%s,"boost_mode":"replace","random_score":{"seed":%d,"field":"_seq_no"}}}}`,
		r.query, rand.Uint32())
	most, after := cmp.Or(r.sel.Limit, math.MaxInt), ""
	for read := 0; read < most; {
		n := min(most-read, maxResultWindow)
		body := fmt.Sprintf(`{"size":%d,"_source":false,"track_total_hits":%t,"sort":["_score",{"_seq_no":{"unmapped_type":"long"}}]%s,%s`,
			n, after == "", after, query)
		found, err := r.searchIDs(ctx, post(r.index+"/_search", "", body))
		if err != nil {
			return err
		}
		if after == "" {
			r.total = min(most, found.total)
		}
		if err := r.readNow(ctx, found.hits); err != nil || len(found.hits) < n {
			return err
		}
		read, after = read+n, `,"search_after":`+string(found.sort)
	}
	return nil
}

// readByIDs reads the documents with these ids. One that was stored with a routing of its own is looked for as of the last refresh, but not
// where it has to be quick.
func (r *scan) readByIDs(ctx context.Context, ids []string) error {
	if r.sel.Brief {
		r.size = max(r.size, min(len(ids), maxResultWindow))
	}
	wanted := make([]adapters.Stored, len(ids))
	for i, id := range ids {
		wanted[i].ID = id
	}
	return r.readNow(ctx, wanted)
}

// readNow reads documents as they are at this moment.
func (r *scan) readNow(ctx context.Context, wanted []adapters.Stored) error {
	var missing []string
	for len(wanted) > 0 {
		n := min(r.want(), len(wanted))
		if n == 0 {
			return adapters.ErrEnough
		}
		found, err := r.search(ctx, post(r.index+"/_mget", "", r.gets(wanted[:n])))
		if errors.Is(err, errTooLong) && n > 1 {
			r.size = n / 2
			continue
		}
		if err != nil {
			return err
		}
		for _, d := range found.absent {
			astray := !r.sel.Brief && !slices.ContainsFunc(wanted[:n], func(w adapters.Stored) bool { return w.ID == d.id && w.Routing != "" })
			switch {
			case d.failed != "" && !(astray && strings.HasPrefix(d.failed, "routing_missing_exception")):
				return fmt.Errorf("document %s: %s", d.id, d.failed)
			case astray:
				missing = append(missing, d.id)
			}
		}
		wanted = wanted[n:]
		if err := r.yieldDocuments(found.hits, ""); err != nil {
			return err
		}
	}
	return r.readRouted(ctx, missing)
}

// searchIDs sends a search that shows ids alone: with [withVectors] the engine would show more.
func (r *scan) searchIDs(ctx context.Context, request raw) (found scanPage, err error) {
	body, err := r.s.body(ctx, request, scanLimit)
	if err != nil {
		return found, err
	}
	return readScanPage(body, r.uuid)
}

// gets returns the body of a request for some documents.
func (r *scan) gets(list []adapters.Stored) string {
	var b []byte
	for i, d := range list {
		b = append(b, [...]string{`{"docs":[{`, `,{`}[min(i, 1)]+r.source+`"_id":`...)
		b = jsonedit.AppendString(b, d.ID)
		b = appendRouting(b, d)
		b = append(b, '}')
	}
	return string(append(b, `]}`...))
}

// readRouted reads those of the documents that are stored with a routing of their own.
func (r *scan) readRouted(ctx context.Context, ids []string) error {
	for some := range slices.Chunk(ids, scanMost) {
		body := `{"size":` + strconv.Itoa(maxResultWindow) + `,"_source":false,"track_total_hits":false,"query":{"ids":{"values":` +
			string(stringsOf(some)) + `}}}`
		found, err := r.searchIDs(ctx, post(r.index+"/_search", "", body))
		if err != nil {
			return err
		}
		if err := r.readNow(ctx, slices.DeleteFunc(found.hits, func(d adapters.Stored) bool { return d.Routing == "" })); err != nil {
			return err
		}
	}
	return nil
}
