package onboard

import (
	"cmp"
	"embed"
	"fmt"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"text/template"
	"unicode"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/terminal"
)

// product returns what the engine is, by its own words: they are no lines of our file.
func (n *survey) product() string {
	return comment(strings.TrimSpace(n.recognized.Name + " " + n.recognized.Version))
}

// untested returns a warning of a version that we do not test against, or nothing.
func (n *survey) untested() string {
	k := kind.Of(n.engine.Kind)
	if n.recognized.Version == "" || k.Tested(n.recognized.Version) {
		return ""
	}
	return fmt.Sprintf("%s is not tested: %s is. Try what your clients do before you rely on it.", n.product(), k.TestedVersions())
}

// sized returns what a candidate holds, in words.
func (c *candidate) sized() string {
	var parts []string
	switch {
	case len(c.members) > 1 && c.members[0].Stream:
		parts = append(parts, terminal.Count(len(c.members), "data stream"))
	case len(c.members) > 1:
		parts = append(parts, strings.Replace(terminal.Count(len(c.members), "index"), "indexs", "indices", 1))
	case len(c.members) == 1 && c.members[0].Stream:
		parts = append(parts, "a data stream")
	}
	if c.documents >= 0 {
		parts = append(parts, terminal.Count(c.documents, "document"))
	}
	return strings.Join(parts, ", ")
}

// duplicated says how many near-duplicates there are among the documents that were read.
func (t *texts) duplicated() string {
	switch {
	case t.looked == 0:
		return ""
	case t.duplicates == 0:
		return fmt.Sprintf("no near-duplicates among %d", t.looked)
	}
	return fmt.Sprintf("%d of %d near-duplicates", t.duplicates, t.looked)
}

// listed returns candidates in a line each, with columns: the number where they are numbered, what matches, what it holds, which
// fields are compared, and how many near-duplicates there are.
func listed(list []*candidate, numbered bool) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for i, c := range list {
		number := ""
		if numbered {
			number = fmt.Sprintf("%d\t", i+1)
		}
		_, _ = fmt.Fprintf(w, "  %s%s\t%s\t%s\t%s\n", // a builder takes all
			number, comment(c.match), c.sized(), comment(strings.Join(c.texts.chosen, ", ")), c.texts.duplicated())
	}
	_ = w.Flush() // as above
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// search returns a command that searches through the sidecar.
func (n *survey) search() string {
	host, port, _ := net.SplitHostPort(n.engine.Listen)
	if config.IsThisHost(host) {
		host = "localhost"
	}
	index, example := "news", &texts{chosen: []string{"title", "body"}, duplicates: -1}
	for _, c := range n.candidates {
		if c.texts.duplicates <= example.duplicates {
			continue
		}
		index, example = c.match, &c.texts
		if kind.Of(n.engine.Kind).KeysOnly { // which takes no pattern
			index = c.members[len(c.members)-1].Name
		}
	}
	r := kind.Of(n.engine.Kind).Words(index, example.chosen, cmp.Or(example.word, "example"))
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

var templates = template.Must(template.New("").Funcs(template.FuncMap{"comment": comment, "quote": config.Quote}).ParseFS(templateFiles, "*.tmpl"))

// ruleText is what the configuration says of a candidate.
type ruleText struct {
	Match, Sized, Names, Fields, Date, Host, Vector string

	Found []string // lines on what was found in its documents
	HTML  bool
}

// write fills a template in: the configuration, the summary of what was found and done, or what to try once the sidecar listens.
func (n *survey) write(name string) (string, error) {
	k := kind.Of(n.engine.Kind)
	listen := n.engine.Listen
	if strings.HasPrefix(listen, "[") || strings.HasPrefix(listen, ":") {
		listen = config.Quote(listen)
	}
	var rules []ruleText
	for _, c := range n.candidates {
		rules = append(rules, c.text())
	}
	const most = 30
	var left, inShort []string
	for _, c := range n.skipped {
		left, inShort = append(left, comment(c.match)+": "+comment(c.why)), append(inShort, c.match+" ("+c.why+")")
	}
	if more := len(left) - most; more > 0 {
		left = append(left[:most], fmt.Sprintf("and %d more", more))
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
		"TLS": n.engine.TLS, "Sniffed": k.Sniffed(), "Rules": rules, "Left": left, "LeftInShort": few(inShort), "Export": export, "Notes": n.notes,
		"Threshold": config.DefaultIndex().Threshold, "Window": config.DefaultWindow, "Search": n.search, "Table": listed(n.candidates, false),
	})
	return b.String(), err
}

