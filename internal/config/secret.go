package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/certs"
)

// Hidden is shown in place of a secret.
const Hidden = "…"

// Secret is a text that is never shown: printing, formatting, logging or marshalling it, or a value that contains it, gives [Hidden] or a
// pointer's address. Only Reveal returns the text. Its zero value is an empty text.
type Secret struct {
	// A pointer: fmt calls no methods of an unexported field and does not follow a pointer there.
	text *string
}

// SecretOf returns the text as a secret.
func SecretOf(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether the text is not empty.
func (s Secret) IsSet() bool { return s.Reveal() != "" }

// Equal reports whether two secrets are the same text.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// String returns [Hidden], or an empty text if the secret is empty.
func (s Secret) String() string {
	if !s.IsSet() {
		return ""
	}
	return Hidden
}

// Format does the same for every verb of fmt.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text) // fmt ignores errors
}

// MarshalText does the same for JSON, YAML and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// hostPort matches a URL without its scheme.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+([/?#]|$)`)

// shownURL returns a URL with its user, password and query hidden. A malformed one is cut down to parts that can't contain a secret. A text
// that is not a URL at all is hidden: it may be a secret in the wrong place.
func shownURL(text string) string {
	if !strings.Contains(text, "://") && !strings.Contains(text, "@") && !hostPort.MatchString(text) {
		return Hidden
	}
	before, rest, _ := strings.Cut(text, "?")
	if _, after, found := strings.Cut(before, "#"); found {
		before, rest = before[:len(before)-len(after)-1], after
	}
	if rest != "" {
		rest = "?" + Hidden
	}
	scheme, host, found := strings.Cut(before, "://")
	if !found || strings.Contains(scheme, "@") { // then :// is within the host, or in what follows it
		scheme, host = "", before
	} else {
		scheme += "://"
	}
	// The last @: an unescaped password may contain @ or a slash.
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = Hidden + host[at:]
	}
	return scheme + host + rest
}

// redactURL returns the text unless it is a URL with secrets, which it hides.
func redactURL(text string) string {
	if u, err := url.Parse(text); strings.Contains(text, "://") && (err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return shownURL(text)
	}
	return text
}

// maxSecretFile is the size limit of a file in ${file:…}.
const maxSecretFile = 64 << 10

// secretFile returns the value of ${file:…}: the file's text without its last line end.
func secretFile(path string) (string, error) {
	if path == "" {
		return "", errors.New("has ${file:} without a path: write ${file:/run/secrets/name}")
	}
	text, err := certs.ReadFile(path, maxSecretFile)
	if err != nil {
		return "", fmt.Errorf("${file:%s} %w", path, err)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return "", fmt.Errorf("${file:%s} is not text: it contains a zero byte", path)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}
