package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/neardup/sidecar/internal/engines"
)

// awsSecret is the secret key of the signatures here; its name and all else of them is made up.
const (
	awsSecret = "a secret of the tests"
	awsScope  = "20261122/eu-central-1/es/aws4_request"
	awsDate   = "20261122T000000Z"
)

// awsKey returns the key that requests of the scope are signed with. (Source: AWS, "Signature Version 4 for API requests".)
func awsKey() []byte {
	key := []byte("AWS4" + awsSecret)
	for part := range strings.SplitSeq(awsScope, "/") {
		key = macOf(key, part)
	}
	return key
}

func macOf(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

func sumOf(data string) string {
	s := sha256.Sum256([]byte(data))
	return hex.EncodeToString(s[:])
}

// canonicalRequest is what a signature is over: method, path, query and headers, and the hash that the request says its body has.
func canonicalRequest(method, escapedPath, rawQuery, host string, header http.Header, signed []string, payload string) string {
	var query []string
	for part := range strings.SplitSeq(rawQuery, "&") {
		if part == "" || strings.HasPrefix(part, "X-Amz-Signature=") {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		query = append(query, name+"="+value)
	}
	slices.Sort(query)
	segments := strings.Split(escapedPath, "/")
	for i := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(segments[i]), "+", "%20")
	}
	lines := []string{method, strings.Join(segments, "/"), strings.Join(query, "&")}
	for _, name := range signed {
		value := strings.Join(header.Values(name), ",")
		if name == "host" {
			value = host
		}
		lines = append(lines, name+":"+strings.TrimSpace(value))
	}
	return strings.Join(append(lines, "", strings.Join(signed, ";"), payload), "\n")
}

func signatureOf(canonical string) string {
	return hex.EncodeToString(macOf(awsKey(), "AWS4-HMAC-SHA256\n"+awsDate+"\n"+awsScope+"\n"+sumOf(canonical)))
}

// verifier is what stands in front of an engine that takes signed requests alone: it recomputes each signature from what arrives, and
// refuses what is not signed as it stands.
type verifier struct {
	next    http.Handler
	mu      sync.Mutex
	good    int
	refused []string
}

// ServeHTTP implements http.Handler.
func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	why := v.wrong(r, string(body))
	v.mu.Lock()
	if why == "" {
		v.good++
	} else {
		v.refused = append(v.refused, r.Method+" "+r.RequestURI+": "+why)
	}
	v.mu.Unlock()
	if why != "" {
		http.Error(w, `{"message":"The request signature we calculated does not match: `+why+`"}`, http.StatusForbidden)
		return
	}
	r.Header.Del("Authorization")
	query := r.URL.Query()
	for name := range query {
		if strings.HasPrefix(name, "X-Amz-") {
			query.Del(name)
		}
	}
	r.URL.RawQuery = query.Encode()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	v.next.ServeHTTP(w, r)
}

// wrong returns what is wrong with a request's signature.
func (v *verifier) wrong(r *http.Request, body string) string {
	query := r.URL.Query()
	signed, signature, payload := query.Get("X-Amz-SignedHeaders"), query.Get("X-Amz-Signature"), "UNSIGNED-PAYLOAD"
	if authorization := r.Header.Get("Authorization"); authorization != "" {
		for part := range strings.SplitSeq(strings.TrimPrefix(authorization, "AWS4-HMAC-SHA256 "), ", ") {
			name, value, _ := strings.Cut(part, "=")
			switch name {
			case "SignedHeaders":
				signed = value
			case "Signature":
				signature = value
			}
		}
		payload = r.Header.Get("X-Amz-Content-Sha256")
	}
	switch {
	case signature == "":
		return "it is not signed"
	case payload != "UNSIGNED-PAYLOAD" && payload != sumOf(body):
		return "the body"
	}
	path, rawQuery, _ := strings.Cut(r.RequestURI, "?")
	if signatureOf(canonicalRequest(r.Method, path, rawQuery, r.Host, r.Header, strings.Split(signed, ";"), payload)) != signature {
		return "method, path, query or header"
	}
	return ""
}

// signedRequest is one that a client signs.
type signedRequest struct {
	name, method, path, query, body string
	how                             string // header, query, unsigned (its body)
	header                          []string
	search                          bool
	status                          int
}

