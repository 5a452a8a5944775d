package elastic

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/expect"
)

// TestCleanYAML cleans replies as Elasticsearch wrote them.
func TestCleanYAML(t *testing.T) {
	long := strings.Repeat("x", 70<<10)
	for name, c := range map[string][2]string{
		"a document": {
			"---\n_id: \"1\"\n_source:\n  body: \"foo\\nneardup_sketch: \\\"x\\\"\\n\"\n  tags:\n  - \"a\"\n  neardup_sketch: \"AQ==\"\n",
			"---\n_id: \"1\"\n_source:\n  body: \"foo\\nneardup_sketch: \\\"x\\\"\\n\"\n  tags:\n  - \"a\"\n",
		},
		"hits": {
			"---\nhits:\n  hits:\n  - _id: \"1\"\n    _source:\n      neardup_sketch: null\n      a: 1\n    fields:\n      " +
				"neardup_sketch:\n      - \"AQ==\"\n      b:\n      - 2\n  - _id: \"2\"\n",
			"---\nhits:\n  hits:\n  - _id: \"1\"\n    _source:\n      a: 1\n    fields:\n      b:\n      - 2\n  - _id: \"2\"\n",
		},
		"a mapping": {
			"---\ni:\n  mappings:\n    properties:\n      a:\n        type: \"text\"\n      neardup_sketch:\n        type: " +
				"\"binary\"\n        doc_values: true\n      z:\n        type: \"date\"\n",
			"---\ni:\n  mappings:\n    properties:\n      a:\n        type: \"text\"\n      z:\n        type: \"date\"\n",
		},
		"a source alone": {"---\nneardup_sketch: \"AQ==\"\na: 1\n", "---\na: 1\n"},
		"long lines": {"---\na: \"" + long + "\"\nneardup_sketch: \"" + long + "\"\nb: \"" + long + "\"\n",
			"---\na: \"" + long + "\"\nb: \"" + long + "\"\n"},
		"an error": {"---\nerror:\n  reason: \"(byte[])\\\"{\\\"title\\\":\\\"a\\\",\\\"neardup_sketch\\\":\\\"AQ==\\\"}\\\"; line: 1\"\n",
			"---\nerror:\n  reason: \"(byte[])\\\"{\\\"title\\\":\\\"a\\\"}\\\"; line: 1\"\n"},
		"an error over lines": {"---\nerror:\n  reason: \"(byte[])\\\"{\\\"title\\\":\\\"a b\\\\\\\n    \\ c\\\",\\\"\\\n    neardup_sketch\\\":\\\"AQ==\\\"}\\\";\\\n    \\ line: 1\"\n",
			"---\nerror:\n  reason: \"(byte[])\\\"{\\\"title\\\":\\\"a b\\\\ c\\\"}\\\"; line: 1\"\n"},
		"a text over lines": {"---\na: \"b\\n\\\n  neardup_sketch: x\\\n  \\ y\"\nneardup_sketch: \"x\\\nneardup: z\"\nc: 1\n",
			"---\na: \"b\\n\\\n  neardup_sketch: x\\\n  \\ y\"\nc: 1\n"},
		"nothing of ours": {"---\na:\n- b: 1\n  - c\nno end", "---\na:\n- b: 1\n  - c\nno end"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(c[0]), iotest.OneByteReader(strings.NewReader(c[0]))} {
				var out bytes.Buffer
				expect.OK(t, (Dialect{}).CleanReply(adapters.Class{Kind: adapters.KindWrite, Form: formDoc}, &out, src))
				expect.Same(t, c[1], out.String(), "")
			}
		})
	}
}
