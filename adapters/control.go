package adapters

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
)

// ControlHeader is the request header that carries controls: "Neardup-Control: threshold=0.9; window=500", or "on", or "off". Engines
// ignore it.
const ControlHeader = "Neardup-Control"

// OutcomeHeader is the response header that says what was done.
const OutcomeHeader = "Neardup"

// Controls are what one request asks of us, in place of its rule. The zero value asks for nothing. CONTRIBUTING.md says what a new one
// needs.
type Controls struct {
	// Off leaves the search alone.
	Off bool
	// On collapses where the rule says that nothing is folded but counted.
	On bool
	// DryRun answers what the engine does, and counts what would be folded.
	DryRun bool
	// Threshold, if above 0, replaces the rule's.
	Threshold float64
	// Window, if above 0, replaces the rule's, capped by the configuration.
	Window int
	// Keep, if above 0, replaces the rule's.
	Keep int
	// Expand, if not nil, replaces the rule's.
	Expand *rule.Expand
	// Explain, if not nil, says whether hits come with the reason why they were folded or shown.
	Explain *bool
	// Collapsed, if not nil, says whether the total shows what the collapsed list holds.
	Collapsed *bool
	// Group, if not nil, says whether each hit says which group it belongs to.
	Group *bool
	// CountsGroups, if not nil, says whether facets count groups.
	CountsGroups *bool
}

// controls are the names of all controls as they stand in a URL or a body; in the header they stand without the prefix.
var controls = []string{
	"neardup", "neardup_threshold", "neardup_keep", "neardup_window", "neardup_expand", "neardup_explain", "neardup_totals",
	"neardup_group", "neardup_counts",
}

// IsControl reports whether a URL parameter or a key of a search body is meant for us.
func IsControl(name string) bool {
	return name == "neardup" || strings.HasPrefix(name, rule.FieldPrefix)
}

// maxShown is how many bytes of a bad value are quoted.
const maxShown = 200

// Set takes one control. The error names the control, its value and what to write instead.
func (c *Controls) Set(name, value string) error {
	if !slices.Contains(controls, name) {
		return fmt.Errorf("[%s] is unknown: the controls are %s", name, strings.Join(controls, ", "))
	}
	if err := c.set(name, value); err != nil && len(value) > maxShown {
		return fmt.Errorf("[%s] has a value of %d bytes, which it can't be", name, len(value))
	} else if err != nil {
		return fmt.Errorf("[%s] %w", name, err)
	}
	return nil
}

func (c *Controls) set(name, value string) error {
	switch name {
	case "neardup":
		on, off, dry := slices.Contains([]string{"on", "true", ""}, value), value == "off" || value == "false", value == "dry_run"
		if !on && !off && !dry {
			return fmt.Errorf("must be on, off or dry_run, not [%s]", value)
		}
		c.On, c.Off, c.DryRun = on, off, dry
	case "neardup_threshold":
		t, err := strconv.ParseFloat(value, 64)
		if err != nil || !(t > 0 && t <= 1) {
			return fmt.Errorf("must be a number above 0, at most 1, not [%s]", value)
		}
		c.Threshold = t
	case "neardup_keep":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > rule.MaxKeep {
			return fmt.Errorf("must be a whole number from 1 to %d, not [%s]", rule.MaxKeep, value)
		}
		c.Keep = n
	case "neardup_window":
		w, err := strconv.Atoi(value)
		if err != nil && !errors.Is(err, strconv.ErrRange) || w < 1 { // one out of range is the largest there is, and capped like any
			return fmt.Errorf("must be a whole number of at least 1, not [%s]", value)
		}
		c.Window = w
	case "neardup_expand":
		shown := map[string]rule.Expand{"off": rule.ExpandOff, "false": rule.ExpandOff, "ids": rule.ExpandIDs, "true": rule.ExpandIDs, "": rule.ExpandIDs, "source": rule.ExpandSource}
		expand, known := shown[value]
		if !known {
			return fmt.Errorf("must be off, ids or source, not [%s]", value)
		}
		c.Expand = &expand
	case "neardup_explain", "neardup_group":
		yes := value == "true" || value == ""
		if !yes && value != "false" {
			return fmt.Errorf("must be true or false, not [%s]", value)
		}
		if name == "neardup_group" {
			c.Group = &yes
		} else {
			c.Explain = &yes
		}
	case "neardup_totals":
		collapsed := value == "collapsed"
		if !collapsed && value != "engine" {
			return fmt.Errorf("must be engine or collapsed, not [%s]", value)
		}
		c.Collapsed = &collapsed
	case "neardup_counts":
		groups := value == "groups"
		if !groups && value != "engine" {
			return fmt.Errorf("must be engine or groups, not [%s]", value)
		}
		c.CountsGroups = &groups
	}
	return nil
}

