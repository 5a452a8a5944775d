package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/engines"
)

// importStream yields an import of documents of 8 kB, half of it text to sketch, the same each time, without holding it.
type importStream struct {
	bulkStream
	// format makes of a number and the function that appends the rest of a line its beginning.
	id string
}

func newImportStream(documents int, id string) *importStream {
	return &importStream{*newBulkStream(documents), id}
}

// next returns the next line with its end, nil behind the last one.
func (b *importStream) next() []byte {
	if b.documents == 0 {
		return nil
	}
	b.documents--
	line := fmt.Appendf(b.line[:0], `{"id":`+b.id+`,"title":"the story number %08d","body":"`, b.documents, b.documents)
	line = b.words(line, 4<<10)
	line = append(line, `","pad":"`...)
	line = b.words(line, 4<<10)
	b.line = append(line, "\"}\n"...)
	return b.line
}

// Read implements io.Reader.
func (b *importStream) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		if b.left = b.next(); b.left == nil {
			return 0, io.EOF
		}
	}
	n := copy(p, b.left)
	b.left = b.left[n:]
	return n, nil
}

// TestTypesenseLongRefusedImport imports 24 MB, or 1 GB by make soak, of documents that the engine refuses: it answers each with an error
// that quotes the line. Every line comes back as it was sent, and the sidecar's memory does not grow with them.
func TestTypesenseLongRefusedImport(t *testing.T) {
	size := 24 << 20
	if soaking() {
		size = 1 << 30
	}
	documents := size / 8290
	e := engines.Shared(t, engines.Typesense)
	base, pid := process(t, config(t, e, setup{match: "tref-*"}))
	direct := api{e, e.URL}
	direct.dropBefore(t, "tref-1")
	call(t, e, "POST", base+"/collections", `{"name":"tref-1","fields":[`+tsField+`]}`).want(t, 201)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "POST", base+"/collections/tref-1/documents/import", newImportStream(documents, "%d"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Typesense-Api-Key", e.Key)
	before, began := peak(t, pid), time.Now()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	want, lines, answered := newImportStream(documents, "%d"), 0, int64(0)
	reader := bufio.NewReaderSize(resp.Body, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if answered += int64(len(line)); len(line) > 0 {
			sent := bytes.TrimSuffix(want.next(), []byte("\n"))
			expected := append(adapters.AppendString([]byte(`{"code":400,"document":`), string(sent)), "`"...)
			expected = append(bytes.TrimSuffix(expected, []byte("`")), ",\"error\":\"Document's `id` field should be a string.\",\"success\":false}"...)
			if lines++; !bytes.Equal(bytes.TrimSuffix(line, []byte("\n")), expected) {
				t.Fatalf("line %d: %.300q, sent %.300q", lines, line, sent)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	after := peak(t, pid)
	t.Logf("%d lines, %d MB answered in %v; the sidecar's memory went from %d to %d MB", lines, answered>>20, time.Since(began).Round(time.Millisecond), before>>20, after>>20)
	if lines != documents {
		t.Errorf("%d lines of %d", lines, documents)
	}
	if grown := after - before; grown > 64<<20 { // 8 MB of a reply are held, and 32 MB for a line
		t.Errorf("the sidecar's memory grew by %d MB", grown>>20)
	}
}

// TestTypesenseBrokenOffImport breaks off imports of every form and length: nothing of them is stored, as it is directly.
func TestTypesenseBrokenOffImport(t *testing.T) {
	e := engines.Shared(t, engines.Typesense)
	base := serve(t, e, setup{match: "tbrk-*"})
	direct := api{e, e.URL}
	direct.dropBefore(t, "tbrk-1")
	call(t, e, "POST", base+"/collections", `{"name":"tbrk-1","fields":[`+tsField+`]}`).want(t, 201)
	count := func() string {
		return string(call(t, e, "GET", e.URL+"/collections/tbrk-1/documents/export", "").want(t, 200).body)
	}
	for _, documents := range []int{1, 1000} {
		for _, chunked := range []bool{false, true} {
			for _, to := range []string{e.URL, base} {
				u, err := url.Parse(to)
				if err != nil {
					t.Fatal(err)
				}
				conn, err := net.Dial("tcp", u.Host)
				if err != nil {
					t.Fatal(err)
				}
				length, body := "Content-Length: 99999999", mustRead(t, newImportStream(documents, `"%d"`))
				if chunked {
					length, body = "Transfer-Encoding: chunked", []byte(fmt.Sprintf("%x\r\n%s\r\n", len(body), body))
				}
				fmt.Fprintf(conn, "POST /collections/tbrk-1/documents/import?action=upsert HTTP/1.1\r\nHost: x\r\nX-Typesense-Api-Key: %s\r\n%s\r\n\r\n", e.Key, length)
				if _, err := conn.Write(body); err != nil {
					t.Fatal(err)
				}
				time.Sleep(300 * time.Millisecond)
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(300 * time.Millisecond)
				if stored := count(); stored != "" {
					t.Errorf("%d documents, chunked: %v, sent to %s: %.200s", documents, chunked, to, stored)
					call(t, e, "DELETE", e.URL+"/collections/tbrk-1/documents?filter_by=title:!=zz", "")
				}
			}
		}
	}
}

func mustRead(t *testing.T, r io.Reader) []byte {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
