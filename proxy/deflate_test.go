package proxy_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"io"
	"strings"
	"testing"
)

func deflated(text string, raw bool) string {
	var b bytes.Buffer
	var z io.WriteCloser = zlib.NewWriter(&b)
	if raw {
		z, _ = flate.NewWriter(&b, flate.DefaultCompression)
	}
	io.WriteString(z, text)
	z.Close()
	return b.String()
}

// TestDeflate: writes, small and streamed, and searches are read in both forms of deflate, and go on as they came where nothing changes.
func TestDeflate(t *testing.T) {
	const header = "Content-Encoding: deflate"
	for _, raw := range []bool{false, true} {
		e := searchEngine(t)
		f := serve(t, e, nil)
		if a := do(t, "POST", f.url+"/news-1/_search", deflated(`{"size":2}`, raw), header); ids(a.body) != "0 2" {
			t.Errorf("raw=%v: the search was %q", raw, a.header.Get("Neardup"))
		}
		for _, body := range []string{bulk("news-1", 3), fat("news-1", 300)} {
			do(t, "POST", f.url+"/_bulk", deflated(body, raw), header)
			got := e.arrived()
			last := got[len(got)-1]
			if n := strings.Count(body, "\"title\""); enriched(last.body) != n || last.header.Get("Content-Encoding") != "" || withoutSketches(string(last.body)) != body {
				t.Errorf("raw=%v: %d of %d documents are enriched", raw, enriched(last.body), n)
			}
		}
		for _, body := range []string{deflated(bulk("logs", 3), raw), deflated(bulk("news-1", 50), raw)[:100]} {
			do(t, "POST", f.url+"/_bulk", body, header)
			got := e.arrived()
			if last := got[len(got)-1]; string(last.body) != body || last.header.Get("Content-Encoding") != "deflate" {
				t.Errorf("raw=%v: the engine got %q", raw, last.body)
			}
		}
	}
}
