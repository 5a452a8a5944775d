package onboard

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/neardup/sidecar/internal/config"
	"github.com/neardup/sidecar/internal/kind"
	"github.com/neardup/sidecar/internal/terminal"
)

// product returns what the engine is, by its own words: they are no lines of our file.
func (n *survey) product() string {
	return comment(strings.TrimSpace(n.is.Name + " " + n.is.Version))
}

// untested returns a warning of a version that we do not test against, or nothing.
func (n *survey) untested() string {
	k := kind.Of(n.engine.Kind)
	if n.is.Version == "" || k.Tested(n.is.Version) {
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

// told returns what init found and did, for a person.
func (n *survey) told() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s\n", n.product(), n.engine.URLs[0])
	b.WriteString(listed(n.candidates, false))
	if len(n.candidates) == 0 {
		fmt.Fprintf(&b, "  holds no index with texts yet: the rule that is written is an example\n")
	}
	if len(n.left) > 0 {
		var names []string
		for _, c := range n.left {
			names = append(names, c.match+" ("+c.why+")")
		}
		fmt.Fprintf(&b, "  left alone: %s\n", few(names))
	}
	notes := append(n.notes, n.untested())
	if n.typed {
		notes = append(notes, "what you typed is kept nowhere: before setup, reindex and doctor, "+toExport(n.engine.Kind))
	}
	for _, note := range notes {
		if note != "" {
			fmt.Fprintf(&b, "note: %s\n", note)
		}
	}
	if n.file == toOutput {
		return b.String()
	}
	fmt.Fprintf(&b, "%s is written. What next:\n", n.file)
	for _, step := range [][2]string{
		{ourselves("serve", n.file), "listens at " + n.engine.Listen},
		{ourselves("setup", n.file), "declares a field for sketches; until then and reindex, searches compute them"},
		{ourselves("reindex", n.file), "stores the sketches of the documents that are there"},
		{ourselves("doctor", n.file), "looks whether all is well, and says what to do"},
	} {
		if n.options.Serve && step[0] == ourselves("serve", n.file) {
			continue
		}
		fmt.Fprintf(&b, "  %-40s  # %s\n", step[0], step[1])
	}
	return b.String()
}

// invitation returns what to try once the sidecar listens.
func (n *survey) invitation() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nThe sidecar listens at %s. Try, from another terminal:\n  %s\n", n.engine.Listen, n.search())
	fmt.Fprintf(&b, "and look at http://%s/. Ctrl-C ends it.\n", n.admin)
	return b.String()
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

// written returns the configuration.
func (n *survey) written() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	file := n.file
	if file == toOutput {
		file = config.DefaultFile
	}
	line("# Written by `sidecar init` for %s at %s. It is yours now: change what you like.", n.product(), n.engine.URLs[0])
	if warning := n.untested(); warning != "" {
		line("# %s", warning)
	}
	line("#")
	line("#   %-44s says what is wrong with this file, or sums it up", ourselves("config check", file))
	line("#   %-44s runs with it, and takes a change over by itself", ourselves("serve", file))
	line("#   %-44s looks at engine, indices and sidecar, and says what to do", ourselves("doctor", file))
	line("#")
	line("# What stands behind a # is a choice that you have. Every key there is, with its default: config.yaml in the repository.")
	line("")
	line("# Where the sidecar tells about itself, and shows searches without and with it side by side: http://%s/", n.admin)
	line("admin: %s", n.admin)
	line("")
	line("# Where strangers write documents, set a secret text before the first `sidecar reindex`: who does not know it can't craft a")
	line("# document that folds another one away. Later it costs another reindex.")
	line("#sketch:")
	line("#  seed: ${NEARDUP_SEED}")
	line("")
	line("engines:")
	line("  - # Clients connect here in place of %s. Nothing else in them changes, their credentials neither.", n.engine.URLs[0])
	listen := n.engine.Listen
	if strings.HasPrefix(listen, "[") || strings.HasPrefix(listen, ":") {
		listen = config.Quote(listen)
	}
	line("    listen: %s", listen)
	line("    kind: %s", n.engine.Kind)
	line("    urls: [%s]", config.Quote(n.engine.URLs[0]))
	n.writeLogin(line)
	if kind.Of(n.engine.Kind).Sniffed {
		line("")
		line("    # For clients that ask for the addresses of the engine's nodes (sniffing) and would then go past the sidecar.")
		line("    #rewrite_sniffing: true")
	}
	line("")
	line("    # Which documents are compared. The first entry that matches an index is its rule; what none matches passes untouched.")
	line("    indices:")
	for i, c := range n.candidates {
		c.write(line, i == 0)
	}
	if len(n.candidates) == 0 {
		line("      # The engine holds no index with texts yet. This is an example: put in its place what it is going to hold.")
		line("      - match: news-*")
		line("        fields: [title, body]")
	}
	n.writeLeft(line)
	return b.String()
}

// liner is what writes a line.
type liner func(format string, args ...any)

// writeLogin writes the sections credentials and tls.
func (n *survey) writeLogin(line liner) {
	line("")
	line("    # What `sidecar setup`, `reindex` and other jobs log in with. Searches and writes carry their client's own and never these.")
	values := map[string]string{
		"username": "${" + userVariable + ":-}", "password": "${" + passwordVariable + ":-}", "api_key": "${" + keyVariable + ":-}",
	}
	keys := []string{"api_key"}
	if slices.Contains(n.variables, userVariable) || len(n.variables) == 0 && !kind.Of(n.engine.Kind).KeysOnly {
		keys = []string{"username", "password"}
	}
	mark := ""
	if len(n.variables) == 0 {
		mark = "#"
	}
	line("    %scredentials:", mark)
	for _, key := range keys {
		line("    %s  %s: %s", mark, key, values[key])
	}
	writeTLS(n.engine.TLS, line)
}

