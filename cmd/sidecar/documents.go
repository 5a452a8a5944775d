package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/sketch"
)

// document is one line of a file of documents.
type document struct {
	// id is what stands in the field id, a number as it is written; rawID is the same as JSON.
	id    string
	rawID []byte
	// texts are those of the fields, in their order.
	texts []string
	// held says that it has one of the fields.
	held bool
}

// readDocument reads a document with the texts of the fields in it: a string, or each of a list of strings; a dot leads into an
// object.
func readDocument(line []byte, fields []string) (document, error) {
	var d document
	members, err := adapters.Members(line)
	if err != nil {
		return d, errors.New(`is no JSON object: write one document in each line, such as {"id": "a", "text": "some words"}`)
	}
	d.rawID = adapters.Get(members, "id")
	switch {
	case d.rawID == nil:
		return d, errors.New(`has no field "id": give each document one, a text or a number`)
	case d.rawID[0] == '"':
		d.id, _ = adapters.Text(d.rawID)
	case strings.IndexByte("-0123456789", d.rawID[0]) >= 0:
		d.id = string(d.rawID)
	default:
		return d, fmt.Errorf(`id: %.40s is no id: give a text or a number`, d.rawID)
	}
	for _, field := range fields {
		if err := d.descend(members, field, field); err != nil {
			return d, err
		}
	}
	return d, nil
}

// descend takes the texts at the path below an object. A dotted field is found as nested objects and as a dotted key.
func (d *document) descend(members []adapters.Member, path, field string) error {
	for i, m := range members {
		for _, other := range members[:i] {
			if other.Key == m.Key && (m.Key == path || strings.HasPrefix(path, m.Key+".")) {
				return fmt.Errorf("field %s: %q stands twice in one object: drop one", field, m.Key)
			}
		}
		var err error
		if m.Key == path {
			err = d.collect(m.Value, field)
		} else if rest, ok := strings.CutPrefix(path, m.Key+"."); ok {
			err = d.into(m.Value, rest, field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// into follows the rest of a path into a value: an object, or a list of them. Anything else has no field below it.
func (d *document) into(value []byte, path, field string) error {
	switch value[0] {
	case '{':
		members, err := adapters.Members(value)
		if err != nil {
			return err
		}
		return d.descend(members, path, field)
	case '[':
		elements, err := adapters.Elements(value)
		if err != nil {
			return err
		}
		for _, element := range elements {
			if err := d.into(element, path, field); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect takes the texts of a value. Null is no text.
func (d *document) collect(value []byte, field string) error {
	d.held = true
	switch value[0] {
	case '"':
		text, ok := adapters.Text(value)
		if !ok {
			return fmt.Errorf("field %s: is no well-formed text", field)
		}
		d.texts = append(d.texts, text)
	case '[':
		elements, err := adapters.Elements(value)
		if err != nil {
			return err
		}
		for _, element := range elements {
			if err := d.collect(element, field); err != nil {
				return err
			}
		}
	case 'n':
	default:
		return fmt.Errorf("field %s: %.40s is no text: write it in quotes, or leave the field out of --fields", field, value)
	}
	return nil
}

// defaultFields are read where nothing names others; a document may have both, or one of them.
var defaultFields = []string{"title", "text"}

// offline are the flags of the commands that need no engine.
type offline struct {
	index  string
	fields []string
	output string
	// preset, if not empty, brings in its own scheme.
	preset string
}

func (o *offline) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.index, "index", "", "the rule for the index with this `name` in the configuration gives the fields, the sketch and the preset")
	flags.StringSliceVar(&o.fields, "fields", nil, "the `fields` that are compared, as in title,body (by default those of the rule, or title,text)")
	addOutput(flags, &o.output)
}

// ground is what the commands that need no engine work under.
type ground struct {
	sketcher *sketch.Sketcher
	// rule makes the sketches; it matches no index.
	rule *adapters.Rule
	// index is the rule of the configuration that was chosen, if any; section what its sketches, or all, are made by.
	index   *config.Index
	section config.Sketch
}

// ground returns what the flags ask for: the defaults where --config is not given.
func (o *offline) ground(cmd *cobra.Command) (*ground, error) {
	if err := validOutput(o.output); err != nil {
		return nil, err
	}
	g := ground{section: config.Default().Sketch}
	if cmd.Flags().Changed("config") {
		file, err := cmd.Flags().GetString("config")
		if err != nil {
			return nil, err
		}
		c, err := config.LoadOffline(file, os.LookupEnv)
		if err != nil {
			return nil, err
		}
		g.section = c.Sketch
		if g.index, err = c.IndexFor(o.index); err != nil {
			return nil, err
		}
		if g.index != nil {
			g.section = g.index.Sketch
		}
	} else if o.index != "" {
		return nil, errors.New("--index names a rule of a configuration: name its file with --config")
	}
	if o.preset != "" {
		g.section = config.PresetOf(o.preset).Start(g.section).Sketch
	}
	sketcher, err := sketch.New(g.section.Scheme())
	if err != nil {
		return nil, err
	}
	fields := defaultFields
	switch {
	case len(o.fields) > 0:
		fields = o.fields
	case g.index != nil:
		fields = g.index.Fields
	}
	g.sketcher = sketcher
	g.rule = &adapters.Rule{Match: "-", Fields: fields, Window: 1, Sketcher: sketcher}
	g.rule.Profile.Threshold = 1
	var errs []error
	for _, wrong := range config.Flatten(g.rule.Validate()) {
		errs = append(errs, fmt.Errorf("--fields: %s", strings.TrimPrefix(wrong.Error(), "fields: ")))
	}
	return &g, errors.Join(errs...)
}

// noteFields says on stderr that no document had any of the fields, which are then most likely the wrong ones.
func (g *ground) noteFields(stderr io.Writer, name string) {
	const note = "note: %s: no document has a field %s: name the fields of your documents with --fields\n"
	_, _ = fmt.Fprintf(stderr, note, name, config.Either(g.rule.Fields))
}

// open opens a file for reading, "-" for standard input, and returns what to call it in messages.
func open(cmd *cobra.Command, file string) (io.ReadCloser, string, error) {
	if file == "-" {
		return io.NopCloser(cmd.InOrStdin()), "standard input", nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, file, fmt.Errorf("%w: name a file, or - for standard input", err)
	}
	return f, file, nil
}

// inLine adds to an error where it is.
func inLine(name string, line int, err error) error { return fmt.Errorf("%s:%d: %w", name, line, err) }

// plainID returns an error where the id would break a table of lines and tabs.
func (d *document) plainID() error {
	if bytes.ContainsAny([]byte(d.id), "\t\n\r") {
		return errors.New("id: holds a tab or a line break, which no table can hold: use --output json")
	}
	return nil
}
