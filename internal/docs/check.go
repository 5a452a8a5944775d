package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Program is what pages are held against: the built sidecar, and the sources that are tested.
type Program struct {
	// Check has the program read a whole configuration, and returns what it complains of.
	Check func(config string) error
	// Commands returns the commands below one, Help what it says of itself.
	Commands func(path ...string) ([]string, error)
	Help     func(path ...string) (string, error)
	// Sources are the texts of files that tests run, by the language of a block.
	Sources map[string][]string
	// Targets are those of the Makefile.
	Targets []string
}

// languages are those that a block may have.
var languages = []string{"", "sh", "text", "json", "yaml", "go", "python", "js", "html", "promql"}

// quoted are those of which a block is a part of a tested file.
var quoted = []string{"go", "python", "js", "html"}

// CheckBlocks looks at every block of a page, and at the commands in its prose.
func (g *Program) CheckBlocks(p *Page) (faults []Fault) {
	add := func(line int, format string, args ...any) {
		faults = append(faults, Fault{line, fmt.Sprintf(format, args...)})
	}
	runs := false // whether an output may follow
	for _, b := range p.Blocks {
		for _, m := range b.Markers {
			if what := b.wrong(m, runs); what != "" {
				add(m.Line, "%s", what)
			}
		}
		if err := g.block(b); err != nil {
			add(b.Line, "%v", err)
		}
		if _, output := b.Marker("output"); !output {
			_, runs = b.Marker("run")
		}
	}
	for _, s := range p.Spans {
		if rest, found := strings.CutPrefix(s.Text, "sidecar "); found && wordly.MatchString(rest) {
			if err := g.command(s.Text); err != nil {
				add(s.Line, "%v", err)
			}
		}
		if err := g.targets(s.Text); err != nil {
			add(s.Line, "%v", err)
		}
	}
	return faults
}

// made is a line by which something of the Makefile is made.
var made = regexp.MustCompile(`(?m)^make((?: [A-Za-z_]+=\S+| [a-z][a-z0-9-]*)+)`)

// targets checks that there are the targets that lines of a text make.
func (g *Program) targets(text string) error {
	for _, line := range made.FindAllStringSubmatch(text, -1) {
		for _, word := range strings.Fields(line[1]) {
			if !strings.Contains(word, "=") && !slices.Contains(g.Targets, word) {
				return fmt.Errorf("the Makefile has no target %q", word)
			}
		}
	}
	return nil
}

// wordly begins like a command of ours.
var wordly = regexp.MustCompile(`^[a-z]+( |$)`)

// wrong says what is wrong with a marker of the block.
func (b *Block) wrong(m Marker, runs bool) string {
	switch {
	case !markers[m.Name]:
		return fmt.Sprintf("the marker %q is not known", m.Name)
	case m.Name == "not run" && len(m.Value) < 3:
		return "the marker says not why: <!-- not run: reason -->"
	case (m.Name == "run" || m.Name == "first minute") && b.Language != "sh":
		return "a block that is run has the language sh"
	case m.Name == "output" && b.Language != "text" && b.Language != "json" && b.Language != "yaml":
		return "an output has the language text, json or yaml"
	case m.Name == "output" && !runs:
		return "an output stands behind a block that is run"
	case m.Name == "file" && (m.Value == "" || strings.HasPrefix(m.Value, "/") || strings.Contains(m.Value, "..")):
		return "the marker says which file: <!-- file: config.yaml -->"
	}
	if m.Name == "run" {
		if _, err := ParseRun(m.Value); err != nil {
			return err.Error()
		}
	}
	return ""
}

// block checks a block by its language.
func (g *Program) block(b *Block) error {
	if _, output := b.Marker("output"); output {
		return nil // compared with what is printed
	}
	switch b.Language {
	case "sh":
		return g.shell(b)
	case "yaml":
		return g.yaml(b)
	case "json":
		if err := isJSON(b.Text); err != nil {
			return fmt.Errorf("the block is no JSON: %w", err)
		}
	case "text", "":
		if m := typed.FindString(b.Text); m != "" {
			return fmt.Errorf("the block has a command, %q: give it the language sh", strings.TrimSpace(m))
		}
	}
	if slices.Contains(quoted, b.Language) {
		if _, not := b.Marker("not run"); !not && !g.stands(b) {
			return fmt.Errorf("the block stands in no file of %s that a test runs: take it from one, or say <!-- not run: reason -->",
				b.Language)
		}
	}
	if !slices.Contains(languages, b.Language) {
		return fmt.Errorf("the block has the language %q, which is none of %s", b.Language, strings.Join(languages[1:], ", "))
	}
	return nil
}

// typed is a line that is typed into a shell.
var typed = regexp.MustCompile(`(?m)^(\$ )?(sudo |\./|bin/)?` +
	`(sidecar|curl|make|go|docker|kubectl|helm|systemctl|pip|npm|git) [^\n]*`)

