package adapters

import (
	"slices"
	"strings"
)

// Signed reports whether a request is signed over what it is by AWS Signature Version 4, in its header or in its query, so that nothing of
// it may change and no request of ours can be made with its credentials.
func Signed(header Header, rawQuery string) bool {
	if slices.ContainsFunc(header["Authorization"], func(value string) bool { return strings.HasPrefix(value, "AWS4-") }) {
		return true
	}
	if !strings.Contains(strings.ToLower(rawQuery), "amz") { // nearly all: an escaped name is written by no client that signs
		return false
	}
	return slices.ContainsFunc(Params(rawQuery), func(p Param) bool {
		return strings.EqualFold(p.Name, "X-Amz-Algorithm") && strings.HasPrefix(p.Value, "AWS4-")
	})
}