// writeTLS writes the section where something of it is set.
func writeTLS(c config.TLS, line liner) {
	if c == (config.TLS{}) {
		return
	}
	line("")
	line("    tls:")
	if c.CAFile != "" {
		line("      # The certificates by which the engine is trusted.")
		line("      ca_file: %s", config.Quote(c.CAFile))
	}
	if c.CertFile != "" {
		line("      # What the engine is shown.")
		line("      cert_file: %s", config.Quote(c.CertFile))
		line("      key_file: %s", config.Quote(c.KeyFile))
	}
	if c.InsecureSkipVerify {
		line("      # Any certificate is trusted. Only to try something out: name its authority in ca_file.")
		line("      insecure_skip_verify: true")
	}
}

// write writes the rule of a candidate, and why it is so. The first of them says what every rule can have.
func (c *candidate) write(line liner, first bool) {
	t := &c.texts
	line("      # %s: %s.", comment(c.match), cmp.Or(c.sized(), "not counted"))
	if names := c.shown(); names != "" {
		line("      # %s", names)
	}
	switch {
	case t.unread != "":
		line("      # Its documents could not be read (%s),", comment(t.unread))
		line("      # so the fields are chosen by their names: see that they are those with the texts.")
	case t.looked == 0 && c.documents > 0:
		line("      # Its documents show no text (is their source kept?), and without one there is no sketch. The fields are chosen by their names.")
	case t.looked == 0:
		line("      # There is no document to look at, so the fields are chosen by their names: see that they hold the texts.")
	default:
		line("      # %s", c.foundAlike())
		line("      #")
		c.table(line)
	}
	if t.html {
		line("      # The texts are HTML; its tags never count. For whole pages, with menus and footers: sketch: {content: useful}")
	}
	line("      - match: %s", config.Quote(c.match))
	var fields []string
	for _, f := range t.chosen {
		fields = append(fields, config.Quote(f))
	}
	if first {
		line("        # Compared in this order. After a change of them: `sidecar reindex`.")
	}
	line("        fields: [%s]", strings.Join(fields, ", "))
	c.choices(line, first)
	line("")
}

// shown returns the names behind a pattern, and by which clients know them.
func (c *candidate) shown() string {
	var names, aliases []string
	for _, m := range c.members {
		names = append(names, m.Name)
		for _, a := range m.Aliases {
			if !slices.Contains(aliases, a) {
				aliases = append(aliases, a)
			}
		}
	}
	text := ""
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

// table writes what was found in the fields, as far as it is of interest.
func (c *candidate) table(line liner) {
	const most = 12
	t, width := &c.texts, len("field")
	rows := t.fields[:min(len(t.fields), most)]
	for _, f := range rows {
		width = max(width, len(comment(f.name)))
	}
	line("      #   %-*s  has text  words", width, "field")
	for _, f := range rows {
		what := "compared"
		if f.why != "" {
			what = "left out: " + comment(f.why)
		}
		line("      #   %-*s  %8s  %5d  %s", width, comment(f.name), percent(f.in, t.looked), f.average(), what)
	}
	if more := len(t.fields) - len(rows); more > 0 {
		line("      #   and %d more with less text", more)
	}
	line("      #")
}

// choices writes what else a rule can say, by what the index has for it.
func (c *candidate) choices(line liner, first bool) {
	t := &c.texts
	if first {
		line("        # How readily hits fold: default; safe, only what is nearly the same; thorough, more, and wrong more often.")
	}
	line("        preset: default")
	if first && (t.date != "" || t.host != "" || t.vector != "") {
		line("        # Or what kind of duplicates they are, in place of that line (docs/presets.md):")
	}
	if t.date != "" {
		line("        #preset: news        # the same report in several papers, within three days")
		line("        #preset: versions    # of the versions of a text, the newest")
		line("        #date_field: %s", config.Quote(t.date))
	}
	if t.host != "" {
		line("        #preset: mirrors     # the same text on different hosts")
		line("        #host_field: %s", config.Quote(t.host))
	}
	if t.vector != "" {
		line("        #preset: chunks      # passages of a text, as they are found by vectors such as %s", comment(t.vector))
	}
	if !first {
		return
	}
	line("        # From which agreement on hits fold: above 0, at most 1. A search can ask for another: neardup_threshold=0.8")
	line("        #threshold: %v", config.DefaultIndex().Threshold)
	line("        # How many of a search's best hits are compared.")
	line("        #window: %d", config.DefaultWindow)
	line("        # Answer as the engine does, and only say in the header Neardup what would have been folded.")
	line("        #dry_run: true")
}

// writeLeft writes what was left alone, and why.
func (n *survey) writeLeft(line liner) {
	if len(n.left) == 0 {
		return
	}
	const most = 30
	line("      # Left alone:")
	for _, c := range n.left[:min(len(n.left), most)] {
		line("      #   %s: %s", comment(c.match), comment(c.why))
	}
	if more := len(n.left) - most; more > 0 {
		line("      #   and %d more", more)
	}
}

// comment returns a text as it can stand in one line of a comment: YAML ends lines at more than line ends, and takes no control characters.
func comment(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || slices.Contains([]rune{0x2028, 0x2029, 0xfeff, 0xfffe, 0xffff}, r) {
			return ' '
		}
		return r
	}, text)
}