// TestSignedRequests sends requests that are signed in all the ways there are through a sidecar to an engine behind a verifier. Each
// signature holds where it arrives, none arrives that does not, and the reply is that to the client's own request.
func TestSignedRequests(t *testing.T) {
	real := engines.Shared(t, engines.OpenSearch)
	at, err := url.Parse(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	v := &verifier{next: httputil.NewSingleHostReverseProxy(at)}
	gate := httptest.NewServer(v)
	t.Cleanup(gate.Close)
	index := "satk-signed"
	direct := api{real, real.URL}
	direct.drop(t, index)
	base := serve(t, &engines.Engine{Kind: real.Kind, URL: gate.URL}, setup{match: index})
	host := strings.TrimPrefix(gate.URL, "http://")
	for _, r := range signedRequests(index) {
		v.mu.Lock()
		v.good, v.refused = 0, nil
		v.mu.Unlock()
		resp := r.send(t, base, host)
		v.mu.Lock()
		if v.good != 1 || len(v.refused) > 0 {
			t.Errorf("%s: %d requests arrived as they were signed, and these not: %q", r.name, v.good, v.refused)
		}
		v.mu.Unlock()
		if resp.status != r.status {
			t.Errorf("%s: status %d, want %d: %.300s", r.name, resp.status, r.status, resp.body)
		}
		if got := resp.header.Get("Neardup"); r.search && got != "bypassed; reason=signed" {
			t.Errorf("%s: Neardup: %q", r.name, got)
		}
	}
	direct.refresh(t, index)
	if values, found := oursStored(t, direct, index, "b1"); !found || strings.Contains(values, `"neardup_sketch"`) {
		t.Errorf("what was signed has been changed: %s", values)
	}
}

func signedRequests(index string) []signedRequest {
	line := `{"index":{"_index":"` + index + `","_id":"b1"}}` + "\n" + `{"title":"news","body":"` + victimText + `"}` + "\n"
	document := `{"title":"news","body":"` + victimText + `"}`
	br, zstd := []string{"Accept-Encoding", "br"}, []string{"Accept-Encoding", "zstd, br;q=0.5"}
	list := []signedRequest{
		{name: "make an index", method: "PUT", path: "/" + index,
			body: `{"mappings":{"properties":{"title":{"type":"text"},"body":{"type":"text"}}}}`, status: 200},
		{name: "bulk", method: "POST", path: "/_bulk", query: "refresh=true", body: line, status: 200},
		{name: "bulk of an index", method: "POST", path: "/" + index + "/_bulk", query: "", body: line, status: 200},
		{name: "document", method: "PUT", path: "/" + index + "/_doc/a%20b", body: document, status: 201},
		{name: "search", method: "POST", path: "/" + index + "/_search", query: "typed_keys=true", body: `{"size":3}`, search: true,
			status: 200},
		{name: "search of all", method: "POST", path: "/_search", body: `{"size":0}`, search: true, status: 200},
		{name: "search by the query", method: "GET", path: "/" + index + "/_search", query: "q=news&size=2", search: true, status: 200},
		{name: "search that names what it accepts", method: "POST", path: "/" + index + "/_search", body: `{"size":1}`, search: true,
			status: 200, header: br},
		{name: "multi-search", method: "POST", path: "/_msearch", body: `{"index":"` + index + `"}` + "\n{}\n", search: true,
			status: 200},
		{name: "read", method: "GET", path: "/" + index + "/_doc/b1", status: 200},
		{name: "read that names what it accepts", method: "GET", path: "/" + index + "/_doc/b1", status: 200, header: zstd},
		{name: "head", method: "HEAD", path: "/" + index + "/_doc/b1", status: 200},
		{name: "several", method: "POST", path: "/" + index + "/_mget", body: `{"ids":["b1"]}`, status: 200},
		{name: "update", method: "POST", path: "/" + index + "/_update/b1", body: `{"doc":{"title":"olds"}}`, status: 200},
		{name: "mapping", method: "GET", path: "/" + index + "/_mapping", status: 200},
		{name: "question", method: "GET", path: "/_neardup/" + index + "/similar/b1", status: 400},
		{name: "delete", method: "DELETE", path: "/" + index + "/_doc/a%20b", status: 200},
	}
	var all []signedRequest
	for _, how := range []string{"header", "query", "unsigned"} {
		for _, r := range list {
			if how != "header" && r.name == "make an index" {
				continue
			}
			r.how, r.name = how, r.name+", signed by "+how
			all = append(all, r)
		}
	}
	return all
}

// send signs a request for the host and sends it to the base.
func (s signedRequest) send(t *testing.T, base, host string) reply {
	t.Helper()
	header := http.Header{"X-Amz-Date": {awsDate}, "Content-Type": {"application/json"}}
	signed := []string{"content-type", "host", "x-amz-date"}
	for i := 0; i < len(s.header); i += 2 {
		header.Set(s.header[i], s.header[i+1])
		signed = append(signed, strings.ToLower(s.header[i]))
	}
	payload, query := sumOf(s.body), s.query
	switch s.how {
	case "unsigned", "query":
		payload = "UNSIGNED-PAYLOAD"
	}
	if s.how == "query" {
		slices.Sort(signed)
		query = strings.TrimPrefix(query+"&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential="+url.QueryEscape("AKID/"+awsScope)+
			"&X-Amz-Date="+awsDate+"&X-Amz-Expires=900&X-Amz-SignedHeaders="+url.QueryEscape(strings.Join(signed, ";")), "&")
	} else {
		header.Set("X-Amz-Content-Sha256", payload)
		signed = append(signed, "x-amz-content-sha256")
		slices.Sort(signed)
	}
	signature := signatureOf(canonicalRequest(s.method, s.path, query, host, header, signed, payload))
	if s.how == "query" {
		query += "&X-Amz-Signature=" + signature
	} else {
		header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/"+awsScope+", SignedHeaders="+strings.Join(signed,
			";")+", Signature="+signature)
	}
	r, err := http.NewRequestWithContext(t.Context(), s.method, base+s.path+"?"+query, strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	if query == "" {
		r.URL.ForceQuery = false
	}
	r.Header = header
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, data}
}
