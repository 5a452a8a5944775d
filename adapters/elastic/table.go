package elastic

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A table is what ES|QL answers: "columns", a list of names and types, and "values", a list of rows with a cell for each column. A
// request can ask for it on its side: a list of columns with a cell for each row. The reply does not say which, so a square table is
// recognized by the types of our columns. This is built by the manual: no package of Elasticsearch at hand has the plugin.

// maxTable bounds a table that is cleaned. A longer one is copied unchanged.
const maxTable = 1 << 20

// cleanTable copies a table less our columns, and our fields of documents in its cells (METADATA _source). Anything else is
// copied unchanged.
func cleanTable(dst io.Writer, src io.Reader) error {
	head, err := io.ReadAll(io.LimitReader(src, maxTable+1))
	if err != nil {
		return err
	}
	if len(head) <= maxTable {
		head = tableOf(head)
	}
	if _, err := dst.Write(head); err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return err
}

// column is one column of a table.
type column struct{ Name, Type string }

// fits reports whether a cell can be of the column.
func (c column) fits(cell []byte) bool {
	first := append(bytes.TrimLeft(cell, "[ \t\r\n"), ' ')[0] // a cell can hold several values
	switch c.Type {
	case "keyword":
		return first == '"' || first == 'n'
	case "long":
		return first == 'n' || first == '-' || first >= '0' && first <= '9'
	}
	return first == 'n' // of binary fields ES|QL shows null
}

// tableOf returns a reply less our columns, or as it is.
func tableOf(reply []byte) []byte {
	var is struct {
		Columns []column
		Values  [][]json.RawMessage
	}
	if json.Unmarshal(reply, &is) != nil || is.Columns == nil || is.Values == nil {
		return reply
	}
	columns, values := is.Columns, is.Values
	var ours []int
	for i, c := range columns {
		if rule.Our(c.Name) {
			ours = append(ours, i)
		}
	}
	short := func(row []json.RawMessage) bool { return len(row) != len(columns) }
	upright, sideways := !slices.ContainsFunc(values, short), len(values) == len(columns)
	if upright && sideways { // it is square
		upright = every(columns, ours, func(i, of int) []byte { return values[i][of] })
		sideways = every(columns, ours, func(i, of int) []byte { return values[of][i] })
	}
	if len(ours) > 0 && upright == sideways {
		return reply
	}
	ourRow := func(i int, _ []byte) bool { return slices.Contains(ours, i) }
	edit := func(key string, edit func(value []byte) []byte) {
		if root, err := jsonedit.Members(reply); err == nil && jsonedit.Get(root, key) != nil {
			if out, err := jsonedit.Set(reply, key, edit(jsonedit.Get(root, key))); err == nil {
				reply = out
			}
		}
	}
	for _, key := range []string{"columns", "all_columns"} {
		edit(key, func(value []byte) []byte {
			return without(value, func(_ int, element []byte) bool {
				var c column
				return json.Unmarshal(element, &c) == nil && rule.Our(c.Name)
			}, slices.Clip)
		})
	}
	edit("values", func(value []byte) []byte {
		if sideways {
			return without(value, ourRow, func(list []byte) []byte { return without(list, none, bare) })
		}
		return without(value, none, func(list []byte) []byte { return without(list, ourRow, bare) })
	})
	return reply
}

// every reports whether each cell that would be of a column of ours can be of it.
func every(columns []column, ours []int, cell func(i, of int) []byte) bool {
	return !slices.ContainsFunc(ours, func(of int) bool {
		for i := range columns {
			if !columns[of].fits(cell(i, of)) {
				return true
			}
		}
		return false
	})
}

func none(int, []byte) bool { return false }

// bare returns a cell without our fields, where it is a document.
func bare(cell []byte) []byte {
	if cell[0] == '{' && rule.NamesOurs(cell) {
		if cut, err := jsonedit.Cut(cell, rule.Our); err == nil {
			return cut
		}
	}
	return cell
}

// without returns a JSON array less the elements that drop says, the others edited.
func without(array []byte, drop func(i int, element []byte) bool, edit func(element []byte) []byte) []byte {
	elements, err := jsonedit.Elements(array)
	if err != nil {
		return array
	}
	kept := make([][]byte, 0, len(elements))
	for i, element := range elements {
		if !drop(i, element) {
			kept = append(kept, edit(element))
		}
	}
	return joinLike(array, kept)
}