// stands reports whether the block's lines follow each other somewhere in a source, whatever their indentation.
func (g *Program) stands(b *Block) bool {
	want := flush(b.Text)
	holds := func(source string) bool { return strings.Contains(flush(source), want) }
	return want != "" && slices.ContainsFunc(g.Sources[b.Language], holds)
}

// flush takes indentation and empty lines out.
func flush(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out.WriteString("\n" + line)
		}
	}
	return out.String() + "\n"
}

// shell checks commands without running them.
func (g *Program) shell(b *Block) error {
	var errs []error
	_, run := b.Marker("run")
	_, not := b.Marker("not run")
	_, first := b.Marker("first minute")
	_, file := b.Marker("file")
	if !run && !not && !first && !file {
		errs = append(errs, errors.New("the block is not run: mark it by <!-- run: ENGINE -->, or by <!-- not run: reason -->"))
	}
	if run && not {
		errs = append(errs, errors.New("the block is marked as run and as not run"))
	}
	cmd := exec.Command("bash", "-n")
	cmd.Stdin = strings.NewReader(b.Text)
	if out, err := cmd.CombinedOutput(); err != nil {
		errs = append(errs, fmt.Errorf("bash can't read it: %s", bytes.TrimSpace(out)))
	}
	for _, command := range ours.FindAllStringSubmatch(uncommented(b.Text), -1) {
		if err := g.command("sidecar " + command[1]); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, g.targets(uncommented(b.Text)))
	return errors.Join(errs...)
}

var (
	// ours is a command of ours, up to where the shell ends it.
	ours     = regexp.MustCompile(`(?m)(?:^|[\s(])(?:\./|bin/|\./cmd/|/usr/local/bin/)?sidecar ([a-z-][^\n|;&)]*)`)
	remark   = regexp.MustCompile(`(?m)(^|\s)#.*$`)
	flagName = regexp.MustCompile(`(?:^|\s)(--[a-z][a-z0-9-]*|-[a-z])\b`)
)

// uncommented joins lines that go on, and takes comments and quoted texts out.
func uncommented(text string) string {
	text = strings.ReplaceAll(text, "\\\n", " ")
	text = regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(text, "TEXT")
	return remark.ReplaceAllString(text, "$1")
}

// command checks that a command of ours exists, with its flags.
func (g *Program) command(line string) error {
	words := strings.Fields(line)[1:]
	var path []string
	for len(words) > 0 && wordly.MatchString(words[0]) {
		known, err := g.Commands(path...)
		if err != nil {
			return err
		}
		if len(known) == 0 {
			break // an argument
		}
		if !slices.Contains(known, words[0]) {
			return fmt.Errorf("%q: there is no command %q", line, words[0])
		}
		path, words = append(path, words[0]), words[1:]
	}
	help, err := g.Help(path...)
	if err != nil {
		return err
	}
	for _, m := range flagName.FindAllStringSubmatch(" "+strings.Join(words, " "), -1) {
		if !regexp.MustCompile(`(?m)(^|[\s,])` + m[1] + `([\s,=\[]|$)`).MatchString(help) {
			return fmt.Errorf("%q: %s has no flag %s", line, strings.Join(append([]string{"sidecar"}, path...), " "), m[1])
		}
	}
	return nil
}

// yaml checks a configuration, a part of one, or something else.
func (g *Program) yaml(b *Block) error {
	decoder := yaml.NewDecoder(strings.NewReader(b.Text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("the block is no YAML: %w", err)
		}
	}
	if kind, other := b.Marker("yaml"); other {
		if kind == "" {
			return errors.New("the marker says not of what: <!-- yaml: kubernetes -->")
		}
		return g.values(b, kind)
	}
	text := b.Text
	if where, part := b.Marker("config"); part && where != "" {
		path, found := strings.CutPrefix(where, "part")
		if path = strings.TrimSpace(path); !found {
			return fmt.Errorf("the marker says %q: <!-- config: part of indices[] -->", where)
		}
		var err error
		if text, err = Complete(text, strings.TrimSpace(strings.TrimPrefix(path, "of "))); err != nil {
			return fmt.Errorf("the block %w", err)
		}
	}
	if err := g.Check(text); err != nil {
		return fmt.Errorf("the configuration is wrong: %w", err)
	}
	return nil
}

// values checks the configuration in values of the chart.
func (g *Program) values(b *Block, kind string) error {
	var values struct{ Config map[string]any }
	if kind != "values" {
		return nil
	}
	if err := yaml.Unmarshal([]byte(b.Text), &values); err != nil || values.Config == nil {
		return err
	}
	config, err := yaml.Marshal(values.Config)
	if err != nil {
		return err
	}
	if err := g.Check(string(config)); err != nil {
		return fmt.Errorf("the configuration is wrong: %w", err)
	}
	return nil
}
