package onboard

import (
	"cmp"
	"embed"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"unicode"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/terminal"
)

// product returns the name and version that the engine reports, safe for a comment.
func (n *survey) product() string {
	return comment(strings.TrimSpace(n.recognized.Name + " " + n.recognized.Version))
}

// untested returns a warning if the engine's version is not tested.
func (n *survey) untested() string {
	k := kind.Of(n.engine.Kind)
	if n.recognized.Version == "" || k.Tested(n.recognized.Version) {
		return ""
	}
	return fmt.Sprintf("%s is not tested: %s is. Try what your clients do before you rely on it.", n.product(), k.TestedVersions())
}

// Sized returns how many indices and documents a candidate has, in words.
func (c *candidate) Sized() string {
	var parts []string
	switch {
	case len(c.members) > 1 && c.members[0].Stream:
		parts = append(parts, terminal.Count(len(c.members), "data stream"))
	case len(c.members) > 1:
		parts = append(parts, terminal.Count(len(c.members), "index", "indices"))
	case len(c.members) == 1 && c.members[0].Stream:
		parts = append(parts, "a data stream")
	}
	if c.Documents >= 0 {
		parts = append(parts, terminal.Count(c.Documents, "document"))
	}
	return strings.Join(parts, ", ")
}

// duplicated says how many near-duplicates there are among the documents that were read.
func (t *texts) duplicated() string {
	switch {
	case t.Looked == 0:
		return ""
	case t.Duplicates == 0:
		return fmt.Sprintf("no near-duplicates among %d", t.Looked)
	}
	return fmt.Sprintf("%d of %d near-duplicates", t.Duplicates, t.Looked)
}

// lineEnds are ends of lines with the spaces before them.
var lineEnds = regexp.MustCompile(` *\n`)

// listed returns a table of candidates: their numbers if asked for, pattern, size, fields, and how many near-duplicates there are.
func listed(list []*candidate, numbered bool) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, c := range list {
		number := ""
		if numbered {
			number = fmt.Sprintf("%d\t", i+1)
		}
		_, _ = fmt.Fprintf(w, "  %s%s\t%s\t%s\t%s\n", // a builder takes all
			number, comment(c.Match), c.Sized(), comment(strings.Join(c.Chosen, ", ")), c.duplicated())
	}
	_ = w.Flush() // as above
	return lineEnds.ReplaceAllString(b.String(), "\n")
}

// search returns a curl command that searches through the sidecar.
func (n *survey) search() string {
	host, port, _ := net.SplitHostPort(n.engine.Listen)
	if config.IsThisHost(host) {
		host = "localhost"
	}
	index, example := "news", &texts{Chosen: []string{"title", "body"}, Duplicates: -1}
	for _, c := range n.candidates {
		if c.Duplicates <= example.Duplicates {
			continue
		}
		index, example = c.Match, &c.texts
		if kind.Of(n.engine.Kind).KeysOnly { // Typesense has no patterns
			index = c.members[len(c.members)-1].Name
		}
	}
	r := kind.Of(n.engine.Kind).Words(index, example.Chosen, cmp.Or(example.word, "example"))
	login := ""
	switch {
	case slices.Contains(n.variables, userVariable):
		login = "-u " + shellWord(n.engine.Credentials.Username.Reveal()) + " "
	case len(n.variables) > 0:
		k := kind.Of(n.engine.Kind)
		login = fmt.Sprintf("-H \"%s: %s$%s\" ", k.KeyHeader, k.KeyScheme, keyVariable)
	}
	return fmt.Sprintf("curl %s'%s%s?%s'", login, net.JoinHostPort(host, port), r.Path, r.RawQuery)
}

//go:embed *.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"comment": comment, "quote": config.Quote, "count": terminal.Count,
}).ParseFS(templateFiles, "*.tmpl"))

// write executes a template: for the configuration, the summary, or the greeting once the sidecar listens.
func (n *survey) write(name string) (string, error) {
	k := kind.Of(n.engine.Kind)
	listen := n.engine.Listen
	if strings.HasPrefix(listen, "[") || strings.HasPrefix(listen, ":") {
		listen = config.Quote(listen)
	}
	const most = 30
	var skipped, brief []string
	for _, c := range n.skipped {
		skipped, brief = append(skipped, comment(c.Match)+": "+comment(c.why)), append(brief, c.Match+" ("+c.why+")")
	}
	if more := len(skipped) - most; more > 0 {
		skipped = append(skipped[:most], fmt.Sprintf("and %d more", more))
	}
	export := ""
	if n.typed {
		export = toExport(n.engine.Kind)
	}
	var b strings.Builder
	err := templates.ExecuteTemplate(&b, name, map[string]any{
		"Product": n.product(), "At": n.engine.URLs[0], "Untested": n.untested(), "Admin": n.admin, "Listen": listen, "Address": n.engine.Listen,
		"Kind": k.Name, "File": n.file, "ToFile": n.file != standardOutput, "Serve": n.options.Serve,
		"Command":   func(command string) string { return commandLine(command, n.file) },
		"Variables": n.variables, "ByUser": slices.Contains(n.variables, userVariable) || len(n.variables) == 0 && !k.KeysOnly,
		"TLS": n.engine.TLS, "Sniffed": k.Sniffed(), "Rules": n.candidates, "Skipped": skipped, "SkippedBriefly": few(brief), "Export": export, "Notes": n.notes,
		"Threshold": config.DefaultIndex().Threshold, "Window": config.DefaultWindow, "Search": n.search, "Table": listed(n.candidates, false),
	})
	return b.String(), err
}

// Shown returns the indices that a pattern matches now, and their aliases.
func (c *candidate) Shown() string {
	names, text := namesOf(c.members), ""
	var aliases []string
	for _, m := range c.members {
		for _, a := range m.Aliases {
			if !slices.Contains(aliases, a) {
				aliases = append(aliases, a)
			}
		}
	}
	if len(names) > 1 || len(names) == 1 && names[0] != c.Match {
		slices.Reverse(names)
		text = "Now: " + few(names) + ". "
	}
	if len(aliases) > 0 {
		text += "Aliases that lead there: " + few(aliases) + "; rules match the names of indices."
	}
	return comment(strings.TrimSpace(text))
}

// Table returns a table of the fields that were read.
func (t *texts) Table() []string {
	const most = 12
	width, rows := len("field"), t.read[:min(len(t.read), most)]
	for _, f := range rows {
		width = max(width, len(comment(f.name)))
	}
	lines := []string{fmt.Sprintf("  %-*s  has text  words", width, "field")}
	for _, f := range rows {
		what := "compared"
		if f.why != "" {
			what = "left out: " + comment(f.why)
		}
		lines = append(lines, fmt.Sprintf("  %-*s  %8s  %5d  %s", width, comment(f.name), percent(f.in, t.Looked), f.average(), what))
	}
	if more := len(t.read) - len(rows); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more with less text", more))
	}
	return lines
}

// comment makes a text safe for a comment in YAML, which has more line ends than \n and allows no control characters.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || slices.Contains([]rune{0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff}, r) {
			return ' '
		}
		return r
	}, text)
}
