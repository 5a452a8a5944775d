package try

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"io/fs"
)

//go:embed report.html
var reportHTML string

var page = template.Must(template.New("report.html").Funcs(template.FuncMap{
	"letter": func(side int) string { return string(rune('A' + side)) },
	"ms":     ms,
	"kept":   func(p Page) int { return p.Hits - p.New },
	"times": func(p Page, r Row) map[string]Times {
		return map[string]Times{"Time": p.Times, "Without neardup": r.Plain}
	}, // templates range over a map in the order of its keys
}).Parse(reportHTML))

// HTML writes the report as one file, without scripts. styles must hold the playground's style.css and queries.css.
func (r *Report) HTML(w io.Writer, styles fs.FS) error {
	var style []byte
	for _, name := range []string{"style.css", "queries.css"} {
		text, err := fs.ReadFile(styles, name)
		if err != nil {
			return err
		}
		style = append(style, text...)
	}
	sum := sha256.Sum256(style)
	policy := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
	return page.Execute(w, struct {
		*Report
		Policy string
		Style  template.CSS
	}{r, policy, template.CSS(style)})
}
