package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// exchange is one request of a section and its reply.
type exchange struct {
	api    string
	method string
	url    string // path and query
	status int
	header http.Header
	body   []byte // decompressed
	goesOn bool   // it goes on from a page before it
}

// runner runs sections against one address, or, where reads is set, what only reads against that one.
type runner struct {
	base   string
	reads  string
	client *http.Client
	// header goes with every request beside a section's own.
	header http.Header
}

// reading matches the endpoints that read documents.
var reading = regexp.MustCompile(`^(explain|field_caps|get|get_source|mget|msearch|scroll|search|[a-z]*search_template)$`)

// run is one section under way.
type run struct {
	*runner
	suite   *suite
	section *section
	ctx     context.Context
	stash   stash
	body    any // of the last reply
	turn    int
	way     int
	trace   []exchange
}

// requestLimit bounds one request. Some tests wait for the engine to do something.
const requestLimit = 60 * time.Second

// newClient returns a client that adds nothing of its own to what is asked, and undoes no compression.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       requestLimit,
		Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// run runs a section and returns what went over the wire, and why it could not go on.
func (r *runner) run(ctx context.Context, su *suite, se *section) ([]exchange, error) {
	u := &run{runner: r, suite: su, section: se, ctx: ctx, stash: stash{}, turn: se.hash(), way: se.hash() % ways}
	err := u.steps("setup", se.setup)
	if err == nil {
		u.stash, u.body = stash{}, nil
		err = u.steps("test", se.steps)
	}
	_ = u.steps("teardown", se.teardown) // what it leaves behind is wiped
	return u.trace, err
}

func (u *run) steps(part string, steps []step) error {
	for i, s := range steps {
		if err := u.step(s); err != nil {
			return fmt.Errorf("%s step %d: %w", part, i+1, err)
		}
	}
	return nil
}

func (u *run) step(s step) error {
	switch s.verb {
	case "do":
		return u.do(s.arg)
	case "set":
		o, _ := s.arg.(object)
		for _, m := range o {
			v := lookup(u.body, m.key, u.stash)
			if v == nil {
				return fmt.Errorf("set %s: it is not there", m.key)
			}
			u.stash[textOf(m.value)] = v
		}
		return nil
	}
	return nil
}

// do sends a request. What a section expects of the reply does not count: the engine's own reply does.
func (u *run) do(arg any) error {
	o, _ := arg.(object)
	var name string
	var headers, args object
	for _, m := range o {
		switch m.key {
		case "headers":
			headers, _ = u.stash.expand(m.value).(object)
		case "catch", "warnings", "warnings_regex", "allowed_warnings", "allowed_warnings_regex", "node_selector":
		default:
			name = m.key
			args, _ = u.stash.expand(m.value).(object)
		}
	}
	a := u.suite.spec[name]
	if a == nil {
		return fmt.Errorf("no endpoint %q", name)
	}
	u.turn++
	c, err := a.call(args, args.has("body"), u.turn)
	if u.body = nil; err != nil {
		return nil // a client would not send it
	}
	x, err := u.send(a, c, headers, args)
	if err != nil {
		return err
	}
	if x.method == http.MethodHead {
		u.body = x.status < 300
		return nil
	}
	u.body, err = decodeReply(x.header.Get("Content-Type"), x.body)
	return err
}

// send sends a request and reads the reply.
func (u *run) send(a *api, c call, headers, args object) (*exchange, error) {
	body, err := bodyOf(a, args)
	if err != nil {
		return nil, err
	}
	base := u.base
	if u.reads != "" && reading.MatchString(a.name) {
		base = u.reads
	}
	target, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	target.Path, err = url.PathUnescape(c.path)
	if err != nil {
		return nil, err
	}
	if u.way == pretty && !c.query.Has("pretty") {
		c.query.Set("pretty", "true")
	}
	target.RawPath, target.RawQuery = c.path, c.query.Encode()
	req, err := http.NewRequestWithContext(u.ctx, c.method, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body == nil {
		req.Body, req.ContentLength = nil, 0
	}
	u.setHeader(req, a, headers, body != nil)
	resp, err := u.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.method, req.URL.RequestURI(), err)
	}
	defer resp.Body.Close()
	x := exchange{api: a.name, method: c.method, url: req.URL.RequestURI(), status: resp.StatusCode, header: resp.Header}
	if x.body, err = readBody(resp); err != nil {
		return nil, fmt.Errorf("%s %s: %w", c.method, x.url, err)
	}
	x.goesOn = bytes.Contains(body, []byte(`"search_after"`))
	u.trace = append(u.trace, x)
	return &x, nil
}

// readBody reads a reply's body, which is compressed where the section asks for it.
func readBody(resp *http.Response) ([]byte, error) {
	body, err := io.ReadAll(resp.Body)
	if err != nil || len(body) == 0 || resp.Header.Get("Content-Encoding") != "gzip" {
		return body, err
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// Each section is asked in one of these ways, always the same.
const (
	asIs       = iota
	pretty     // with white space in the replies
	compressed // with the replies compressed
	ways
)

func (u *run) setHeader(req *http.Request, a *api, own object, hasBody bool) {
	kind := func(of string) string {
		if u.suite.compat == "" {
			return "application/" + of
		}
		return "application/vnd.elasticsearch+" + of + ";compatible-with=" + u.suite.compat
	}
	if hasBody {
		req.Header.Set("Content-Type", kind("json"))
		if a.lines && u.turn%2 == 0 {
			req.Header.Set("Content-Type", kind("x-ndjson"))
		}
	}
	if !strings.HasPrefix(a.name, "cat.") && a.name != "nodes.hot_threads" {
		req.Header.Set("Accept", kind("json"))
	}
	if u.way == compressed {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	for key, values := range u.header {
		req.Header[key] = values
	}
	for _, m := range own {
		req.Header.Set(m.key, textOf(m.value))
	}
}

// bodyOf returns a request's body, or nil if it has none.
func bodyOf(a *api, args object) ([]byte, error) {
	if !args.has("body") {
		return nil, nil
	}
	v := args.get("body")
	if text, ok := v.(string); ok {
		if a.lines && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		return []byte(text), nil
	}
	if !a.lines {
		return json.Marshal(v)
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var body []byte
	for _, line := range list {
		text, ok := line.(string)
		if !ok {
			data, err := json.Marshal(line)
			if err != nil {
				return nil, err
			}
			text = string(data)
		}
		body = append(append(body, strings.TrimRight(text, "\n")...), '\n')
	}
	return body, nil
}
