package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// stored is an index whose documents jobs write again.
type stored struct {
	*bench
	engine    *engine
	source    string // is never written to, where the engine can clone it
	index     string
	documents int
	// sum is that of the hashes of all documents as they were loaded.
	sum  uint64
	seed maphash.Seed
}

// newStored makes an index with the given number of documents, of 1 kB each.
func (b *bench) newStored(e *engine, documents int) (*stored, error) {
	s := &stored{bench: b, engine: e, index: indexName(reindexing), documents: documents, seed: maphash.MakeSeed()}
	if s.source = s.index; !e.typesense() {
		s.source = indexName(reindexing + "-source")
	}
	if err := e.create(b.ctx, e.base, s.source); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		s.drop()
		return nil, err
	}
	b.log("%s: %d documents are loaded", e.name, documents)
	if e.typesense() {
		return s, nil
	}
	_, err := s.settledAt(s.source)
	if err == nil {
		err = e.do(b.ctx, e.base, request{method: "PUT", path: "/" + s.source + "/_settings", body: []byte(`{"index.blocks.write":true}`)}, nil)
	}
	if err != nil {
		s.drop()
	}
	return s, err
}

// load stores all documents, and sums their hashes.
func (s *stored) load() error {
	const each = 1000
	var next atomic.Int64
	var sum atomic.Uint64
	var group errgroup.Group
	texts := shelf{Count: s.documents, Bytes: 1000, Duplicates: .3}
	for range loaders {
		group.Go(func() error {
			for from := int(next.Add(each)) - each; from < s.documents; from = int(next.Add(each)) - each {
				var part []document
				for i := from; i < min(from+each, s.documents); i++ {
					d := s.texts.document(texts, i)
					text, err := json.Marshal(d)
					if err != nil {
						return err
					}
					h, err := s.hash(text)
					if err != nil {
						return err
					}
					sum.Add(h)
					part = append(part, d)
				}
				r, err := send(s.ctx, s.engine.base, s.engine.write(s.source, part))
				if err == nil {
					err = s.engine.written(r)
				}
				if err != nil {
					return fmt.Errorf("load %s: %w", s.source, err)
				}
			}
			return nil
		})
	}
	err := group.Wait()
	s.sum = sum.Load()
	return err
}

// drop deletes what was made.
func (s *stored) drop() {
	s.engine.drop(s.index)
	s.engine.drop(s.source)
}

// renew puts a clone of the source in the place of the index, where the engine can.
func (s *stored) renew() error {
	if s.engine.typesense() {
		return nil
	}
	s.engine.drop(s.index)
	for _, q := range []request{
		{method: "POST", path: "/" + s.source + "/_clone/" + s.index + "?wait_for_active_shards=1", body: []byte(`{"settings":{"index.blocks.write":null,"index.number_of_replicas":0,"index.refresh_interval":"1s"}}`)},
		{method: "GET", path: "/_cluster/health/" + s.index + "?wait_for_status=green&timeout=5m"},
	} {
		if err := s.engine.do(s.ctx, s.engine.base, q, nil); err != nil {
			return err
		}
	}
	return nil
}

// upkeep is what a job leaves the engine to do, by its own statistics. Typesense has none but the files on its disk.
type upkeep struct {
	Refreshes, Merges, Segments int
	Refreshing, Merging         time.Duration
	Merged, Disk                int64 // bytes
}

// settled waits until the engine has merged what it wants to merge.
func (s *stored) settled() (upkeep, error) { return s.settledAt(s.index) }

