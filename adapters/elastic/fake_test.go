package elastic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/adapters/adaptertest"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// fakeEngine answers a search or multi-search as the engine does whose ranked lists list returns: with from, size, source
// filters and fields extracted, and a refusal of whatever else a body holds.
func fakeEngine(r *adapters.Request, list func(target []string) []adaptertest.Document) *adapters.Reply {
	path := strings.Split(strings.Trim(r.Path, "/"), "/")
	if params, err := url.ParseQuery(r.RawQuery); err != nil || len(params) > 0 {
		return fakeReply(400, fakeError("unrecognized parameter: "+r.RawQuery))
	}
	if path[len(path)-1] == "_search" {
		body, status := fakeSearch(r.Body, list(strings.Split(path[0], ",")))
		return fakeReply(status, body)
	}
	var responses [][]byte
	lines := strings.Split(strings.TrimSuffix(string(r.Body), "\n"), "\n")
	if len(lines)%2 != 0 || !strings.HasSuffix(string(r.Body), "\n") {
		return fakeReply(400, fakeError("lines"))
	}
	for pair := range slices.Chunk(lines, 2) {
		var header struct{ Index []string }
		if err := json.Unmarshal([]byte(pair[0]), &header); err != nil {
			return fakeReply(400, fakeError(err.Error()))
		}
		body, status := fakeSearch([]byte(pair[1]), list(header.Index))
		responses = append(responses, fmt.Appendf(body[:len(body)-1], `,"status":%d}`, status))
	}
	return fakeReply(200, fmt.Appendf(nil, `{"took":1,"responses":[%s]}`, bytes.Join(responses, []byte(","))))
}

func fakeReply(status int, body []byte) *adapters.Reply {
	return &adapters.Reply{Status: status, Header: adapters.Header{"Content-Type": {"application/json"}}, Body: body}
}

func fakeError(reason string) []byte {
	return fmt.Appendf(nil, `{"error":{"type":"illegal_argument_exception","reason":%q}}`, reason)
}

// fakeBody is what the fake knows of a search's body.
type fakeBody struct {
	From   int
	Size   *int
	Source json.RawMessage `json:"_source"`
	Fields []string
	Doc    []json.RawMessage `json:"docvalue_fields"`
	Filter json.RawMessage   `json:"post_filter"`
	Stored string            `json:"stored_fields"`
	Seq    bool              `json:"seq_no_primary_term"`
	Query  json.RawMessage
	Totals *bool `json:"track_total_hits"`
	Sort   any
	Aggs   any
}

func fakeSearch(body []byte, list []adaptertest.Document) ([]byte, int) {
	var b fakeBody
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&b); err != nil {
		return fakeError(err.Error()), 400
	}
	size := 10
	if b.Size != nil {
		size = *b.Size
	}
	if b.From < 0 || size < 0 || b.From > maxResultWindow || b.From+size > maxResultWindow {
		return fakeError("Result window is too large"), 400
	}
	filter := b.Filter
	if bytes.HasPrefix(b.Query, []byte(`{"bool":{"must":[`)) {
		filter = b.Query
	}
	if filter != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(d adaptertest.Document) bool {
			only := theseDocuments([]document{{d.Index, d.ID}}) // the fake knows ours alone
			named := bytes.Contains(filter, only[bytes.Index(only, []byte(`"_index":`)):bytes.Index(only, []byte(`}}`))])
			return !(named && bytes.Contains(filter, strconv.AppendQuote(nil, d.ID)) || bytes.Contains(filter, fmt.Append(nil, fakeNumber(d.ID))))
		})
	}
	indices := map[string]bool{}
	for _, d := range list {
		indices[d.Index] = true
	}
	page := list[min(b.From, len(list)):min(b.From+size, len(list))]
	hits := make([][]byte, len(page))
	for i, document := range page {
		hits[i] = fakeHit(document, b)
	}
	aggs, total := "", fmt.Sprintf(`"total":{"value":%d,"relation":"eq"},`, len(list))
	if b.Totals != nil && !*b.Totals {
		total = ""
	}
	if b.Aggs != nil {
		aggs = `,"aggregations":{"a":{"value":1}}`
	}
	return fmt.Appendf(nil, `{"took":1,"timed_out":false,"_shards":{"total":%d,"failed":0},"hits":{%s"max_score":1.0,"hits":[%s]}%s}`,
		len(indices), total, bytes.Join(hits, []byte(",")), aggs), 200
}

// fakeNumber is the sequence number of a document.
func fakeNumber(id string) uint64 { return 1e12 + xxhash.Sum64String(id)%1e12 }

// fakeListed reports whether a field is in a list of names, or of objects that hold one.
func fakeListed(list []json.RawMessage, key string) bool {
	names, _ := fieldNames(slices.Concat([]byte("["), bytes.Join(asBytes(list), []byte(",")), []byte("]")))
	return slices.Contains(names, key)
}

func asBytes(list []json.RawMessage) (out [][]byte) {
	for _, one := range list {
		out = append(out, one)
	}
	return out
}

func fakeHit(d adaptertest.Document, b fakeBody) []byte {
	hit := fmt.Appendf(nil, `{"_index":%q`, d.Index)
	if b.Stored != "_none_" {
		hit = fmt.Appendf(hit, `,"_id":%q`, d.ID)
	}
	if b.Seq {
		hit = fmt.Appendf(hit, `,"_seq_no":%d,"_primary_term":1`, fakeNumber(d.ID))
	}
	hit = append(hit, `,"_score":1.0`...)
	members, err := jsonedit.Members(d.Source)
	if err != nil {
		return []byte("null")
	}
	var only []string
	switch {
	case string(b.Source) == "false":
	case json.Unmarshal(b.Source, &only) == nil:
		source, _ := jsonedit.Cut(d.Source, func(key string) bool { return !slices.Contains(only, key) })
		hit = fmt.Appendf(hit, `,"_source":%s`, source)
	default:
		hit = fmt.Appendf(hit, `,"_source":%s`, d.Source)
	}
	var fields []string
	for i, m := range members {
		doc := m.Key == "n" || m.Key == rule.SketchField || m.Key == rule.ClusterField // the texts have no doc values
		if slices.Contains(b.Fields, m.Key) || doc && fakeListed(b.Doc, m.Key) {
			fields = append(fields, fmt.Sprintf(`%q:[%s]`, members[i].Key, m.Value))
		}
	}
	if len(fields) > 0 {
		hit = fmt.Appendf(hit, `,"fields":{%s}`, strings.Join(fields, ","))
	}
	return append(hit, '}')
}

// fakeReplies returns the replies in a reply to a search or a multi-search.
func fakeReplies(reply []byte) [][]byte {
	root, _ := jsonedit.Members(reply)
	if responses := jsonedit.Get(root, "responses"); responses != nil {
		replies, _ := jsonedit.Elements(responses)
		return replies
	}
	return [][]byte{reply}
}

// fakeHits returns the hits in such a reply, by search.
func fakeHits(reply []byte) [][]string {
	replies := fakeReplies(reply)
	all := make([][]string, len(replies))
	for i, reply := range replies {
		hits, _ := hitsOf(reply)
		for _, hit := range hits {
			all[i] = append(all[i], string(hit))
		}
	}
	return all
}
