package elastic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// A table is what query languages answer: the names of its columns, and a list of rows with a cell for each. ES|QL and Elasticsearch's SQL
// can turn it on its side: a list of columns with a cell for each row. The reply of ES|QL does not say which, but its request does.
// Replies in text are in table_text.go. All of this follows the manuals: the engines that tests start lack these plugins.

// maxTable is how much of a table is read for its columns and its first row.
const maxTable = 1 << 20

// cleanTable copies a table less our columns, and less our fields of documents in its cells (METADATA _source). Anything else is copied
// unchanged.
func cleanTable(c adapters.Class, dst io.Writer, src io.Reader) error {
	if format := textFormat(c); format != "" {
		return cleanText(c, format, dst, src)
	}
	r, most := bufio.NewReaderSize(src, 16), maxTable
	begins, _ := r.Peek(4)
	p := packedOf(begins)
	if p != nil {
		most = maxPackedReply
	}
	head, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	whole, shadow := len(head) <= most, head
	if whole && p != nil {
		shadow, _ = packedAsJSON(p, head, 4*maxPackedReply)
	}
	if cuts, ok := tableCuts(c, shadow, whole); ok && err == nil {
		switch {
		case p == nil:
			return jsonedit.Clean(dst, io.MultiReader(bytes.NewReader(head), r), cuts)
		case whole:
			head = cutPacked(p, head, 4*maxPackedReply, cuts, nil)
		}
	}
	if _, failed := dst.Write(head); err == nil {
		err = failed
	}
	if err == nil {
		_, err = io.Copy(dst, r)
	}
	return err
}

// columns are the columns of a table, and which of them are ours.
type columns struct {
	list []column
	ours []int
}

// column is one column of a table.
type column struct{ Name, Type string }

// columnsIn reads a list of columns.
func columnsIn(value []byte) (c columns) {
	_ = json.Unmarshal(value, &c.list)
	for i, column := range c.list {
		if rule.Our(column.Name) {
			c.ours = append(c.ours, i)
		}
	}
	return c
}

// own reports whether a column is ours.
func (c columns) own(i int) bool { return slices.Contains(c.ours, i) }

// tableCuts returns what is cut out of the table that begins with head, which is JSON. It returns false if that is nothing, or if head does
// not show which cells are of our columns.
func tableCuts(c adapters.Class, head []byte, whole bool) (cuts jsonedit.Cuts, ok bool) {
	lists := map[string]columns{}
	shown := columns{ours: placesIn(c.Form)} // a page after the first has no list of columns
	cells, sideways := "", false
	r := jsonedit.NewReader(head)
	for r.Enter('{'); r.Next(); {
		switch key := string(r.Key()); key {
		case "columns", "schema", "all_columns":
			if lists[key] = columnsIn(r.Value()); key != "all_columns" {
				shown = lists[key]
			}
		case "values", "rows", "datarows":
			start := r.At()
			lengths := lengthsIn(&r, whole)
			if sideways, ok = shown.sideways(c.Form, key, lengths, whole, head[start:r.At()]); !ok {
				return cuts, false
			}
			cells = key
		}
	}
	switch {
	case whole && !r.Done():
		return cuts, false
	case cells == "" && len(lists) == 0:
		return inDocument, isSQL(c.Form) // OpenSearch can answer SQL with the reply to a search
	}
	cuts.DropElement = func(path []string, at []int) bool {
		if len(path) != 1 {
			return false
		}
		if of, listed := lists[path[0]]; listed {
			return len(at) == 1 && of.own(at[0])
		}
		return path[0] == cells && (sideways && len(at) == 1 || !sideways && len(at) == 2) && shown.own(at[len(at)-1])
	}
	cuts.Prefix = rule.FieldPrefix
	cuts.Drop = func(path []string) bool { return len(path) == 2 && path[0] == cells && rule.Our(path[1]) }
	if isSQL(c.Form) && len(shown.ours) > 0 {
		cuts.Edit = func(path []string, quoted []byte) []byte {
			if len(path) == 1 && path[0] == "cursor" && len(quoted) > 2 {
				return slices.Concat(quoted[:len(quoted)-1], []byte(placesOf(shown.ours)), []byte{'"'})
			}
			return quoted
		}
	}
	return cuts, true
}

// lengthsIn reads a list of lists, and returns how long each is that ends within what there is.
func lengthsIn(r *jsonedit.Reader, whole bool) (lengths []int) {
	for r.Enter('['); r.Next(); {
		n := 0
		if r.Enter('[') {
			for r.Next() {
				n++
			}
		}
		lengths = append(lengths, n)
	}
	if !whole && len(lengths) > 0 {
		lengths = lengths[:len(lengths)-1]
	}
	return lengths
}

// sideways reports whether the lists below key have a cell for each row rather than one for each column. It returns false for ok if that can't be
// known, or if a list has too many or too few.
func (c columns) sideways(form, key string, lengths []int, whole bool, values []byte) (sideways, ok bool) {
	width := len(c.list)
	if width == 0 || len(c.ours) == 0 { // it is a page after the first, or has none of ours
		return key == "values", true
	}
	upright := !slices.ContainsFunc(lengths, func(n int) bool { return n != width })
	sideways = len(lengths) == width || !whole && len(lengths) < width
	switch {
	case form == formRows, key != "values":
		return false, upright
	case form == formColumns, isSQL(form):
		return true, sideways
	case upright && sideways && whole: // it is square
		upright, sideways = c.fit(values)
	case !upright && len(lengths) > 0 && lengths[0] == width: // it is ragged
		return false, false
	}
	return sideways, upright != sideways
}

// fit reports whether the cells of a square table can be of the types of our columns, if it is upright, and if it is on its side.
func (c columns) fit(values []byte) (upright, sideways bool) {
	var cells [][]json.RawMessage
	if json.Unmarshal(values, &cells) != nil {
		return false, false
	}
	upright, sideways = true, true
	for _, of := range c.ours {
		for i := range cells {
			upright = upright && c.list[of].fits(cells[i][of])
			sideways = sideways && c.list[of].fits(cells[of][i])
		}
	}
	return upright, sideways
}

// fits reports whether a cell can be of the column. Of a type that no field of ours has in ES|QL any cell can be.
func (c column) fits(cell []byte) bool {
	first := append(bytes.TrimLeft(cell, "[ \t\r\n"), ' ')[0] // a cell can hold several values
	switch c.Type {
	case "keyword":
		return first == '"' || first == 'n'
	case "long":
		return first == 'n' || first == '-' || first >= '0' && first <= '9'
	case "unsupported": // as binary fields are
		return first == 'n'
	}
	return true
}

// SQL answers page by page: a page names the columns only if it is the first, and has a cursor for the next one. So that our cells can be
// found there, the client gets the cursor with the places of our columns behind it, and the engine gets it without.

// cursorMark divides a cursor from the places. It is in no cursor of an engine: these are Base64.
const cursorMark = "~"

// placesOf returns the end of a cursor.
func placesOf(ours []int) string {
	var list []string
	for _, i := range ours {
		list = append(list, strconv.Itoa(i))
	}
	return cursorMark + strings.Join(list, ",")
}

// placesIn returns the places in a text that ends like such a cursor.
func placesIn(text string) (ours []int) {
	_, list, _ := strings.Cut(text, cursorMark)
	for part := range strings.SplitSeq(list, ",") {
		if i, err := strconv.Atoi(part); err == nil {
			ours = append(ours, i)
		}
	}
	return ours
}

func isSQL(form string) bool { return strings.HasPrefix(form, formSQL) }