func (s *stored) settledAt(index string) (upkeep, error) {
	if s.engine.typesense() {
		return upkeep{}, nil
	}
	if err := s.engine.do(s.ctx, s.engine.base, request{method: "POST", path: "/" + index + "/_refresh"}, nil); err != nil {
		return upkeep{}, err
	}
	for {
		l, merging, err := s.statistics(index)
		if err != nil || merging == 0 {
			return l, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// statistics returns the load of an index since it was made, and how many merges are under way.
func (s *stored) statistics(index string) (l upkeep, merging int, err error) {
	type times struct {
		Total, Current int
		Millis         int64 `json:"total_time_in_millis"`
		Bytes          int64 `json:"total_size_in_bytes"`
	}
	var stats struct {
		All struct {
			Total struct {
				Refresh, Merges times
				Segments        struct{ Count int }
				Store           struct {
					Bytes int64 `json:"size_in_bytes"`
				}
			}
		} `json:"_all"`
	}
	err = s.engine.do(s.ctx, s.engine.base, request{method: "GET", path: "/" + index + "/_stats/refresh,merge,segments,store"}, &stats)
	all := stats.All.Total
	return upkeep{
		Refreshes: all.Refresh.Total, Refreshing: time.Duration(all.Refresh.Millis) * time.Millisecond,
		Merges: all.Merges.Total, Merging: time.Duration(all.Merges.Millis) * time.Millisecond, Merged: all.Merges.Bytes,
		Segments: all.Segments.Count, Disk: all.Store.Bytes,
	}, all.Merges.Current, err
}

// watchDisk looks every half second how much disk the index takes, until peak is called.
func (s *stored) watchDisk() (peak func() int64) {
	end, most := make(chan bool), make(chan int64, 1)
	go func() {
		largest := int64(0)
		for {
			if now, err := s.disk(); err == nil { // the next look may succeed
				largest = max(largest, now)
			}
			select {
			case <-end:
				most <- largest
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() int64 {
		close(end)
		return <-most
	}
}

// disk returns the bytes of the index, on Typesense those of all that it stores.
func (s *stored) disk() (size int64, err error) {
	if !s.engine.typesense() {
		l, _, err := s.statistics(s.index)
		return l.Disk, err
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", s.engine.process.pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(line, []byte("--data-dir"))
	if !found {
		return 0, errors.New("typesense does not say where its data is")
	}
	folder, _, _ := bytes.Cut(rest[1:], []byte{0}) // behind = or the end of the argument
	err = filepath.WalkDir(string(folder), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file may have gone meanwhile
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	return size, err
}

// hashingScript makes a min-hash of 128 positions of the words of a document: each run of three words has one hash, and each bucket keeps the
// least of its hashes.
const hashingScript = `long[] least = new long[128];
for (int i = 0; i < 128; i++) { least[i] = Long.MAX_VALUE; }
StringTokenizer words = new StringTokenizer(ctx._source.title + ' ' + ctx._source.body);
long first = 0L; long second = 0L;
while (words.hasMoreTokens()) {
  long third = words.nextToken().toLowerCase().hashCode();
  long h = ((first * 31L + second) * 31L + third) * -7046029254386353131L;
  h ^= h >>> 29;
  int bucket = (int) (h & 127L);
  if (h < least[bucket]) { least[bucket] = h; }
  first = second; second = third;
}
StringBuilder out = new StringBuilder();
for (int i = 0; i < 128; i++) { out.append(Long.toString((least[i] >>> 8) & 63L)); }
ctx._source.constant = out.toString()`

// constant has as many bytes as a sketch.
var constant = strings.Repeat("0123456789abcdef", 12)

// updateAll has the engine write all documents by a script. On Typesense it imports the constant.
func (s *stored) updateAll(script string) error {
	if s.engine.typesense() {
		return s.importAll()
	}
	body, err := json.Marshal(map[string]any{"script": map[string]any{"source": script, "params": map[string]string{"value": constant}}})
	if err != nil {
		return err
	}
	var job struct{ Task string }
	path := "/" + s.index + "/_update_by_query?refresh=true&conflicts=proceed&wait_for_completion=false"
	if err := s.engine.do(s.ctx, s.engine.base, request{method: "POST", path: path, body: body}, &job); err != nil {
		return err
	}
	for {
		var state struct {
			Completed bool
			Response  struct {
				Updated  int
				Failures []json.RawMessage
			}
		}
		if err := s.engine.do(s.ctx, s.engine.base, request{method: "GET", path: "/_tasks/" + job.Task}, &state); err != nil {
			return err
		}
		if state.Completed && state.Response.Updated != s.documents {
			return fmt.Errorf("the engine wrote %d of %d documents: %.300s", state.Response.Updated, s.documents, state.Response.Failures)
		}
		if state.Completed {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// importAll updates the field of sketches of all documents on Typesense.
func (s *stored) importAll() error {
	const each = 1000
	for from := 0; from < s.documents; from += each {
		var lines bytes.Buffer
		for i := from; i < min(from+each, s.documents); i++ {
			fmt.Fprintf(&lines, `{"id":"d%07d","neardup_sketch":"%s"}`+"\n", i, constant)
		}
		r, err := send(s.ctx, s.engine.base, request{"POST", "/collections/" + s.index + "/documents/import?action=update", s.engine.header(), lines.Bytes()})
		if err == nil {
			err = s.engine.written(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
