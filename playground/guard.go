package playground

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode"

	"github.com/neardup/sidecar/adapters"
)

// failure is an error as it is answered: what happened, and a sentence on what to do.
type failure struct {
	What string `json:"error"`
	Hint string `json:"hint"`

	status int
	cause  error // what What does not say, for the log
}

func (f *failure) Error() string { return f.What }

func fail(status int, what, hint string) *failure {
	return &failure{What: what, Hint: hint, status: status}
}

// Wrong returns the error of what a user asked for wrongly, with a sentence on what to do.
func Wrong(what, hint string) error {
	return fail(http.StatusBadRequest, what, hint)
}

// hide returns what is said less the user's own secrets: engines quote what they were sent.
func (c Credentials) hide(text string) string {
	pair := base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))
	for _, secret := range []string{pair, c.Password, c.Key} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// check returns what keeps the credentials from being sent.
func (c Credentials) check() error {
	if strings.ContainsFunc(c.User+c.Password+c.Key, unicode.IsControl) {
		return Wrong("credentials: they hold a character that can't be sent, such as a line end", "Paste them without it.")
	}
	return nil
}

// ownPage knows whether a request comes from the page itself, as far as whoever sent it says where from.
var ownPage = http.NewCrossOriginProtection()

// read takes the body of a question, or says why not. Pages of strangers can send a form here, or ask whether they may send more;
// they can send no JSON, and a browser says where a request comes from.
func read(w http.ResponseWriter, r *http.Request) (*asked, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return nil, fail(http.StatusMethodNotAllowed, "only POST is answered here", "Use the page at /.")
	case ownPage.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "none":
		return nil, fail(http.StatusForbidden, "the request comes from another page", "Open the page at / of this address itself.")
	case err != nil || kind != "application/json":
		return nil, fail(http.StatusUnsupportedMediaType, "the body is not said to be JSON", "Send Content-Type: application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			what := fmt.Sprintf("the body is larger than %d bytes", MaxBody)
			return nil, fail(http.StatusRequestEntityTooLarge, what, "Type fewer words.")
		}
		return nil, fail(http.StatusBadRequest, "the body could not be read", "Try again.")
	}
	var a asked
	if json.Unmarshal(body, &a) != nil { // what is wrong is not quoted: there may be a password in it
		return nil, fail(http.StatusBadRequest, "the body is not the JSON object that is asked for", "Use the page at /.")
	}
	return &a, nil
}

// whether is what to do where no engine answers.
const whether = "Look whether the engine is up, at /readyz?verbose."

// explained returns what is answered for an error.
func explained(ctx context.Context, err error, c Credentials) *failure {
	own, isOwn := errors.AsType[*failure](err)
	status, text := adapters.StatusOf(err), short(c.hide(err.Error()))
	switch {
	case isOwn:
		return fail(own.status, c.hide(own.What), own.Hint)
	case status == http.StatusUnauthorized:
		return fail(status, text, "Give the credentials that this engine knows you by.")
	case status == http.StatusForbidden:
		return fail(status, text, "Give credentials that may search this index and read its documents.")
	case status == http.StatusNotFound:
		return fail(status, text, "Choose an index that is there.")
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return fail(status, text, "The engine is busy: try again in a moment.")
	case status >= 400 && status < 500:
		return fail(http.StatusBadRequest, text, "The engine refuses this search: look at what kind of fields those of the rule are in the index.")
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		return fail(http.StatusBadGateway, text, whether)
	case status >= 500:
		return fail(http.StatusBadGateway, text, "The engine itself has failed: look into its log.")
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return fail(http.StatusGatewayTimeout, "the engine did not answer within "+timeout.String(), whether)
	case errors.Is(err, errOversized):
		return fail(http.StatusBadGateway, text, "The documents are too large to show so many of them: search for rarer words.")
	case errors.Is(err, adapters.ErrNotUnderstood):
		return fail(http.StatusBadGateway, "the engine's reply is not understood",
			"Look whether the engine is of the kind that the configuration says, with sidecar doctor.")
	case errors.Is(err, errCut):
		return fail(http.StatusBadGateway, text, "Try again; if it stays so, look into the engine's log.")
	}
	unknown := fail(http.StatusBadGateway, "the engine can't be reached", whether)
	unknown.cause = err
	return unknown
}

// short returns a text as far as it is shown.
func short(text string) string {
	text, cut := cutAt(text, 600)
	if cut {
		text += "…"
	}
	return text
}
