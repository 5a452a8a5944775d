package collapse

import (
	"context"
	"errors"

	"github.com/neardup/sidecar/adapters"
)

// maxRounds bounds how often one search may ask the engine, whatever its dialect says.
const maxRounds = 64

var errEndless = errors.New("the search does not end")

// Search answers a search that was taken apart, in whichever way its dialect has.
func Search(ctx context.Context, parsed *adapters.ParsedSearch, ask Ask) (*adapters.Answer, error) {
	if parsed.Searches != nil {
		return Answer(ctx, parsed.Searches, ask)
	}
	return lead(ctx, parsed.Exchange, ask)
}

// lead leads an exchange to its end.
func lead(ctx context.Context, exchange adapters.Exchange, ask Ask) (*adapters.Answer, error) {
	var reply *adapters.Reply
	for range maxRounds {
		request, answer, err := exchange.Next(reply)
		if errors.Is(err, adapters.ErrRefused) {
			return nil, &Refused{reply}
		}
		if err != nil || answer != nil {
			return answer, err
		}
		replies, err := ask(ctx, request)
		switch {
		case adapters.IsLate(err):
			reply = nil
		case err != nil:
			return nil, err
		default:
			reply = replies[0]
		}
	}
	return nil, adapters.NotUnderstood(errEndless)
}
