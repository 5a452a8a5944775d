package elastic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// JournalIndex is the index in which the entries of jobs are kept. It is hidden: no pattern of a client's reaches it.
const JournalIndex = "neardup-jobs"

// journalShape is what it is made with. What templates say is outdone, as far as it could change or refuse an entry.
const journalShape = `{"settings":{"index":{"hidden":true,"number_of_shards":1,"auto_expand_replicas":"0-1",` +
	`"default_pipeline":"_none","final_pipeline":"_none"}},"mappings":{"dynamic":false,"properties":{` +
	`"job":{"type":"keyword"},"part":{"type":"long"},"number":{"type":"long"},"data":{"type":"binary"}}}}`

// journalPage is how many entries are read at once.
const journalPage = 1000

// journal implements adapters.Journal: an entry is a document whose id is made of its job, slot and number, and no id is given
// twice.
type journal struct {
	s      *Store
	mu     sync.Mutex
	exists bool // its index does, for certain
}

var _ adapters.Journal = (*journal)(nil)

// Journal implements adapters.JobStore.
func (s *Store) Journal() adapters.Journal { return &journal{s: s} }

// JournalIndex implements adapters.JobStore.
func (s *Store) JournalIndex() string { return JournalIndex }

// make makes the index, unless it is there.
func (j *journal) make(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.exists {
		return nil
	}
	err := j.s.do(ctx, esapi.IndicesCreateRequest{Index: JournalIndex, Body: strings.NewReader(journalShape)}, nil)
	switch {
	case says(err, "resource_already_exists_exception"):
		err = nil
	case forbidden(err): // it may be there all the same. If not, a first entry must not make it in another shape
		if j.s.do(ctx, esapi.IndicesExistsRequest{Index: []string{JournalIndex}}, nil) == nil {
			err = nil
		}
	}
	j.exists = err == nil
	return err
}

// Append implements adapters.Journal.
func (j *journal) Append(ctx context.Context, job string, e adapters.Entry) (bool, error) {
	failed := func(err error) (bool, error) {
		return false, fmt.Errorf("index %s, where jobs are kept: %w", JournalIndex, err)
	}
	if err := j.make(ctx); err != nil {
		return failed(err)
	}
	e.Job = job
	body, err := json.Marshal(e)
	if err != nil {
		return failed(err)
	}
	id := url.PathEscape(fmt.Sprintf("%s %d %d", job, e.Slot, e.Number))
	err = j.s.do(ctx, esapi.CreateRequest{Index: JournalIndex, DocumentID: id, Body: strings.NewReader(string(body))}, nil)
	switch {
	case adapters.StatusOf(err) == http.StatusConflict:
		return false, nil
	case err != nil:
		return failed(err)
	}
	return true, nil
}

// Entries implements adapters.Journal.
func (j *journal) Entries(ctx context.Context, job string) ([]adapters.Entry, error) {
	return j.find(ctx, ofJob(job))
}

// Since implements adapters.Journal.
func (j *journal) Since(ctx context.Context, job string, slot, number int) ([]adapters.Entry, error) {
	return j.find(ctx, ofJob(job, `{"term":{"part":`+strconv.Itoa(slot)+`}}`, `{"range":{"number":{"gte":`+strconv.Itoa(number)+`}}}`))
}

// find returns the entries that a query finds.
func (j *journal) find(ctx context.Context, query string) (list []adapters.Entry, err error) {
	err = j.s.refresh(ctx, JournalIndex)
	for after := ""; err == nil; {
		var reply struct {
			Hits struct {
				Hits []struct {
					Source adapters.Entry `json:"_source"`
					Sort   json.RawMessage
				}
			}
		}
		body := `{"size":` + strconv.Itoa(journalPage) + `,"track_total_hits":false,"sort":["job","part","number"]` + after +
			`,"query":` + query + `}`
		if err = j.s.do(ctx, post(JournalIndex+"/_search", "", body), &reply); err != nil {
			break
		}
		for _, h := range reply.Hits.Hits {
			list = append(list, h.Source)
			after = `,"search_after":` + string(h.Sort)
		}
		if len(reply.Hits.Hits) < journalPage {
			return list, nil
		}
	}
	if missing(err) {
		return nil, nil
	}
	return nil, fmt.Errorf("index %s, where jobs are kept: %w", JournalIndex, err)
}

// ofJob returns the query for a job's entries that fulfil some more clauses, or for all entries.
func ofJob(job string, more ...string) string {
	if job != "" {
		more = append(more, `{"term":{"job":`+string(jsonedit.AppendString(nil, job))+`}}`)
	}
	return allOf(more...)
}

// Drop implements adapters.Journal.
func (j *journal) Drop(ctx context.Context, job string, slot, below int) error {
	query := ofJob(job)
	if slot >= 0 {
		query = ofJob(job, `{"term":{"part":`+strconv.Itoa(slot)+`}}`, `{"range":{"number":{"lt":`+strconv.Itoa(below)+`}}}`)
	}
	err := j.s.refresh(ctx, JournalIndex)
	if err == nil {
		yes := true
		err = j.s.do(ctx, esapi.DeleteByQueryRequest{
			Index: []string{JournalIndex}, Body: strings.NewReader(`{"query":` + query + `}`), Conflicts: "proceed", Refresh: &yes,
		}, nil)
	}
	if err != nil && !missing(err) {
		return fmt.Errorf("index %s, where jobs are kept: %w", JournalIndex, err)
	}
	return nil
}
