package typesense

import (
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/internal/rule"
)

func TestDecidingValues(t *testing.T) {
	const document = `{"id":"7","host":"a.example","tags":["x","y\u00e9"],"n":1.50,"whole":[1.0,1,10e-1,9007199254740993,-0.0],"ok":true,"none":null,"empty":[],"meta":{"lang":"en","deep":{"er":[1,2]}},
		"list":[{"h":"a"},{"h":["b","c"]},{"g":1},3],"object":{"a":1},"dotted.name":"d","meta.lang":"old","un.der":"u",".odd":"o"}`
	for field, want := range map[string][]string{
		"id": {"7"}, "host": {"a.example"}, "tags": {"x", "yé"}, "n": {"1.5"}, "whole": {"1", "1", "1", "9007199254740993", "0"}, "ok": {"true"}, "none": nil, "empty": nil, "nosuch": nil,
		"meta": nil, "meta.lang": {"en"}, "meta.deep.er": {"1", "2"}, "meta.deep": nil, "list.h": {"a", "b", "c"}, "list": {"3"}, "object": nil,
		"dotted.name": {"d"}, "un.der": {"u"}, "un": nil, "host.x": nil, "": nil,
	} {
		got := deciding(unflattened([]byte(document)), rule.Deciding{Field: field})
		expect.By{cmpopts.EquateEmpty()}.Same(t, want, got, "%s", field)
	}
}

// Dates are Unix seconds, or milliseconds where they are too many for seconds.
func TestDecidingDates(t *testing.T) {
	for value, want := range map[string][]string{
		"0": {"0"}, "1700000000": {"1700000000000"}, "-5": {"-5000"}, "1700000000123": {"1700000000123"}, "1700000000.25": {"1700000000250"},
		"253402300799": {"253402300799000"}, "253402300800": {"253402300800"}, "-253402300800": {"-253402300800"}, "1.7e9": {"1700000000000"},
		"9223372036854775807": {"9223372036854775807"}, "1e300": nil, `"1700000000"`: nil, `"2024-01-01"`: nil, "true": nil, "null": nil,
		"[1,2]": {"1000", "2000"}, `[null,"x",3]`: {"3000"},
	} {
		got := deciding(unflattened([]byte(`{"at":`+value+`}`)), rule.Deciding{Field: "at", Date: true})
		expect.By{cmpopts.EquateEmpty()}.Same(t, want, got, "%s", value)
	}
}
