package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/neardup/sidecar/internal/engines"
	inject "github.com/neardup/sidecar/internal/faults"
)

// certificate returns one that signs itself, for 127.0.0.1 unless a name is given, and the file that makes it trusted.
func certificate(t *testing.T, name string, from, until time.Time) (pair tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	if name == "" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}

// wrongCertificates has an engine behind TLS whose certificate is not to be trusted.
func wrongCertificates(t *testing.T, b *faultBench) {
	day, now := 24*time.Hour, time.Now()
	_, others := certificate(t, "", now.Add(-day), now.Add(day))
	for name, c := range map[string]struct {
		host        string
		from, until time.Time
		trusted     string // in place of its own
		sees        sight
	}{
		"good":          {"", now.Add(-day), now.Add(day), "", asEver},
		"expired":       {"", now.Add(-2 * day), now.Add(-day), "", badGate},
		"not valid yet": {"", now.Add(day), now.Add(2 * day), "", badGate},
		"of another":    {"search.example.org", now.Add(-day), now.Add(day), "", badGate},
		"of a stranger": {"", now.Add(-day), now.Add(day), others, badGate},
		"none: no TLS":  {sees: badGate, trusted: others},
		"over TLS 1.1":  {"", now.Add(-day), now.Add(day), "old", badGate},
	} {
		url, file := strings.Replace(b.e.URL, "http://", "https://", 1), c.trusted
		if c.from != (time.Time{}) {
			pair, own := certificate(t, c.host, c.from, c.until)
			config := &tls.Config{Certificates: []tls.Certificate{pair}}
			if file == "old" {
				file, config.MaxVersion = "", tls.VersionTLS11
			}
			if file == "" {
				file = own
			}
			url = "https://" + relayTLS(t, config, b.relay.Addr())
		}
		v := b.another(t, func(text string) string {
			return strings.Replace(text, `urls: ["`+b.relay.URL()+`"]`, `urls: ["`+url+`"]`+fmt.Sprintf("\n    tls: {ca_file: %q}", file), 1)
		}, nil)
		for _, k := range b.kinds {
			if !b.takes() {
				continue
			}
			b.n++
			before := v.moves(t)
			if saw := k.sees(t, b.e, attempt(t, b.e, v.base, k.ask(b.n), within), nil); saw != c.sees {
				t.Errorf("%s, certificate %s: the client sees %v", k.name, name, saw)
			}
			if moved := v.moves(t).since(before); c.sees == badGate && !moved.any("neardup_engine_errors_total{") {
				t.Errorf("%s, certificate %s: counted %v", k.name, name, moved)
			}
			b.bit++
		}
	}
}

// wallClock is where code reads the time of day, and why a jump of the clock does no harm there. All else counts by the clock
// that never jumps, which Go's time.Now holds beside it.
var wallClock = map[string]string{
	"adapters/elastic/store_index.go": "names of date math: TestDateMathAtMidnight",
	"jobs/lease.go":                   "whether others are at work: TestClocksApart",
	"jobs/lease_holding.go":           "a lease ends by whichever clock says so first: TestClocksApart",
	"cmd/sidecar/initengine.go":       "when a certificate expires",
	"cmd/sidecar/metrics.go":          "when a certificate expires",
	"cmd/sidecar/tls.go":              "when a certificate expires, and which file was read last",
	"cmd/sidecar/tlsengine.go":        "when a certificate expires",
}

var timeOfDay = regexp.MustCompile(`\.(UTC|Unix|UnixNano|UnixMilli|UnixMicro|Truncate|Format|AppendFormat|Weekday|YearDay)\(|\.Round\(0\)`)

// jumpingClock reads the sources for what depends on the time of day.
func jumpingClock(t *testing.T, b *faultBench) {
	root := filepath.Join("..", "..")
	for _, dir := range []string{"sketch", "rerank", "adapters", "proxy", "jobs", "playground", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "adaptertest") {
				return err
			}
			text, err := os.ReadFile(path)
			rel, _ := filepath.Rel(root, path)
			b.bit++
			if found := timeOfDay.Find(text); found != nil && strings.Contains(string(text), `"time"`) && wallClock[filepath.ToSlash(rel)] == "" {
				t.Errorf("%s depends on the time of day (%s): say in wallClock why a jump does no harm", rel, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoWriteTwice cuts a connection that was used before when the engine has done what a write asks: a transport must not take
// that for a reason to send it again, whatever its header says.
func TestNoWriteTwice(t *testing.T) {
	eachDialect(t, func(t *testing.T, e *engines.Engine) {
		relay := inject.Start(t, e.URL)
		base := serve(t, e, setup{match: "fault-*", urls: []string{relay.URL()}})
		if e.Kind != engines.Typesense {
			api{e, e.URL}.drop(t, "fault-none")
		}
		paths := []sending{{"DELETE", "/fault-none/_doc/1", "", nil}, {"POST", "/fault-none/_refresh", "", nil}, {"PUT", "/fault-none/_doc/1", `{"a":1}`, nil}}
		if e.Kind == engines.Typesense {
			paths = []sending{{"DELETE", "/collections/fault-none/documents/1", "", nil}, {"POST", "/operations/snapshot-none", "", nil},
				{"POST", "/collections/fault-none/documents", `{"a":1}`, nil}}
		}
		for _, r := range paths {
			for _, header := range []string{"", "Idempotency-Key", "X-Idempotency-Key"} {
				for _, at := range []inject.Place{inject.RequestLine, inject.RequestWhole, inject.ReplyLine, inject.ReplyBodyBegin} {
					for range 3 { // so that there are connections to be used again
						_ = attempt(t, e, base, sending{"GET", "/", "", nil}, within)
					}
					relay.Forget()
					relay.Script(inject.Where(inject.To(r.method, strings.SplitN(r.path, "?", 2)[0]), inject.Always(inject.Fault{At: at, Do: inject.Reset})))
					ask := r
					if header != "" {
						ask.header = []string{header, "once"}
					}
					_ = attempt(t, e, base, ask, within)
					relay.Script(nil)
					sent := 0
					for _, x := range relay.Seen() {
						if x.Method == r.method && x.Target == r.path {
							sent++
						}
					}
					if sent > 1 {
						t.Errorf("%s %s with %q, %v: sent %d times", r.method, r.path, header, at, sent)
					}
				}
			}
		}
	})
}

// tableHead begins the table in docs/guarantees.md.
const tableHead = "| component | fault | requests | the client sees | counted |\n|---|---|---|---|---|\n"

// TestFailureTable holds the table in docs/guarantees.md to what TestFailures drives, row by row.
func TestFailureTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString(tableHead)
	for _, f := range failures {
		want.WriteString(f.row() + "\n")
	}
	_, table, found := strings.Cut(string(text), tableHead)
	rows, _, _ := strings.Cut(table, "\n\n")
	if !found || tableHead+rows+"\n" != want.String() {
		t.Errorf("the table of docs/guarantees.md is not what TestFailures drives, which is\n%s", want.String())
	}
	seen := map[string]bool{}
	for _, f := range failures {
		if seen[f.name()] {
			t.Errorf("two rows are called %s", f.name())
		}
		seen[f.name()] = true
		if f.drive == nil || f.sees == "" || f.counted == "" {
			t.Errorf("%s has an empty cell", f.name())
		}
	}
}
