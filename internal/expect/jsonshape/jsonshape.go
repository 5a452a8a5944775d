// Package jsonshape says in a line for each key which values a program prints as JSON, and holds what it prints to that. The lines
// are made from Go types, so that a page of documentation can't fall behind them.
package jsonshape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// The words for what a value is.
const (
	text     = "text"
	number   = "number"
	truth    = "true or false"
	anything = "any JSON"

	absent = ", may be absent"
	null   = ", may be null"

	meaning = ": "
)

// Key is a key of an object, with what stands before it: checks[].state is that of each object in the list checks.
type Key struct {
	Path string
	// Is is what its value is. Objects have no line of their own unless they may be absent or null.
	Is           string
	Absent, Null bool
	// Means is what its name does not say, or nothing.
	Means string
}

// String returns the line of a key. Its path is written as jq takes it.
func (k Key) String() string {
	line := fmt.Sprintf("%-36s %s", "."+k.Path, k.Is)
	if k.Absent {
		line += absent
	}
	if k.Null {
		line += null
	}
	if k.Means != "" {
		line += meaning + k.Means
	}
	return line
}

// Of returns the keys of what a value of the type is in JSON. It knows the kinds that results are made of, and panics at others.
func Of(t reflect.Type) []Key { return below("", t) }

// below returns the keys of a value at the path.
func below(path string, t reflect.Type) []Key {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return []Key{{Path: path, Is: anything}}
	case t.Kind() == reflect.Pointer:
		return below(path, t.Elem())
	case t.Kind() == reflect.String:
		return []Key{{Path: path, Is: text}}
	case t.Kind() == reflect.Bool:
		return []Key{{Path: path, Is: truth}}
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Float64:
		return []Key{{Path: path, Is: number}}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return below(path+"[]", t.Elem())
	case t.Kind() == reflect.Struct:
		return members(path, t)
	}
	panic("a result holds a " + t.String())
}

// members returns the keys of an object at the path.
func members(path string, t reflect.Type) (keys []Key) {
	for field := range t.Fields() {
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && tag == "":
			inner := field.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			keys = append(keys, members(path, inner)...)
			continue
		case tag == "" || tag == "-":
			continue
		}
		at := strings.TrimPrefix(path+"."+tag, ".")
		found := below(at, field.Type)
		mayLack := strings.Contains(options, "omitempty")
		mayBeNull := field.Type.Kind() == reflect.Pointer && !mayLack
		if mayLack || mayBeNull {
			if found[0].Path != at {
				is := "object"
				if strings.HasPrefix(found[0].Path, at+"[]") {
					is = "list"
				}
				found = slices.Insert(found, 0, Key{Path: at, Is: is})
			}
			found[0].Absent, found[0].Null = mayLack, mayBeNull
		}
		keys = append(keys, found...)
	}
	return keys
}

// Parse reads the lines of keys. Others are an error.
func Parse(lines string) (keys []Key, err error) {
	for line := range strings.Lines(lines) {
		path, is, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(path, ".") {
			return nil, fmt.Errorf("%q is no line of a key: write its path, with a dot before it, and what it is", line)
		}
		k := Key{Path: path[1:]}
		is, k.Means, _ = strings.Cut(is, meaning)
		is, k.Null = strings.CutSuffix(is, null)
		is, k.Absent = strings.CutSuffix(is, absent)
		k.Is = strings.TrimSpace(is)
		keys = append(keys, k)
	}
	return keys, nil
}

// Check returns how a JSON value differs from the keys: those that it has beside them, those that it lacks, and values of
// another kind.
func Check(keys []Key, value []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return err
	}
	c := checker{known: map[string]Key{}}
	for _, k := range keys {
		c.known[k.Path] = k
	}
	c.value("", v)
	return errors.Join(c.errs...)
}

type checker struct {
	known map[string]Key
	errs  []error
}

func (c *checker) wrong(format string, values ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, values...))
}

// value checks the value at a path.
func (c *checker) value(path string, v any) {
	k, known := c.known[path]
	if known && k.Is == anything {
		return
	}
	is := ""
	switch v := v.(type) {
	case nil:
		if !k.Null {
			c.wrong("%s is null", path)
		}
		return
	case string:
		is = text
	case bool:
		is = truth
	case json.Number:
		is = number
	case []any:
		for _, element := range v {
			c.value(path+"[]", element)
		}
		return
	case map[string]any:
		c.object(path, v)
		return
	}
	if !known || k.Is != is {
		c.wrong("%s is %s (%v), and no such key is known", path, is, v)
	}
}

// object checks the members of an object, and looks for those that lack.
func (c *checker) object(path string, members map[string]any) {
	prefix := path + "."
	if path == "" {
		prefix = ""
	}
	for name, v := range members {
		c.value(prefix+name, v)
	}
	for at := range c.known {
		rest, inside := strings.CutPrefix(at, prefix)
		name, _, _ := strings.Cut(strings.ReplaceAll(rest, "[]", "."), ".")
		if !inside || name == "" {
			continue
		}
		may := c.known[prefix+name].Absent || c.known[prefix+name+"[]"].Absent
		if _, there := members[name]; !there && !may {
			c.wrong("%s is not there", prefix+name)
		}
	}
}
