package e2e

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/internal/engines"
)

// withKeys adds keys to the engine in a configuration file.
func withKeys(t *testing.T, file, keys string) string {
	t.Helper()
	text := must(os.ReadFile(file))(t)
	const before = "    indices:\n"
	changed := strings.Replace(string(text), before, keys+before, 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil || changed == string(text) {
		t.Fatalf("%s could not be changed: %v", file, err)
	}
	return file
}

// TestSniffingRewritesAddressesAlone compares what the engine says of its nodes with what comes through the sidecar, byte by byte.
func TestSniffingRewritesAddressesAlone(t *testing.T) {
	for _, kind := range []string{engines.Elasticsearch, engines.OpenSearch} {
		t.Run(kind, func(t *testing.T) {
			e := engines.Shared(t, kind)
			plain := serve(t, e, setup{match: "sniff-*"})
			rewriting := serveFile(t, withKeys(t, config(t, e, setup{match: "sniff-*"}), "    rewrite_sniffing: true\n"))
			advertise := "    rewrite_sniffing: true\n    advertise: search.example:443\n"
			advertising := serveFile(t, withKeys(t, config(t, e, setup{match: "sniff-*"}), advertise))
			for _, path := range []string{
				"/_nodes/http", "/_nodes/_all/http", "/_nodes/_local/http?pretty", "/_nodes", "/_nodes/*/http,settings",
				"/_nodes/http?filter_path=nodes.*.http", "/_nodes/nobody/http", "/_nodes/_local/http?format=yaml",
			} {
				for _, encoding := range []string{"", "gzip", "deflate"} {
					direct := call(t, e, "GET", e.URL+path, "", "Accept-Encoding", encoding)
					same := call(t, e, "GET", plain+path, "", "Accept-Encoding", encoding)
					if !bytes.Equal(direct.body, same.body) || !maps.EqualFunc(direct.header, same.header, slices.Equal) {
						t.Errorf("%s in %q differs by default: %v %s", path, encoding, same.header, same.body)
					}
					for us, told := range map[string]string{rewriting: strings.TrimPrefix(rewriting, "http://"), advertising: "search.example:443"} {
						through := call(t, e, "GET", us+path, "", "Accept-Encoding", encoding)
						want := string(decoded(t, direct))
						if !strings.Contains(path, "yaml") {
							want = strings.ReplaceAll(want, `"`+strings.TrimPrefix(e.URL, "http://")+`"`, `"`+told+`"`)
						}
						if diff := cmp.Diff(want, string(decoded(t, through))); diff != "" || through.status != direct.status {
							t.Errorf("%s in %q to %s: %s", path, encoding, told, diff)
						}
						for _, header := range []string{"X-Elastic-Product", "Content-Type"} {
							if got, want := through.header.Get(header), direct.header.Get(header); got != want {
								t.Errorf("%s: %s is %q, want %q", path, header, got, want)
							}
						}
					}
				}
			}
		})
	}
}
