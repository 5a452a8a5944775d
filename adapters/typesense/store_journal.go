package typesense

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/typesense/typesense-go/v2/typesense/api"

	"github.com/neardup/sidecar/adapters"
)

// JournalIndex is the collection that journals are kept in. It is ours: no pattern of names leads to it.
const JournalIndex = "neardup_jobs"

// journalSchema declares it. An entry's id is its job, slot and number, and the engine makes no document under an id that is there.
// The job's name is indexed as a hash, which holds nothing that a filter could misread.
const journalSchema = `{"name":"` + JournalIndex + `","fields":[{"name":"key","type":"string"},{"name":"part","type":"int64"},` +
	`{"name":"number","type":"int64"},{"name":"job","type":"string","index":false,"optional":true},` +
	`{"name":"data","type":"string","index":false,"optional":true}]}`

type journal struct{ *Store }

// Journal implements adapters.JobStore.
func (s *Store) Journal() adapters.Journal { return journal{s} }

// JournalIndex implements adapters.JobStore.
func (s *Store) JournalIndex() string { return JournalIndex }

// journalled is an entry as it is stored.
type journalled struct {
	ID  string `json:"id"`
	Key string `json:"key"`
	adapters.Entry
}

func jobKey(job string) string { return fmt.Sprintf("%016x", xxhash.Sum64String(job)) }

// Append implements adapters.Journal.
func (j journal) Append(ctx context.Context, job string, e adapters.Entry) (bool, error) {
	e.Job = job
	key := jobKey(job)
	document, err := json.Marshal(journalled{fmt.Sprintf("%s-%d-%d", key, e.Slot, e.Number), key, e})
	if err != nil {
		return false, err
	}
	create := func() error {
		_, err := readAll(j.api.IndexDocumentWithBody(
			ctx, JournalIndex, &api.IndexDocumentParams{}, "application/json", bytes.NewReader(document),
		))
		return err
	}
	err = create()
	if answered(err, http.StatusNotFound) {
		_, made := readAll(j.api.CreateCollectionWithBody(ctx, "application/json", strings.NewReader(journalSchema)))
		if made != nil && !answered(made, http.StatusConflict) {
			return false, fmt.Errorf("make the collection %s, where jobs are kept: %w", JournalIndex, made)
		}
		err = create()
	}
	switch {
	case answered(err, http.StatusConflict):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("append to the journal in %s: %w", JournalIndex, err)
	}
	return true, nil
}

// Entries implements adapters.Journal.
func (j journal) Entries(ctx context.Context, job string) ([]adapters.Entry, error) {
	if job == "" {
		return j.find(ctx, job, nil)
	}
	filter := "key:=" + jobKey(job)
	return j.find(ctx, job, &filter)
}

// Since implements adapters.Journal.
func (j journal) Since(ctx context.Context, job string, slot, number int) ([]adapters.Entry, error) {
	filter := fmt.Sprintf("key:=%s && part:=%d && number:>=%d", jobKey(job), slot, number)
	return j.find(ctx, job, &filter)
}

// find returns the entries of a job, or of all where the name is empty, that the filter lets through.
func (j journal) find(ctx context.Context, job string, filter *string) ([]adapters.Entry, error) {
	params := &api.ExportDocumentsParams{FilterBy: filter}
	resp, err := j.api.ExportDocuments(ctx, JournalIndex, params)
	if err != nil {
		return nil, fmt.Errorf("read the journal in %s: %w", JournalIndex, err)
	}
	var list []adapters.Entry
	err = eachLine(resp, func(line []byte) error {
		var e journalled
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if job == "" || e.Job == job {
			list = append(list, e.Entry)
		}
		return nil
	})
	if err != nil && !answered(err, http.StatusNotFound) {
		return nil, fmt.Errorf("read the journal in %s: %w", JournalIndex, err)
	}
	slices.SortFunc(list, adapters.Entry.Compare)
	return list, nil
}

// Drop implements adapters.Journal.
func (j journal) Drop(ctx context.Context, job string, slot, below int) error {
	filter := "key:=" + jobKey(job)
	if slot >= 0 {
		filter += fmt.Sprintf(" && part:=%d && number:<%d", slot, below)
	}
	_, err := readAll(j.api.DeleteDocuments(ctx, JournalIndex, &api.DeleteDocumentsParams{FilterBy: &filter}))
	if err != nil && !answered(err, http.StatusNotFound) {
		return fmt.Errorf("drop entries of the journal in %s: %w", JournalIndex, err)
	}
	return nil
}
