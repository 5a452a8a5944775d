package config

import (
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// Print writes the whole configuration as YAML: what the file says, with variables replaced, presets applied and defaults filled
// in. Secrets are hidden; all else, read again, is the same configuration.
func (c *Config) Print(w io.Writer) error {
	p := &yamlWriter{}
	fmt.Fprintf(&p.out, "# What %s amounts to. Secrets stand here as %s\n", c.File, Hidden)
	p.section(reflect.ValueOf(*c), "")
	_, err := io.WriteString(w, p.out.String())
	return err
}

// Tree returns the same for JSON: sections as objects with their keys, and each value as a number, a truth value or a text.
func (c *Config) Tree() any { return branch(reflect.ValueOf(*c)) }

func branch(value reflect.Value) any {
	if text, ok := scalar(value); ok {
		switch value.Kind() {
		case reflect.Bool, reflect.Float64:
			return value.Interface()
		case reflect.Int, reflect.Int64:
			if _, written := value.Interface().(fmt.Stringer); !written { // which a size or a span is
				return value.Interface()
			}
			return text
		case reflect.String:
			return redactURL(value.String())
		}
		if shown, ok := value.Interface().(Representative); ok {
			return shown.By
		}
		return fmt.Sprint(value.Interface())
	}
	switch value.Kind() {
	case reflect.Slice:
		list := []any{}
		for i := range value.Len() {
			list = append(list, branch(value.Index(i)))
		}
		return list
	case reflect.Struct:
		section := map[string]any{}
		for field, below := range value.Fields() {
			if key := field.Tag.Get("mapstructure"); key != "" && key != "-" {
				section[key] = branch(below)
			}
		}
		return section
	}
	return fmt.Sprint(value) // nothing in a configuration is of another kind: TestConfigPrint
}

// yamlWriter writes sections of a configuration as YAML.
type yamlWriter struct{ out strings.Builder }

// section writes the keys of a section, each in a line of its own behind the indent.
func (p *yamlWriter) section(section reflect.Value, indent string) {
	for field, value := range section.Fields() {
		key := field.Tag.Get("mapstructure")
		if key == "" || key == "-" {
			continue
		}
		p.out.WriteString(indent + key + ":")
		p.value(value, indent)
	}
}

// value writes what stands behind a key, and ends the line.
func (p *yamlWriter) value(value reflect.Value, indent string) {
	if text, ok := scalar(value); ok {
		p.out.WriteString(" " + text + "\n")
		return
	}
	switch value.Kind() {
	case reflect.Struct:
		p.out.WriteByte('\n')
		p.section(value, indent+"  ")
	case reflect.Slice:
		p.list(value, indent)
	default: // nothing in a configuration is of another kind: TestConfigPrint
		fmt.Fprintf(&p.out, " %v\n", value)
	}
}

// list writes a list: of sections one below the other, of anything else in one line.
func (p *yamlWriter) list(list reflect.Value, indent string) {
	if list.Len() == 0 || list.Type().Elem().Kind() != reflect.Struct {
		var parts []string
		for i := range list.Len() {
			text, _ := scalar(list.Index(i))
			parts = append(parts, text)
		}
		p.out.WriteString(" [" + strings.Join(parts, ", ") + "]\n")
		return
	}
	p.out.WriteByte('\n')
	for i := range list.Len() {
		entry := &yamlWriter{}
		entry.section(list.Index(i), indent+"    ")
		p.out.WriteString(indent + "  - " + strings.TrimPrefix(entry.out.String(), indent+"    "))
	}
}

// scalar returns a value that stands in one line, and whether it is such.
func scalar(value reflect.Value) (string, bool) {
	switch v := value.Interface().(type) {
	case Secret:
		return Quote(v.String()), true
	case Size:
		return v.String(), true
	case Span:
		return v.String(), true
	case Representative:
		if v.By != "" {
			return Quote(v.By), true
		}
		return "", false
	}
	switch value.Kind() {
	case reflect.String:
		return Quote(redactURL(value.String())), true
	case reflect.Bool:
		return strconv.FormatBool(value.Bool()), true
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(value.Int(), 10), true
	case reflect.Float64:
		return strconv.FormatFloat(value.Float(), 'g', -1, 64), true
	}
	return "", false
}

// plainYAML is a text that YAML takes for itself without quotes, but for the words below.
var (
	plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./-]*$`)
	wordsYAML = regexp.MustCompile(`^(?i:y|yes|n|no|true|false|on|off|null|nan|inf)$`)
)

// Quote returns a text as YAML: as it stands where that is safe, otherwise in double quotes. A dollar sign is doubled, so that
// it is none of ours when it is read again.
func Quote(text string) string {
	text = strings.ReplaceAll(text, "$", "$$")
	if plainYAML.MatchString(text) && !wordsYAML.MatchString(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\U%08X`, r)
		}
	}
	return `"` + b.String() + `"`
}
