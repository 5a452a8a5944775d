package elastic

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/jsonedit"
)

func TestClassifyNodes(t *testing.T) {
	seen, advertised := Dialect{RewriteSniffing: true}, Dialect{RewriteSniffing: true, Advertise: "search.example:9201"}
	for _, c := range []struct {
		method, path string
		asks         bool
	}{
		{"GET", "/_nodes", true},
		{"GET", "/_nodes/http", true},
		{"GET", "/_nodes/_all/http", true},
		{"GET", "/_nodes/a,b*,10.0.0.1/http", true},
		{"GET", "/%5Fnodes/http", true},
		{"GET", "/_nodes/node-1", true},
		{"GET", "/_nodes/settings", true}, // tells none, and nothing is found
		{"HEAD", "/_nodes/http", false},
		{"POST", "/_nodes/reload_secure_settings", false},
		{"GET", "/_nodes/stats/http", false},
		{"GET", "/_nodes/hot_threads", false},
		{"GET", "/_cat/nodes", false},
		{"GET", "/", false},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			r := &adapters.Request{Method: c.method, Path: c.path, Host: "us:9201"}
			expect.Same(t, adapters.KindPass, (Dialect{}).Classify(r).Kind, "by default")
			for _, d := range []struct {
				Dialect
				ours string
			}{{seen, "us:9201"}, {advertised, "search.example:9201"}} {
				got, want := d.Classify(r), adapters.Class{}
				if want.Kind = adapters.KindPass; c.asks {
					want = adapters.Class{Kind: adapters.KindRead, Form: formNodes, Address: d.ours, Always: true}
				}
				if !c.asks {
					got.Alters = false
				}
				expect.Same(t, want, got, "")
			}
		})
	}
	expect.Same(t, adapters.KindPass, seen.Classify(&adapters.Request{Method: "GET", Path: "/_nodes/http"}).Kind, "without an address to give")
}

// nodesReply is what two nodes say of themselves. Each @ stands in the place of an address to be replaced.
const nodesReply = ` {
  "_nodes" : { "total" : 2, "publish_address" : "1:1" },
  "nodes" : {
    "a\"b" : {
      "host" : "10.0.0.1", "transport_address" : "10.0.0.1:9300", "version" : 1e999,
      "transport" : { "bound_address" : [ "10.0.0.1:9300" ], "publish_address" : "10.0.0.1:9300", "profiles" : { } },
      "http" : { "bound_address" : [ "@" , 	"@" ], "publish_address":"@", "max_content_length_in_bytes" : 104857600 },
      "settings" : { "http" : { "publish_address" : "x" }, "publish_address" : "x" }
    },
    "publish_address" : { "http" : { "publish_address" : "@" , "bound_address":[], "type" : "netty\u0034" } },
    "odd" : [ { "http" : { "publish_address" : "@" } } ],
    "more" : { "http" : [ { "publish_address" : "@" } ], "publish_address" : "a node's own" },
    "null" : { "http" : { "publish_address" : null, "bound_address" : [ 1, [ "@" ], "@", { } ] } }
  },
  "http" : { "publish_address" : "the cluster's own" }
}
`

// swap returns what came out of rewriting nodesReply, and what should have.
func swap(t *testing.T, theirs, ours string, read func(io.Reader) io.Reader) (got, want string) {
	t.Helper()
	quoted := string(jsonedit.AppendString(nil, ours))
	want = strings.ReplaceAll(nodesReply, `"@"`, quoted)
	var out bytes.Buffer
	d := Dialect{RewriteSniffing: true, Advertise: ours}
	class := d.Classify(&adapters.Request{Method: "GET", Path: "/_nodes/http"})
	expect.OK(t, d.CleanReply(class, &out, read(strings.NewReader(strings.ReplaceAll(nodesReply, "@", theirs)))))
	return out.String(), want
}

func TestRewriteNodes(t *testing.T) {
	long := strings.Repeat("long", 20_000)
	for _, theirs := range []string{"10.0.0.1:9200", "node.example/10.0.0.1:9200", "[::1]:9200", "", `\"\\`, long} {
		for _, ours := range []string{"us:9201", "[fe80::1]:80", `"quoted"`} {
			for name, read := range map[string]func(io.Reader) io.Reader{
				"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader,
				"end": iotest.DataErrReader,
			} {
				if got, want := swap(t, theirs, ours, read); got != want {
					t.Errorf("%.40s to %s, %s: %s", theirs, ours, name, cmp.Diff(want, got))
				}
			}
		}
	}
}

