package adapters

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Clean copies JSON values from src to dst less the members that drop names, by the key of the object that holds them (the key
// nearest above, through arrays; empty at the top) and their own key. All other bytes stay, and only one member's key is in
// memory at a time. Several values may follow one another, as in NDJSON. From the first byte that is not well-formed on,
// the rest is copied as it stands. It returns only errors of src and dst.
func Clean(dst io.Writer, src io.Reader, drop func(parent, key string) bool) error {
	c := cleaner{r: bufio.NewReaderSize(src, 32<<10), w: bufio.NewWriterSize(dst, 32<<10), drop: drop}
	if mark, err := c.r.Peek(len(byteOrderMark)); err == nil && bytes.Equal(mark, byteOrderMark) {
		c.held = append(c.held, mark...)
		_, _ = c.r.Discard(len(mark)) // it was read
	}
	err := c.values()
	if errors.Is(err, ErrMalformed) {
		_, err = c.w.Write(c.held)
		if err == nil {
			_, err = io.Copy(c.w, c.r)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, c.w.Flush())
}

// Cleaned returns data as [Clean] copies it.
func Cleaned(data []byte, drop func(parent, key string) bool) []byte {
	var out bytes.Buffer
	out.Grow(len(data))
	_ = Clean(&out, bytes.NewReader(data), drop) // neither end fails
	return out.Bytes()
}

type cleaner struct {
	r    *bufio.Reader
	w    *bufio.Writer
	drop func(parent, key string) bool
	held []byte // read, and not yet decided whether to be written
	mute int    // > 0: inside a member that is dropped
}

// emit writes what is held.
func (c *cleaner) emit() error {
	held := c.held
	c.held = c.held[:0]
	if c.mute > 0 {
		return nil
	}
	_, err := c.w.Write(held)
	return err
}

// maxHeld bounds what is held: white space, a comment or a key that is longer is copied, with all behind it, as it stands.
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
		if err := c.value("", 0); err != nil {
			return errors.Join(c.emit(), err)
		}
	}
}

// value copies one value that stands below the key.
func (c *cleaner) value(key string, depth int) error {
	b, err := c.peek()
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return ErrMalformed
	}
	switch b {
	case '{':
		return c.object(key, depth)
	case '[':
		return c.array(key, depth)
	case '"':
		if err := c.str(c.emit); err != nil {
			return err
		}
		return c.emit()
	case '}', ']', ',', ':':
		return ErrMalformed
	}
	return c.scalar()
}

// scalar copies a number, true, false or null.
func (c *cleaner) scalar() error {
	for {
		b, err := c.r.ReadByte()
		if err != nil {
			return errors.Join(c.emit(), err)
		}
		if bytes.IndexByte([]byte(" \t\r\n,:]}[{\""), b) >= 0 {
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
		if full != nil && len(c.held) > 16<<10 {
			if err := full(); err != nil {
				return err
			}
		}
	}
}

// more goes up to the next element of a list, over the comma in front of it, or over the list's end, and then returns false.
func (c *cleaner) more(first bool, end byte) (bool, error) {
	b, err := c.peek()
	switch {
	case err != nil:
		return false, err
	case b == end:
		_, _ = c.hold()
		return false, c.emit()
	case first:
		return true, nil
	case b != ',':
		return false, ErrMalformed
	}
	_, _ = c.hold()
	return true, nil
}

func (c *cleaner) array(key string, depth int) error {
	if _, err := c.hold(); err != nil {
		return err
	}
	for first := true; ; first = false {
		if more, err := c.more(first, ']'); err != nil || !more {
			return err
		}
		if err := c.value(key, depth+1); err != nil {
			return err
		}
	}
}

func (c *cleaner) object(parent string, depth int) error {
	if _, err := c.hold(); err != nil {
		return err
	}
	if err := c.emit(); err != nil {
		return err
	}
	for first, kept := true, false; ; first = false {
		if more, err := c.more(first, '}'); err != nil || !more {
			return err
		}
		comma := len(c.held)
		dropped, err := c.member(parent, depth, kept, comma)
		if err != nil {
			return err
		}
		kept = kept || !dropped
	}
}

// member copies one member, or drops it together with the separator held in front of it. The separator in front of the first
// member kept goes too if members before it were dropped; comma is how much of what is held the separator takes.
func (c *cleaner) member(parent string, depth int, kept bool, comma int) (dropped bool, err error) {
	b, err := c.peek()
	if err != nil {
		return false, err
	}
	if b != '"' {
		return false, ErrMalformed
	}
	start := len(c.held)
	if err := c.str(nil); err != nil {
		return false, err
	}
	key, _ := Text(c.held[start:])
	if b, err = c.peek(); err != nil {
		return false, err
	}
	if b != ':' {
		return false, ErrMalformed
	}
	_, _ = c.hold()
	if dropped = c.mute == 0 && c.drop(parent, key); dropped {
		c.held = c.held[:0]
		c.mute++
		defer func() { c.mute-- }()
	} else if !kept && comma > 0 && c.held[comma-1] == ',' {
		c.held = append(c.held[:0], c.held[comma:]...)
	}
	return dropped, c.value(key, depth+1)
}
