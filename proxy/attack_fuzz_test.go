package proxy

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/neardup/sidecar/adapters"
)

// FuzzDecode has any bytes for a compressed body: what is read of it is bounded, and what we compress reads as it was.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a", strings.Repeat("a", 5000), `{"hits":{}}`} {
		for _, coding := range []string{"gzip", "deflate", "x-gzip", "snappy"} {
			f.Add([]byte(s), coding)
			f.Add(coded(coding, []byte(s)), coding)
		}
	}
	f.Add([]byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"), "gzip")
	f.Add([]byte("\x78\x9c\x03"), "DEFLATE")
	f.Add([]byte("\xff\x06\x00\x00sNaPpY\x01\x05\x00\x00\x00\x00\x00\x00x"), "Snappy")
	const limit = 1 << 16
	f.Fuzz(func(t *testing.T, body []byte, coding string) {
		plain, err := (*hold)(nil).decode(coding, body, limit)
		if len(plain) > limit+1 || err == nil && len(plain) > limit {
			t.Fatalf("%d bytes were read", len(plain))
		}
		if errors.Is(err, errTooLarge) && len(plain) <= limit {
			t.Fatalf("%d bytes are too large", len(plain))
		}
		if len(body) <= limit && codings[strings.ToLower(coding)] {
			back, err := (*hold)(nil).decode(coding, coded(strings.ToLower(coding), body), limit)
			if err != nil || !bytes.Equal(back, body) {
				t.Fatalf("%q in %q reads %q: %v", body, coding, back, err)
			}
		}
	})
}

// FuzzAccepted has any list of what a client accepts: the engine is asked for all of it, as it was sent, but for what we can't read.
func FuzzAccepted(f *testing.F) {
	for _, s := range []string{"gzip, deflate, br", "*", "snappy;q=1, *;q=0.1", "gzip;q=0", "", ",,;", "identity;q=0, zstd", "Zstd, x-Brotli, GZIP"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, accepted string) {
		var want []string
		for item := range strings.SplitSeq(accepted, ",") {
			name, _, _ := strings.Cut(strings.ToLower(item), ";")
			if !strings.Contains(name, "br") && !strings.Contains(name, "zstd") {
				want = append(want, item)
			}
		}
		header := http.Header{"Accept-Encoding": {accepted}}
		acceptReadable(header)
		asked := strings.Join(header["Accept-Encoding"], ",")
		if asked != strings.Join(want, ",") && !(want == nil && asked == "identity") {
			t.Fatalf("%q asks for %q, not for %q", accepted, asked, want)
		}
	})
}

// FuzzClient has any headers and query for a client's: two that differ in a header that may carry rights have different keys.
func FuzzClient(f *testing.F) {
	f.Add("Authorization", "Basic a", "x-typesense-api-key=k")
	f.Add("X-Forwarded-User", "a", "KEY=1&key=2")
	f.Add("Cookie", "", "&&")
	f.Fuzz(func(t *testing.T, name, value, query string) {
		header := adapters.Header{name: {value}}
		one, same := clientOf(header, query), clientOf(header, query)
		if one.key != same.key {
			t.Fatal("the same client has two keys")
		}
		other := clientOf(adapters.Header{name: {value + "x"}}, query)
		carries := true
		for _, list := range [][]string{bodyHeaders, hopHeaders, tracingHeaders} {
			for _, known := range list {
				carries = carries && known != name
			}
		}
		if carries == (one.key == other.key) {
			t.Fatalf("%s: %q and %q are told apart: %t", name, value, value+"x", one.key != other.key)
		}
	})
}