// TestRewriteNodesLeavesTheRest: from where a reply is not what it should be, or takes too much to hold, it is copied.
func TestRewriteNodesLeavesTheRest(t *testing.T) {
	const good = `{"nodes":{"a":{"http":{"publish_address":"1:1"}},`
	const done = `{"nodes":{"a":{"http":{"publish_address":"us:1"}},`
	for name, rest := range map[string]string{
		"cut off":        `"b":{"http":{"publish_address":"2:`,
		"broken":         `"b":}{"http":{"publish_address":"2:2"}}}}`,
		"endless":        `"` + strings.Repeat("x", 2<<20) + `":{"http":{"publish_address":"2:2"}}}}`,
		"deep":           `"b":` + strings.Repeat("[", 100_000),
		"something else": `"b":{}}} {"c":{"http":{"publish_address":"3:3"}}}`,
	} {
		var out bytes.Buffer
		expect.OK(t, rewriteNodes(&out, strings.NewReader(good+rest), "us:1"))
		expect.Same(t, done+rest, out.String(), "%s", name)
	}
	for _, body := range []string{
		"", "{", "null", "nodes", "\xef\xbb\xbf{}", `[{"nodes":{}}]`, `{"error":"security_exception","status":403}`,
	} {
		var out bytes.Buffer
		expect.OK(t, rewriteNodes(&out, strings.NewReader(body), "us:1"))
		expect.Same(t, body, out.String(), "")
	}
}

// FuzzRewriteNodes holds the copy against one made of the decoded reply: what is well-formed stays so, and differs in the
// addresses alone. Rewritten again it stays as it is.
func FuzzRewriteNodes(f *testing.F) {
	f.Add([]byte(strings.ReplaceAll(nodesReply, "@", "1:1")))
	f.Add([]byte(`{"nodes":{"a":{"http":{"publish_address":["1:1",["2:2"]],"bound_address":"3:3"}},` +
		`"a":{"http":{"publish_address":"4:4"}}}}`))
	f.Add([]byte(`{"nodes":{"a":{"http":{"publish_address":`))
	f.Fuzz(func(t *testing.T, body []byte) {
		const ours = "us:9201"
		var out, again bytes.Buffer
		expect.OK(t, rewriteNodes(&out, bytes.NewReader(body), ours))
		expect.OK(t, rewriteNodes(&again, iotest.OneByteReader(bytes.NewReader(out.Bytes())), ours))
		expect.Same(t, out.String(), again.String(), "rewritten again")
		checkReaddressed(t, body, out.Bytes(), ours)
	})
}

// checkReaddressed holds what became of a reply that is JSON to what its decoded form does.
func checkReaddressed(t *testing.T, body, out []byte, ours string) {
	t.Helper()
	var want, got any
	if json.Unmarshal(body, &want) != nil {
		return
	}
	readdress(want, ours)
	expect.JSON(t, out, &got)
	expect.Must(t, want, got, "%q became %q", body, out)
}

// readdress puts our address into a decoded reply. Elements of arrays stand for these.
func readdress(reply any, ours string) {
	inMembers(reply, "nodes", func(nodes any) any {
		return inMembers(nodes, "", func(node any) any {
			return inMembers(node, "http", func(server any) any {
				for _, key := range []string{"publish_address", "bound_address"} {
					server = inMembers(server, key, func(address any) any { return readdressed(address, ours) })
				}
				return server
			})
		})
	})
}

// inMembers puts what of returns in the place of each member with the key, or of all for an empty key.
func inMembers(value any, key string, of func(any) any) any {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if key == "" || name == key {
				value[name] = of(member)
			}
		}
	case []any:
		for i := range value {
			value[i] = inMembers(value[i], key, of)
		}
	}
	return value
}

func readdressed(value any, ours string) any {
	switch value := value.(type) {
	case string:
		return ours
	case []any:
		for i := range value {
			value[i] = readdressed(value[i], ours)
		}
	}
	return value
}