// MemberControls returns the controls among the members of an object, and whether there is one. Of one with the value null, which clients send
// for an option that is not set, nothing is taken.
func MemberControls(members []jsonedit.Member) (c Controls, found bool, err error) {
	for _, m := range members {
		if !IsControl(m.Key) {
			continue
		}
		found = true
		value, text := jsonedit.Text(m.Value)
		if !text {
			value = string(m.Value)
		}
		if !text && value == "null" {
			continue
		}
		if err := c.Set(m.Key, value); err != nil {
			return c, true, err
		}
	}
	return c, found, nil
}

// Merge returns the controls with those of a narrower place (one search of many) put over them.
func (c Controls) Merge(narrow Controls) Controls {
	if narrow.On || narrow.Off || narrow.DryRun {
		c.On, c.Off, c.DryRun = narrow.On, narrow.Off, narrow.DryRun
	}
	c.Threshold = cmp.Or(narrow.Threshold, c.Threshold)
	c.Window = cmp.Or(narrow.Window, c.Window)
	c.Keep = cmp.Or(narrow.Keep, c.Keep)
	c.Expand = cmp.Or(narrow.Expand, c.Expand)
	c.Explain = cmp.Or(narrow.Explain, c.Explain)
	c.Collapsed = cmp.Or(narrow.Collapsed, c.Collapsed)
	c.Group = cmp.Or(narrow.Group, c.Group)
	c.CountsGroups = cmp.Or(narrow.CountsGroups, c.CountsGroups)
	return c
}

// Param is one URL parameter as it was sent (Raw) and as it reads.
type Param struct{ Raw, Name, Value string }

// Params parses a raw query without losing a byte: joined with "&" the Raw parts are the query again.
func Params(rawQuery string) []Param {
	if rawQuery == "" {
		return nil
	}
	list := make([]Param, 0, 1+strings.Count(rawQuery, "&"))
	for part := range strings.SplitSeq(rawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		list = append(list, Param{Raw: part, Name: unescape(name), Value: unescape(value)})
	}
	return list
}

// RawQuery returns the raw query of the parameters that keep accepts.
func RawQuery(params []Param, keep func(name string) bool) string {
	parts := make([]string, 0, len(params))
	for _, p := range params {
		if keep(p.Name) {
			parts = append(parts, p.Raw)
		}
	}
	return strings.Join(parts, "&")
}

// Last returns the value of the last parameter with the name.
func Last(params []Param, name string) (value string, ok bool) {
	for _, p := range slices.Backward(params) {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

func unescape(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// TakeControls returns the controls of a request's header and URL, the URL first, and the request without them. On an error the
// request comes back without them too.
func TakeControls(r *Request) (Controls, *Request, error) {
	var c Controls
	var failed error
	set := func(name, value string) {
		if err := c.Set(name, value); err != nil && failed == nil {
			failed = err
		}
	}
	plain := *r
	if lines := r.Header[ControlHeader]; len(lines) > 0 {
		for item := range strings.SplitSeq(strings.Join(lines, ";"), ";") {
			switch name, value, _ := strings.Cut(strings.TrimSpace(item), "="); name {
			case "":
			case "on", "off", "dry_run":
				set("neardup", name)
			default:
				if name = strings.ToLower(strings.TrimSpace(name)); !IsControl(name) { // "threshold" is neardup_threshold
					name = rule.FieldPrefix + name
				}
				set(name, strings.TrimSpace(value))
			}
		}
		plain.Header = make(Header, len(r.Header))
		for k, v := range r.Header {
			if k != ControlHeader {
				plain.Header[k] = v
			}
		}
	}
	params := Params(r.RawQuery)
	for _, p := range params {
		if IsControl(p.Name) {
			set(p.Name, p.Value)
		}
	}
	if slices.ContainsFunc(params, func(p Param) bool { return IsControl(p.Name) }) {
		plain.RawQuery = RawQuery(params, func(name string) bool { return !IsControl(name) })
	}
	return c, &plain, failed
}
