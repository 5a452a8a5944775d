package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// hidden stands where a secret would be shown.
const hidden = "…"

// Secret is a text that nothing shows: whatever prints, formats, logs or marshals it, or a value that holds it, gets [hidden] or
// an address. Only reveal has the text. Its zero value is an empty text.
type Secret struct {
	// A pointer, since fmt asks no method of what stands in an unexported field, and goes through no pointer there.
	text *string
}

// secretOf returns the text as a secret.
func secretOf(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// reveal returns the text, for the one place that sends or computes with it.
func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// set reports whether the text is not empty.
func (s Secret) set() bool { return s.reveal() != "" }

// Equal reports whether two secrets are the same text.
func (s Secret) Equal(other Secret) bool { return s.reveal() == other.reveal() }

// String returns [hidden], or nothing where the secret is empty.
func (s Secret) String() string {
	if !s.set() {
		return ""
	}
	return hidden
}

// GoString does the same for %#v.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format does the same for every verb.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	_, _ = io.WriteString(f, text) // fmt has nowhere to tell an error
}

// MarshalText does the same for JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue does the same for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// hostPort is a URL whose beginning was forgotten.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+([/?#]|$)`)

// shownURL returns a URL with hidden in the place of its user, password and query. One that is not well formed is cut down to
// what can't hold a secret; a text that is none at all may be a secret in a wrong place.
func shownURL(text string) string {
	if !strings.Contains(text, "://") && !strings.Contains(text, "@") && !hostPort.MatchString(text) {
		return hidden
	}
	before, rest, _ := strings.Cut(text, "?")
	if _, after, found := strings.Cut(before, "#"); found {
		before, rest = before[:len(before)-len(after)-1], after
	}
	if rest != "" {
		rest = "?" + hidden
	}
	scheme, host, found := strings.Cut(before, "://")
	if !found {
		scheme, host = "", before
	} else {
		scheme += "://"
	}
	// The last @ of all: one in a password that is not escaped, or behind a slash that is not, must not end it.
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = hidden + host[at:]
	}
	return scheme + host + rest
}

// redactURL returns the text with what a URL may hide in it hidden, where it is one.
func redactURL(text string) string {
	if u, err := url.Parse(text); strings.Contains(text, "://") && (err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return shownURL(text)
	}
	return text
}

// maxSecretFile bounds, in bytes, what ${file:…} takes.
const maxSecretFile = 64 << 10

// secretFile returns what ${file:…} stands for: the file's text without the line end behind it.
func secretFile(path string) (string, error) {
	if path == "" {
		return "", errors.New("has ${file:} without a path: write ${file:/run/secrets/name}")
	}
	text, err := readBounded(path, maxSecretFile)
	if err != nil {
		return "", fmt.Errorf("${file:%s} %w", path, err)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", fmt.Errorf("${file:%s} is no text: it holds a zero byte", path)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// readBounded reads a file of at most so many bytes. The error says what to do, without the path.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, unreadable(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("is no regular file: name a file")
	case info.Size() > limit:
		return nil, fmt.Errorf("is larger than %v: name another file", Size(limit))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(text)) > limit { // it grew
		return nil, fmt.Errorf("is larger than %v: name another file", Size(limit))
	}
	return text, nil
}

// unreadable says why a file can't be read, and what to do.
func unreadable(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("can't be read: %w: give the user that runs the sidecar (uid %d) leave to read it, and its folders", err, os.Getuid())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("can't be read: %w: name one that is there", err)
	}
	return fmt.Errorf("can't be read: %w", err)
}

// discreet carries requests of jobs, and hides their own credentials in what an engine answers where it refuses: its words are
// printed.
type discreet struct {
	http.RoundTripper
	words []string
}

// discreet returns a transport that hides the engine's credentials.
func (e *EngineConfig) discreet(transport http.RoundTripper) http.RoundTripper {
	var words []string
	for _, values := range e.header() {
		for _, value := range values {
			_, bare, _ := strings.Cut(value, " ") // without the scheme
			words = append(words, value, bare)
		}
	}
	for _, s := range []Secret{e.Credentials.APIKey, e.Credentials.Password, e.Credentials.Bearer} {
		words = append(words, s.reveal())
	}
	words = slices.DeleteFunc(words, func(w string) bool { return len(w) < 4 }) // which stand in words of every kind
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })    // the whole before its parts
	if len(words) == 0 {
		return transport
	}
	return &discreet{transport, words}
}

// maxRefusal is how much is read of a refusal, in bytes.
const maxRefusal = 1 << 20

// RoundTrip implements http.RoundTripper.
func (d *discreet) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := d.RoundTripper.RoundTrip(r)
	if err != nil {
		if text := d.hide(err.Error()); text != err.Error() {
			err = errors.New(text)
		}
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest || resp.Header.Get("Content-Encoding") != "" {
		return resp, nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	_ = resp.Body.Close() // it was read
	if err != nil {
		return nil, err
	}
	text := d.hide(string(body))
	resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	resp.Header.Del("Content-Length")
	return resp, nil
}

func (d *discreet) hide(text string) string {
	for _, word := range d.words {
		text = strings.ReplaceAll(text, word, hidden)
	}
	return text
}

// guarded returns a handler whose panics are logged without what they were raised with, which may hold anything of a request;
// only the runtime's own words are shown. The client's connection is cut, as net/http does.
func guarded(h http.Handler, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			raised := recover()
			if raised == nil {
				return
			}
			if raised != http.ErrAbortHandler {
				what := fmt.Sprintf("%T", raised)
				if e, ok := raised.(runtime.Error); ok {
					what = e.Error()
				}
				log.Error("panic: report this as a bug", "error", what, "stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}()
		h.ServeHTTP(w, r)
	})
}

// quietStandardLog has what libraries write to the standard logger go to ours, cut before the first quote: net/http quotes there
// what an engine sent unasked.
func quietStandardLog(to *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(lineWriter(func(line string) {
		before, _, _ := strings.Cut(line, `"`)
		to.Warn("library", "error", strings.TrimSpace(before))
	}))
}

// lineWriter takes lines from a standard logger, one each time.
type lineWriter func(line string)

// Write implements io.Writer.
func (w lineWriter) Write(p []byte) (int, error) {
	w(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
