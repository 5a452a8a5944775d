package typesense

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
)

// declined returns an error of the result: the engine's own as the port has it.
func (r *result) declined(err error) error {
	refusal, ok := errors.AsType[*refusal](err)
	if !ok {
		return err
	}
	d := &adapters.Declined{Status: refusal.code, Reason: refusal.reason, Raw: r.raw}
	// It can't be for anything that a reading added to the search: nothing it adds names a thing that could be missing.
	d.Final = d.Status == 404 || errors.Is(refused(d.Status), adapters.ErrRefused)
	if d.Status == 422 {
		_, _ = fmt.Sscanf(d.Reason, "Only upto %d hits can be fetched per page.", &d.Most)
	}
	return d
}

// refusal is the engine's answer to a search of a multi-search that it can't or will not do.
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

// newRefusal returns the engine's own error.
func newRefusal(reason, code []byte) error {
	number, err := strconv.Atoi(string(code))
	text, ok := jsonedit.Text(reason)
	if err != nil || !ok {
		return errors.New("an error without code or reason")
	}
	return &refusal{number, text}
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
