package proxy_test

import (
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/proxy"
)

// TestNearEngine asks for pages in several codings. Each page has the Content-Encoding, Vary and Accept-Ranges that the engine chooses, and the same bytes once
// decoded. A near engine is asked for uncompressed replies as soon as its choice is known, another one never.
func TestNearEngine(t *testing.T) {
	chosen := map[string]string{ // by what arrives at the engine
		"gzip": "gzip", "GZIP": "GZIP", "gzip, deflate": "gzip", "deflate, gzip;q=0.5": "deflate", "*": "snappy", "gzip;q=0": "", "identity": "", "": "",
	}
	e := searchEngine(t)
	plain := e.answer
	e.answer = func(w http.ResponseWriter, a arrival) {
		coding, known := chosen[a.header.Get("Accept-Encoding")]
		expect.Same(t, true, known, "the engine is asked for what was to be expected")
		a.header = a.header.Clone()
		a.header.Del("Accept-Encoding")
		reply, to := httptest.NewRecorder(), io.WriteCloser(nil)
		if plain(reply, a); reply.Code != 200 {
			w.WriteHeader(reply.Code)
			coding = ""
		}
		switch w.Header()["Vary"] = []string{"origin"}; strings.ToLower(coding) {
		case "":
			w.Write(reply.Body.Bytes())
			return
		case "gzip":
			w.Header().Add("Vary", "Accept-Encoding")
			w.Header().Set("Accept-Ranges", "none")
			to = gzip.NewWriter(w)
		case "deflate":
			to = zlib.NewWriter(w)
		case "snappy":
			to = s2.NewWriter(w, s2.WriterSnappyCompat())
		}
		w.Header().Set("Content-Encoding", coding)
		to.Write(reply.Body.Bytes())
		to.Close()
	}
	near := proxy.NewTransport()
	f := serve(t, e, func(e *proxy.Engine) { e.Transport = near })
	search := func(f front, accepted string) answer {
		return do(t, "POST", f.url+"/news-1/_search", `{}`, "Accept-Encoding: "+accepted)
	}
	asked := func() string { return e.last().header.Get("Accept-Encoding") }
	for search(f, "gzip"); asked() != "identity"; search(f, "gzip") {
		near.CloseIdleConnections() // and the next connect may be a quick one
	}
	page := search(f, "").body
	for accepted, arrives := range map[string]string{
		"gzip": "gzip", "GZIP": "GZIP", "gzip, deflate, br, zstd": "gzip, deflate", "deflate, gzip;q=0.5": "deflate, gzip;q=0.5", "*": "*", "gzip;q=0": "gzip;q=0", "": "",
	} {
		for range 3 {
			a, coding := search(f, accepted), chosen[arrives]
			expect.Same(t, coding, a.header.Get("Content-Encoding"), "the coding for %s", accepted)
			expect.Same(t, strings.EqualFold(coding, "gzip"), len(a.header["Vary"]) == 2, "whether the reply varies for %s", accepted)
			expect.Same(t, strings.EqualFold(coding, "gzip"), a.header.Get("Accept-Ranges") == "none", "whether the reply says that it has no ranges for %s", accepted)
			from, decoded := strings.NewReader(a.body), io.Reader(nil)
			switch strings.ToLower(coding) {
			case "":
				decoded = from
			case "gzip":
				decoded = expect.Value(gzip.NewReader(from))(t)
			case "deflate":
				decoded = expect.Value(zlib.NewReader(from))(t)
			case "snappy":
				decoded = s2.NewReader(from)
			}
			expect.Same(t, page, string(expect.Value(io.ReadAll(decoded))(t)), "the page for %s", accepted)
		}
		expect.Same(t, chosen[arrives] != "", asked() == "identity", "whether the engine is asked for an uncompressed reply for %s", accepted)
	}
	plain = func(w http.ResponseWriter, _ arrival) { w.WriteHeader(429) }
	expect.Same(t, "", search(f, "gzip").header.Get("Content-Encoding"), "the coding of an error")
	plain = searching(t)
	other := serve(t, e, func(e *proxy.Engine) { e.Transport = &http.Transport{DisableCompression: true} })
	for range 3 {
		search(other, "gzip")
		expect.Same(t, "gzip", asked(), "what an engine is asked for that may be far")
	}
}
