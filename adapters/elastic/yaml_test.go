package elastic

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/neardup/sidecar/adapters"
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
		"nothing of ours": {"---\na:\n- b: 1\n  - c\nno end", "---\na:\n- b: 1\n  - c\nno end"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, src := range []io.Reader{strings.NewReader(c[0]), iotest.OneByteReader(strings.NewReader(c[0]))} {
				var out bytes.Buffer
				if err := (Dialect{}).CleanReply(adapters.Class{Kind: adapters.KindRead}, &out, src); err != nil || out.String() != c[1] {
					t.Errorf("%.400s, want %.400s (%v)", out.String(), c[1], err)
				}
			}
		})
	}
}
