package adapters

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// Cuts say what [Clean] leaves out. A path is the keys that lead to a value from the top, through arrays, whose elements have
// none; it is valid during the call alone.
type Cuts struct {
	// Drop reports whether the member that the path leads to goes.
	Drop func(path []string) bool
	// Ours says that Drop reports true for names of our fields alone.
	Ours bool
	// Prune, if set, reports whether the object or array that the path leads to goes too, with its key, if nothing is left in it
	// of what was there. element says that it is an element of the array that the path leads to. Containers that were empty
	// before stay, and so does the outermost value.
	Prune func(path []string, element bool) bool
	// Edit, if set, returns what stands in the place of a string, which is given as it stands with its quotes. Keys and strings
	// beyond 16 KiB are not offered.
	Edit func(path []string, quoted []byte) []byte
	// Add, if set, returns members for the end of the object that the path leads to, in JSON without braces, once all of its own were
	// offered to Drop.
	Add func(path []string) []byte
}

// Clean copies JSON values from src to dst less what is cut. All other bytes stay: white space, comments and a byte order mark
// too. Only one member's key is in memory at a time, and what may be pruned until its first member that stays. Several values may
// follow one another, as in NDJSON. From the first byte that is not well-formed on, the rest is copied as it stands. It returns
// only errors of src and dst.
func Clean(dst io.Writer, src io.Reader, cuts Cuts) error {
	c, err := cleanValues(dst, src, cuts)
	if errors.Is(err, ErrMalformed) {
		_, err = c.w.Write(c.held)
		if err == nil {
			_, err = io.Copy(c.w, c.r)
		}
	}
	return errors.Join(err, c.w.Flush())
}

// CleanStrictly is [Clean] which ends with [ErrMalformed] where something is not well-formed, or can't be told to be.
func CleanStrictly(dst io.Writer, src io.Reader, cuts Cuts) error {
	c, err := cleanValues(dst, src, cuts)
	return errors.Join(err, c.w.Flush())
}

// cleanValues copies up to where something is not well-formed.
func cleanValues(dst io.Writer, src io.Reader, cuts Cuts) (*cleaner, error) {
	c := &cleaner{r: bufio.NewReaderSize(src, 32<<10), w: bufio.NewWriterSize(dst, 32<<10), Cuts: cuts}
	if mark, err := c.r.Peek(len(byteOrderMark)); err == nil && bytes.Equal(mark, byteOrderMark) {
		c.held = append(c.held, mark...)
		_, _ = c.r.Discard(len(mark)) // it was read
	}
	err := c.values()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return c, err
}

type cleaner struct {
	Cuts
	r     *bufio.Reader
	w     *bufio.Writer
	path  []string
	names map[string]string // keys seen, so that most need no memory of their own
	held  []byte            // read, and not yet decided whether to be written
	mute  bool              // inside a member that is dropped
	floor int               // how much of held is in front of that member
}

// emit writes what is held. Inside a member that is dropped it forgets it.
func (c *cleaner) emit() error {
	if c.mute {
		c.held = c.held[:c.floor]
		return nil
	}
	held := c.held
	c.held = c.held[:0]
	_, err := c.w.Write(held)
	return err
}

// maxHeld bounds what is held: white space, a comment, a key or what may be pruned that is longer is copied, with all behind it,
// as it stands.
const maxHeld = 1 << 20

// hold reads one byte and holds it.
func (c *cleaner) hold() (byte, error) {
	if len(c.held) >= maxHeld {
		return 0, ErrMalformed
	}
	b, err := c.r.ReadByte()
	if err == nil {
		c.held = append(c.held, b)
	}
	return b, err
}

