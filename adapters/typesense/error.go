package typesense

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// ErrorReply returns an error of our own to a request in the engine's shape.
func (Dialect) ErrorReply(_ *adapters.Request, status int, reason string) *adapters.Reply {
	body := append(jsonedit.AppendString([]byte(`{"message": `), reason), '}')
	return &adapters.Reply{Status: status, Header: adapters.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Access-Control-Allow-Origin": {"*"},
	}, Body: body}
}

// declined returns the engine's own error, of which a result consists.
func declined(reason, code, result []byte) error {
	status, err := strconv.Atoi(string(code))
	text, ok := jsonedit.Text(reason)
	if err != nil || !ok {
		return errors.New("an error without code or reason")
	}
	d := &adapters.Declined{Status: status, Reason: text, Raw: result}
	// It can't be for anything that a reading added to the search: nothing it adds names a thing that could be missing.
	d.Final = status == 404 || errors.Is(refused(status), adapters.ErrRefused)
	if status == 422 {
		_, _ = fmt.Sscanf(text, mostAllowed, &d.Most)
	}
	return d
}

// mostAllowed is what the engine says to a page that is too large for it.
const mostAllowed = "Only upto %d hits can be fetched per page."

// Refusal implements adapters.Search.
func (q *query) Refusal(requests []*adapters.Request, reply *adapters.Reply) error {
	if single := requests[0].Method == "GET"; single && reply.Status == 404 {
		return adapters.ErrRefused // see declined
	} else if single && reply.Status == 422 {
		d := &adapters.Declined{Status: reply.Status}
		d.Reason, _ = jsonedit.Text(member(reply.Body, "message"))
		if n, _ := fmt.Sscanf(d.Reason, mostAllowed, &d.Most); n > 0 {
			return d
		}
	}
	return refused(reply.Status)
}

// refused sorts the engine's refusals by whose fault they can be.
func refused(status int) error {
	switch {
	case status == 401 || status == 403 || status == 408 || status == 429 || status >= 500:
		return adapters.ErrRefused
	case status >= 400:
		return adapters.ErrWidened
	case status != 200:
		return adapters.ErrNotUnderstood
	}
	return nil
}

// refusal is the engine's error to a request of the store's.
type refusal struct {
	code   int
	reason string
}

func (r *refusal) Error() string { return fmt.Sprintf("the engine answers %d: %s", r.code, r.reason) }

// HTTPStatus is for adapters.StatusOf.
func (r *refusal) HTTPStatus() int { return r.code }

// Is implements the interface of errors.Is: the engine has no room for the request just now.
func (r *refusal) Is(target error) bool { return target == adapters.ErrBusy && busy(r.code) }

func busy(code int) bool { return code == 429 || code == 503 }
