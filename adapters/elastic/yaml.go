package elastic

import (
	"bufio"
	"bytes"
	"io"

	"github.com/neardup/sidecar/adapters"
)

// yamlHead is how the engines begin a reply in YAML; JSON never begins so.
var yamlHead = []byte("---\n")

// cleanYAML copies a reply in YAML less our fields. The engines write each member on a line of its own and every text in
// quotes on one line, so it is the line that begins with our name, and what stands below it: deeper, or as a list right under
// it.
func cleanYAML(dst io.Writer, src *bufio.Reader) error {
	w := bufio.NewWriterSize(dst, 32<<10)
	dropped := -1 // how deep the member stands that is being left out
	for whole := true; ; {
		line, err := src.ReadSlice('\n')
		if whole {
			text := bytes.TrimLeft(line, " ")
			switch depth := len(line) - len(text); {
			case ourLine(text):
				dropped = depth
			case dropped >= 0 && (depth > dropped || depth == dropped && bytes.HasPrefix(text, []byte("- "))):
			default:
				dropped = -1
			}
		}
		if dropped < 0 {
			if _, err := w.Write(line); err != nil {
				return err
			}
		}
		switch whole = err == nil; err {
		case nil, bufio.ErrBufferFull:
		case io.EOF:
			return w.Flush()
		default:
			return err
		}
	}
}

// ourLine reports whether a line begins with the name of one of our fields.
func ourLine(text []byte) bool {
	name, _, found := bytes.Cut(text, []byte(":"))
	return found && adapters.Our(string(name))
}
