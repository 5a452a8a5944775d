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
	"time"
	"unicode"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/try"
)

// failure is an error reply: what happened, and a sentence on what to do.
type failure struct {
	What string `json:"error"`
	Hint string `json:"hint"`

	status int
	cause  error // for the log alone
}

func (f *failure) Error() string { return f.What }

func fail(status int, what, hint string) *failure {
	return &failure{What: what, Hint: hint, status: status}
}

// Wrong returns an error in a user's input, with a sentence on what to do.
func Wrong(what, hint string) error {
	return fail(http.StatusBadRequest, what, hint)
}

// hide replaces the user's secrets in a text: engines quote what they were sent.
func (c Credentials) hide(text string) string {
	pair := base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))
	for _, secret := range []string{pair, c.Password, c.Key} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "…")
		}
	}
	return text
}

// check returns an error if the credentials can't be sent in a header.
func (c Credentials) check() error {
	if strings.ContainsFunc(c.User+c.Password+c.Key, unicode.IsControl) {
		return Wrong("credentials: they contain a character that can't be sent, such as a line end", "Paste them without it.")
	}
	return nil
}

// bodyTime is how long the body of a request may take to come.
const bodyTime = 30 * time.Second

// ownPage checks that a request comes from the page itself, by the headers that browsers add.
var ownPage = http.NewCrossOriginProtection()

// read reads the body of a request. Pages of other origins are refused: they can send a form here but no JSON, and a browser says where a
// request comes from.
func read(w http.ResponseWriter, r *http.Request, most int64) (*request, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return nil, fail(http.StatusMethodNotAllowed, "use POST", "Use the page at /.")
	case ownPage.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "none":
		return nil, fail(http.StatusForbidden, "the request comes from another page", "Open the page at / of this address itself.")
	case err != nil || kind != "application/json":
		return nil, fail(http.StatusUnsupportedMediaType, "the body is not said to be JSON", "Send Content-Type: application/json.")
	}
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime)) // an error says that this is no connection
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_ = conn.SetReadDeadline(time.Time{})
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			what := fmt.Sprintf("the body is larger than %d bytes", most)
			return nil, fail(http.StatusRequestEntityTooLarge, what, "Send a shorter query.")
		}
		return nil, fail(http.StatusBadRequest, "the body could not be read", "Try again.")
	}
	var a request
	if json.Unmarshal(body, &a) != nil { // the error is not shown: it may quote a password
		return nil, fail(http.StatusBadRequest, "the body is not the JSON object that is expected", "Use the page at /.")
	}
	return &a, nil
}

// checkEngine is the hint if no engine answers.
const checkEngine = "Check whether the engine is up, at /readyz?verbose."

// failureOf returns the reply to an error.
func failureOf(ctx context.Context, err error, c Credentials) *failure {
	own, isOwn := errors.AsType[*failure](err)
	status, text := adapters.StatusOf(err), short(c.hide(err.Error()))
	switch {
	case isOwn:
		return fail(own.status, c.hide(own.What), own.Hint)
	case status == http.StatusUnauthorized:
		return fail(status, text, "Give credentials that this engine accepts.")
	case status == http.StatusForbidden:
		return fail(status, text, "Give credentials that may search this index and read its documents.")
	case status == http.StatusNotFound:
		return fail(status, text, "Choose an index that exists.")
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return fail(status, text, "The engine is busy: try again in a moment.")
	case status >= 400 && status < 500:
		return fail(http.StatusBadRequest, text, "The engine refuses this search: correct it, or check the types of the rule's fields in the index.")
	case status == http.StatusBadGateway || status == http.StatusGatewayTimeout:
		return fail(http.StatusBadGateway, text, checkEngine)
	case status >= 500:
		return fail(http.StatusBadGateway, text, "The engine itself has failed: check its log.")
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return fail(http.StatusGatewayTimeout, "the engine did not answer within "+timeout.String(), checkEngine)
	case errors.Is(err, try.ErrOversized):
		return fail(http.StatusBadGateway, text, "The documents are too large to show this many: search for rarer words.")
	case errors.Is(err, adapters.ErrNotUnderstood):
		return fail(http.StatusBadGateway, "the engine's reply is not understood",
			"Check with sidecar doctor whether the engine is of the kind in the configuration.")
	case errors.Is(err, try.ErrCutOff):
		return fail(http.StatusBadGateway, text, "Try again; if that does not help, check the engine's log.")
	}
	unknown := fail(http.StatusBadGateway, "the engine can't be reached", checkEngine)
	unknown.cause = err
	return unknown
}

// short shortens a text for an error.
func short(text string) string {
	text, cut := cutAt(text, 600)
	if cut {
		text += "…"
	}
	return text
}