// peek returns the next byte that is neither white space nor within a comment; these are held.
func (c *cleaner) peek() (byte, error) {
	for {
		next, err := c.r.Peek(1)
		if err != nil {
			return 0, err
		}
		switch next[0] {
		case ' ', '\t', '\n', '\r':
			_, err = c.hold()
		case '/':
			err = c.comment()
		case byteOrderMark[0]: // in front of a document that was stored with it
			if mark, _ := c.r.Peek(len(byteOrderMark)); !bytes.Equal(mark, byteOrderMark) {
				return next[0], nil
			}
			for range byteOrderMark {
				if _, err = c.hold(); err != nil {
					return 0, err
				}
			}
		default:
			return next[0], nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// comment holds a comment.
func (c *cleaner) comment() error {
	open, _ := c.r.Peek(2)
	end := map[string]string{"/*": "*/", "//": "\n"}[string(open)]
	if end == "" {
		return ErrMalformed
	}
	start := len(c.held) + len(open)
	for len(c.held) < start || !bytes.HasSuffix(c.held[start:], []byte(end)) {
		if _, err := c.hold(); err != nil {
			return err
		}
	}
	return nil
}

func (c *cleaner) values() error {
	for {
		if _, err := c.peek(); err != nil {
			return errors.Join(c.emit(), err)
		}
		if _, err := c.value(0, false); err != nil {
			return errors.Join(c.emit(), err)
		}
	}
}

// value copies one value. It returns true if nothing is left of it and it is to be pruned; it is then held.
func (c *cleaner) value(depth int, element bool) (emptied bool, err error) {
	b, err := c.peek()
	if err != nil {
		return false, err
	}
	if depth > maxDepth {
		return false, ErrMalformed
	}
	switch b {
	case '{', '[':
		return c.container(b, depth, element)
	case '"':
		return false, c.text()
	case '}', ']', ',', ':':
		return false, ErrMalformed
	}
	return false, c.scalar()
}

// text copies a string.
func (c *cleaner) text() error {
	start, whole := len(c.held), true
	err := c.str(func() error {
		whole = false
		return c.emit()
	})
	if err != nil {
		return err
	}
	if whole && c.Edit != nil && !c.mute {
		if edited := c.Edit(c.path, c.held[start:]); !bytes.Equal(edited, c.held[start:]) {
			c.held = append(c.held[:start:start], edited...)
		}
	}
	return c.emit()
}

// scalar copies a number, true, false or null.
func (c *cleaner) scalar() error {
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return errors.Join(c.emit(), err)
		}
		if len(c.held)-c.floor > 16<<10 {
			if err := c.emit(); err != nil {
				return err
			}
		}
		if bytes.IndexByte([]byte(" \t\r\n,:]}[{\"/"), b) >= 0 {
			return errors.Join(c.r.UnreadByte(), c.emit())
		}
		c.held = append(c.held, b)
	}
}

// str holds a string; whenever it is long it calls full, which may write what is held.
func (c *cleaner) str(full func() error) error {
	if _, err := c.hold(); err != nil {
		return err
	}
	for {
		if err := c.run(); err != nil {
			return err
		}
		b, err := c.hold()
		switch {
		case err != nil:
			return err
		case b == '"':
			return nil
		case b == '\\':
			if _, err := c.hold(); err != nil {
				return err
			}
		}
		if full != nil && len(c.held)-c.floor > 16<<10 {
			if err := full(); err != nil {
				return err
			}
		}
	}
}

// run holds what is at hand of a string up to its next quote or backslash.
func (c *cleaner) run() error {
	if _, err := c.r.Peek(1); err != nil {
		return err
	}
	ahead, _ := c.r.Peek(min(c.r.Buffered(), 16<<10))
	n := plain(ahead)
	for n < len(ahead) && ahead[n] < 0x20 { // Clean copies more than is well-formed
		n += 1 + plain(ahead[n+1:])
	}
	if len(c.held)+n >= maxHeld {
		return ErrMalformed
	}
	c.held = append(c.held, ahead[:n]...)
	_, err := c.r.Discard(n)
	return err
}

// heldOpen bounds what is held of containers in which nothing has stayed yet, for them to be pruned.
const heldOpen = maxHeld / 2

// container copies an object or array. Where it may be pruned, it is held until something in it stays: Prune is asked at its end, and only
// for what was emptied, as it may have to look at the whole path.
func (c *cleaner) container(open byte, depth int, element bool) (emptied bool, err error) {
	if _, err := c.hold(); err != nil {
		return false, err
	}
	held := c.Prune != nil && !c.mute && len(c.path) > 0 && len(c.held) < heldOpen
	if !held {
		if err := c.emit(); err != nil {
			return false, err
		}
	}
	for kept, dropped, gone := false, false, false; ; {
		from := len(c.held)
		more, err := c.more(!kept && !dropped, open+2) // both brackets close two behind where they open
		switch {
		case err != nil:
			return false, err
		case more:
		case held && dropped && !kept && c.Prune(c.path, element):
			return true, nil
		default:
			if dropped && !kept {
				c.tidy(from)
			}
			if open == '{' {
				c.add(from, kept)
			}
			return false, c.emit()
		}
		if kept && !gone { // what stands in front of the comma belongs to the one before it, which stays
			from = len(c.held) - 1
		}
		gone, err = c.member(open, depth, from, kept)
		if err != nil {
			return false, err
		}
		if gone {
			c.held = c.held[:from]
		}
		kept, dropped = kept || !gone, dropped || gone
	}
}

// add inserts the members that Add returns for the current object before its end, which begins at held[from]. kept says that other members
// precede them.
func (c *cleaner) add(from int, kept bool) {
	if c.Add == nil || c.mute {
		return
	}
	added := c.Add(c.path)
	if len(added) > 0 && kept {
		added = append([]byte{','}, added...)
	}
	c.held = slices.Insert(c.held, from, added...)
}

// more goes up to the next element of a list, over the comma in front of it, or over the list's end, and then returns false.
func (c *cleaner) more(first bool, end byte) (bool, error) {
	b, err := c.peek()
	switch {
	case err != nil:
		return false, err
	case b == end:
		_, err = c.hold()
		return false, err
	case first:
		return true, nil
	case b != ',':
		return false, ErrMalformed
	}
	_, err = c.hold()
	return true, err
}

// tidy writes the end of a container, held from there on, that was emptied: one printed over several lines goes on one, as
// engines print it.
func (c *cleaner) tidy(from int) {
	if bytes.IndexByte(c.held[from:], '\n') >= 0 {
		c.held = append(c.held[:from], ' ', c.held[len(c.held)-1])
	}
}

// member copies a member or an element, or returns true if it goes, together with what is held from there on: the separator
// in front of it. The separator in front of the first one kept goes too if some before it were dropped.
func (c *cleaner) member(open byte, depth, from int, kept bool) (gone bool, err error) {
	comma := len(c.held)
	if open == '{' {
		if err := c.key(); err != nil {
			return false, err
		}
		defer func() { c.path = c.path[:len(c.path)-1] }()
		if !c.mute && c.Drop(c.path) {
			c.held, c.floor, c.mute = c.held[:from], from, true
			_, err := c.value(depth+1, false)
			c.held, c.floor, c.mute = c.held[:from], 0, false
			return true, err
		}
	}
	if !kept && comma > from && c.held[comma-1] == ',' {
		c.held = append(c.held[:from], c.held[comma:]...)
	}
	return c.value(depth+1, open == '[')
}

// key holds a member's key and the colon behind it, and puts it at the end of the path.
func (c *cleaner) key() error {
	b, err := c.peek()
	if err != nil {
		return err
	}
	if b != '"' {
		return ErrMalformed
	}
	start := len(c.held)
	if err := c.str(nil); err != nil {
		return err
	}
	name := c.name(c.held[start:])
	if b, err = c.peek(); err != nil {
		return err
	}
	if b != ':' {
		return ErrMalformed
	}
	if _, err = c.hold(); err == nil {
		c.path = append(c.path, name)
	}
	return err
}

// name returns a key decoded.
func (c *cleaner) name(quoted []byte) string {
	if name, ok := c.names[string(quoted)]; ok {
		return name
	}
	name, _ := Text(quoted)
	if c.names == nil {
		c.names = map[string]string{}
	}
	if len(c.names) < 1000 && len(quoted) < 100 {
		c.names[string(quoted)] = name
	}
	return name
}

// NamesOurs reports whether one of our fields is named anywhere in a text.
func NamesOurs[T string | []byte](text T) bool {
	for rest := []byte(text); ; {
		at := bytes.Index(rest, []byte(FieldPrefix))
		if at < 0 {
			return false
		}
		rest = rest[at+len(FieldPrefix):]
		for _, field := range [...]string{SketchField, BandsField, ClusterField} {
			if bytes.HasPrefix(rest, []byte(field[len(FieldPrefix):])) {
				return true
			}
		}
	}
}