// text returns what to say of a candidate, and why its rule is so.
func (c *candidate) text() ruleText {
	t := &c.texts
	r := ruleText{
		Match: c.match, Sized: cmp.Or(c.sized(), "not counted"), Names: c.shown(), Date: t.date, Host: t.host, Vector: t.vector, HTML: t.html,
	}
	switch {
	case t.unread != "":
		r.Found = []string{
			"Its documents could not be read (" + comment(t.unread) + "),",
			"so the fields are chosen by their names: see that they are those with the texts.",
		}
	case t.looked == 0 && c.documents > 0:
		r.Found = []string{"Its documents show no text (is their source kept?), and without one there is no sketch. The fields are chosen by their names."}
	case t.looked == 0:
		r.Found = []string{"There is no document to look at, so the fields are chosen by their names: see that they hold the texts."}
	default:
		r.Found = slices.Concat([]string{c.foundAlike(), ""}, t.table(), []string{""})
	}
	var fields []string
	for _, f := range t.chosen {
		fields = append(fields, config.Quote(f))
	}
	r.Fields = strings.Join(fields, ", ")
	return r
}

// shown returns the names behind a pattern, and by which clients know them.
func (c *candidate) shown() string {
	names, text := namesOf(c.members), ""
	var aliases []string
	for _, m := range c.members {
		for _, a := range m.Aliases {
			if !slices.Contains(aliases, a) {
				aliases = append(aliases, a)
			}
		}
	}
	if len(names) > 1 || len(names) == 1 && names[0] != c.match {
		slices.Reverse(names)
		text = "Now: " + few(names) + ". "
	}
	if len(aliases) > 0 {
		text += "Aliases that lead there: " + few(aliases) + "; rules go by the names of indices."
	}
	return comment(strings.TrimSpace(text))
}

// foundAlike says what the documents that were read have in common.
func (c *candidate) foundAlike() string {
	t := &c.texts
	all := t.looked == c.documents
	looked := fmt.Sprintf("Of %s chosen at random, ", terminal.Count(t.looked, "document"))
	if all {
		looked = "Of all of them, "
	}
	switch {
	case t.duplicates == 0 && all:
		return looked + "none is a near-duplicate of another one."
	case t.duplicates == 0:
		return looked + "none is a near-duplicate of another one among these; that is more likely among all."
	}
	return fmt.Sprintf("%s%d are near-duplicates of another one among these.", looked, t.duplicates)
}

// table returns what was found in the fields, as far as it is of interest, a line for each.
func (t *texts) table() []string {
	const most = 12
	width, rows := len("field"), t.fields[:min(len(t.fields), most)]
	for _, f := range rows {
		width = max(width, len(comment(f.name)))
	}
	lines := []string{fmt.Sprintf("  %-*s  has text  words", width, "field")}
	for _, f := range rows {
		what := "compared"
		if f.why != "" {
			what = "left out: " + comment(f.why)
		}
		lines = append(lines, fmt.Sprintf("  %-*s  %8s  %5d  %s", width, comment(f.name), percent(f.in, t.looked), f.average(), what))
	}
	if more := len(t.fields) - len(rows); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more with less text", more))
	}
	return lines
}

// comment returns a text that is safe in one line of a comment: YAML ends lines at more than line ends, and allows no control characters.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || slices.Contains([]rune{0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff}, r) {
			return ' '
		}
		return r
	}, text)
}
