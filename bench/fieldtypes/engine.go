package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const prefix = "fieldtypes-"

// engine is a node that is measured.
type engine struct {
	name, url string
	client    http.Client
	indices   []string
}

// send returns the status and the body of the reply to one request.
func (e *engine) send(method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequest(method, strings.TrimSuffix(e.url, "/")+"/"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := e.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	return reply.StatusCode, data, err
}

// do is send for requests that must succeed; into may be nil.
func (e *engine) do(method, path string, body []byte, into any) error {
	status, data, err := e.send(method, path, body)
	if err != nil {
		return err
	}
	if status >= 300 {
		return fmt.Errorf("%s %s: %d: %.500s", method, path, status, data)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

func (e *engine) version() (string, error) {
	var root struct{ Version struct{ Number string } }
	err := e.do("GET", "", nil, &root)
	return root.Version.Number, err
}

// create creates an index again, with one shard, no copies and no automatic refreshes.
func (e *engine) create(index, codec, mappings string) error {
	e.drop(index)
	e.indices = append(e.indices, index)
	const settings = `{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":-1,"codec":%q}`
	return e.do("PUT", index, fmt.Appendf(nil, `{"settings":`+settings+`,"mappings":%s}`, codec, mappings), nil)
}

// drop deletes one index if it is there.
func (e *engine) drop(index string) {
	_, _, _ = e.send("DELETE", index+"?ignore_unavailable=true", nil)
}

func (e *engine) dropAll() {
	for _, index := range e.indices {
		e.drop(index)
	}
	e.indices = nil
}

// bulk sends documents and returns how long the engine took as seen from here.
func (e *engine) bulk(index string, body []byte) (time.Duration, error) {
	var reply struct {
		Errors bool
		Items  []json.RawMessage
	}
	start := time.Now()
	err := e.do("POST", index+"/_bulk", body, &reply)
	took := time.Since(start)
	if err == nil && reply.Errors {
		err = fmt.Errorf("bulk into %s: an item failed: %.300s", index, reply.Items[0])
	}
	return took, err
}

// settle merges an index to one segment and makes it searchable.
func (e *engine) settle(index string) error {
	for _, step := range []string{"/_refresh", "/_forcemerge?max_num_segments=1", "/_flush?force=true", "/_refresh"} {
		if err := e.do("POST", index+step, nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// lines returns the body of a bulk of documents whose ids are their numbers.
func lines(documents []document, first int, withSketch bool) []byte {
	var b []byte
	for i, d := range documents {
		b = fmt.Appendf(b, "{\"index\":{\"_id\":\"%d\"}}\n", first+i)
		b = append(append(b, d.source(withSketch)...), '\n')
	}
	return b
}

// properties returns the mappings of a variant besides the given others.
func (v variant) properties(others string) string {
	if v.mapping != "" {
		others += `,"` + field + `":` + v.mapping
	}
	return `{"properties":{` + others + `}}`
}
