package onboard

import (
	"net/url"
	"strings"
	"testing"
)

// TestTalkMovesNoTerminal: what an engine or its certificate says is shown as text.
func TestTalkMovesNoTerminal(t *testing.T) {
	var out strings.Builder
	(&talk{out: &out}).say("  subject  %s", "CN=a\x1b[8m")
	if strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", &out)
	}
}

func TestNothingShowsACertificate(t *testing.T) {
	if len(shownCertificates(t.Context(), &url.URL{Scheme: "http", Host: "127.0.0.1:1"})) > 0 {
		t.Error("nothing listens there")
	}
}
