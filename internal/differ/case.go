package differ

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Case is one request, or several on one connection.
type Case struct {
	Name      string
	Where     string   // file and line, for who reads a report
	Only      []string // kinds of server that it is for: any of these words; empty for all
	Not       []string // sides on which it is left out
	Pipelined bool     // all requests are written before the first reply is read
	Requests  []Request
}

// Request is a request and what may differ in its replies.
type Request struct {
	Head  string // request line and headers, one a line; protocol, Host and the body's length are added where they are lacking
	Body  []byte
	Raw   []byte // the bytes to send, in place of Head and Body
	Gzip  bool   // Body is sent compressed
	Chunk int    // > 0: Body is sent in chunks of so many bytes
	Wait  bool   // Body is sent once the server has said something
	// Without are the names of the Runner's headers that this request goes without.
	Without []string
	Keep    []Keep
	Masks
}

// Masks name the values of a reply that may differ from one answer to the next.
type Masks struct {
	Members []string // patterns of JSON members, in whatever object they stand; <<VAR>> for a value that was kept, wherever it stands
	Headers []string // in lower case
}

// Keep is a value of a reply that later requests need: Var stands for it between << and >>.
type Keep struct{ Var, Member string }

// For reports whether the case is for a server that is of these kinds on a side.
func (c *Case) For(kinds []string, side string) bool {
	of := func(kind string) bool { return slices.Contains(kinds, kind) }
	return (len(c.Only) == 0 || slices.ContainsFunc(c.Only, of)) && !slices.Contains(c.Not, side)
}

// SetsUp reports whether the case makes what others need, as its name then says.
func (c *Case) SetsUp() bool { return strings.HasPrefix(c.Name, "setup") }

// Parse reads a case file. name stands in errors and in Case.Where.
func Parse(name, text string) ([]Case, error) {
	p := parser{file: name}
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		p.number = i + 1
		if err := p.line(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.number, err)
		}
	}
	if err := p.endRequest(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, p.number, err)
	}
	return p.cases, nil
}

type parser struct {
	file   string
	number int
	cases  []Case
	part   int // of the request: see below
	req    Request
	lines  []string // of the body
	crlf   bool
	bare   bool
	quoted bool // the body was given by a directive
}

// Parts of a request as they follow one another.
const (
	nothing = iota // before the first case
	directives
	head
	body
)

func (p *parser) line(line string) error {
	if name, ok := strings.CutPrefix(line, "=== "); ok {
		if err := p.endRequest(); err != nil {
			return err
		}
		p.cases = append(p.cases, Case{Name: strings.TrimSpace(name), Where: fmt.Sprintf("%s:%d", p.file, p.number)})
		p.part = directives
		return nil
	}
	switch {
	case p.part == nothing:
	case line == "---":
		err := p.endRequest()
		p.part = directives
		return err
	case p.part == directives && strings.HasPrefix(line, "@"):
		return p.directive(strings.TrimSpace(line[1:]))
	case p.part == directives && line == "":
	case p.part == body:
		p.lines = append(p.lines, line)
	case line == "":
		p.part = body
	default:
		p.part = head
		p.req.Head += line + "\n"
	}
	return nil
}

func (p *parser) directive(text string) error {
	c := &p.cases[len(p.cases)-1]
	word, rest, _ := strings.Cut(text, " ")
	args := strings.Fields(rest)
	switch word {
	case "only":
		c.Only = append(c.Only, args...)
	case "not":
		c.Not = append(c.Not, args...)
	case "pipelined":
		c.Pipelined = true
	case "mask":
		p.req.Members = append(p.req.Members, args...)
	case "mask-header":
		p.req.Headers = append(p.req.Headers, args...)
	case "keep":
		if len(args) != 2 {
			return fmt.Errorf("@ keep %s: give a variable and a member", rest)
		}
		p.req.Keep = append(p.req.Keep, Keep{args[0], args[1]})
	case "without":
		p.req.Without = append(p.req.Without, args...)
	case "gzip":
		p.req.Gzip = true
	case "chunked":
		n, err := strconv.Atoi(rest)
		if err != nil || n <= 0 {
			return fmt.Errorf("@ chunked %s: give how many bytes a chunk has", rest)
		}
		p.req.Chunk = n
	case "crlf":
		p.crlf = true
	case "bare":
		p.bare = true
	case "wait":
		p.req.Wait = true
	case "body":
		text, err := strconv.Unquote(rest)
		if err != nil {
			return fmt.Errorf("@ body %s: give a Go string", rest)
		}
		p.req.Body, p.quoted = []byte(text), true
	default:
		return fmt.Errorf("directive %q is unknown", word)
	}
	return nil
}

// endRequest adds the request that was read to its case.
func (p *parser) endRequest() error {
	if p.part == nothing {
		return nil
	}
	if p.req.Head == "" {
		return fmt.Errorf("case %q has a request without a request line", p.cases[len(p.cases)-1].Name)
	}
	for len(p.lines) > 0 && p.lines[len(p.lines)-1] == "" {
		p.lines = p.lines[:len(p.lines)-1]
	}
	if len(p.lines) > 0 {
		if p.quoted {
			return fmt.Errorf("case %q has two bodies", p.cases[len(p.cases)-1].Name)
		}
		end := "\n"
		if p.crlf {
			end = "\r\n"
		}
		text := strings.Join(p.lines, end)
		if !p.bare {
			text += end
		}
		p.req.Body = []byte(text)
	}
	c := &p.cases[len(p.cases)-1]
	c.Requests = append(c.Requests, p.req)
	*p = parser{file: p.file, number: p.number, cases: p.cases, part: directives}
	return nil
}
