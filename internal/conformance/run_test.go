package conformance

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
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

// run runs a section and returns what went over the wire, and what did not hold.
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
	case "skip", "requires":
		return nil
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
	return holds(s.verb, s.arg, u.body, u.stash)
}

// instruction is a do taken apart.
type instruction struct {
	catch   string
	headers object
	api     string
	args    object
}

func (u *run) do(arg any) error {
	o, _ := arg.(object)
	var in instruction
	for _, m := range o {
		switch m.key {
		case "catch":
			in.catch = strings.TrimSpace(textOf(m.value))
		case "headers":
			in.headers, _ = u.stash.expand(m.value).(object)
		case "warnings", "warnings_regex", "allowed_warnings", "allowed_warnings_regex", "node_selector":
			// Warnings depend on the version; that both ways have the same is checked apart. There is one node.
		default:
			in.api = m.key
			in.args, _ = u.stash.expand(m.value).(object)
		}
	}
	a := u.suite.spec[in.api]
	if a == nil {
		return fmt.Errorf("%q: %w", in.api, errRunner)
	}
	u.turn++
	c, err := a.call(in.args, in.args.has("body"), u.turn)
	if param := errParam(""); errors.As(err, &param) && in.catch == "param" {
		u.body = nil
		return nil
	}
	if err != nil {
		return err
	}
	x, err := u.send(a, c, in)
	if err != nil {
		return err
	}
	return u.judge(in, x)
}

// send sends a request and reads the reply.
func (u *run) send(a *api, c call, in instruction) (*exchange, error) {
	body, err := bodyOf(a, in.args)
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
	u.setHeader(req, a, in.headers, body != nil)
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

// caught is what each word of a catch stands for.
var caught = map[string]int{
	"bad_request": 400, "unauthorized": 401, "forbidden": 403, "missing": 404, "request_timeout": 408, "conflict": 409,
	"unavailable": 503,
}

// judge takes a reply and checks that it is an error or none, as the step says.
func (u *run) judge(in instruction, x *exchange) error {
	if x.method == http.MethodHead {
		u.body = x.status < 300
		if x.status == 404 && in.catch == "" {
			return nil
		}
	} else {
		v, err := decodeReply(x.header.Get("Content-Type"), x.body)
		if err != nil {
			return err
		}
		u.body = v
	}
	failed := x.status >= 400
	if slices.Contains(listOf(in.args.get("ignore")), strconv.Itoa(x.status)) {
		return nil
	}
	at := fmt.Sprintf("%s %s", x.method, x.url)
	switch status, word := caught[in.catch]; {
	case in.catch == "" && failed:
		return fmt.Errorf("%s: status %d: %.300s", at, x.status, x.body)
	case in.catch == "":
		return nil
	case !failed:
		return fmt.Errorf("%s: status %d, want an error, %s", at, x.status, in.catch)
	case word && x.status != status:
		return fmt.Errorf("%s: status %d, want %d: %.300s", at, x.status, status, x.body)
	case word || in.catch == "request":
		return nil
	case strings.HasPrefix(in.catch, "/") && strings.HasSuffix(in.catch, "/"):
		re, err := pattern(in.catch[1 : len(in.catch)-1])
		if err != nil {
			return err
		}
		if !re.Match(x.body) {
			return fmt.Errorf("%s: status %d, want %s: %.300s", at, x.status, in.catch, x.body)
		}
		return nil
	}
	return fmt.Errorf("catch %s: %w", in.catch, errRunner)
}
