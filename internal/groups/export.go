package groups

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/neardup/sidecar/internal/decided"
	"github.com/neardup/sidecar/internal/localpage"
	"github.com/neardup/sidecar/jobs/cleanup"
)

// exported returns a group without the documents that a person decided to be different, and without what only the page shows.
func (g *Groups) exported(n int, found cleanup.Group) cleanup.Group {
	found.Stays.Fields, found.Stays.Title = nil, ""
	var goes []cleanup.Member
	for _, m := range found.Goes {
		m.Fields, m.Title = nil, ""
		if g.verdict(n, m.ID) != decided.Different {
			goes = append(goes, m)
		}
	}
	found.Goes = goes
	return found
}

// filterOf returns the filter of a request's query.
func (g *Groups) filterOf(r *http.Request) Filter {
	q := r.URL.Query()
	return Filter{Field: q.Get("field"), Value: q.Get("value"), From: q.Get("from"), To: q.Get("to"), DateField: g.Job.Rule.DateField}
}

// plan sends a clean-up plan for the groups that pass the filter, as a file.
func (g *Groups) plan(w http.ResponseWriter, r *http.Request) {
	f := g.filterOf(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	dir, err := os.MkdirTemp(g.Dir, "neardup-plan")
	if err != nil {
		localpage.Refuse(w, http.StatusInternalServerError, err)
		return
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "plan.json")
	_, err = cleanup.WritePlan(name, g.Plan, func(yield func(cleanup.Group) error) (cleanup.Counts, error) {
		c := g.Plan.Counts
		c.Stay, c.Go = 0, 0
		if !f.empty() {
			c.Hosts = nil // they count the groups that the filter leaves out, too
		}
		err := g.spool.each(f, func(n int, found cleanup.Group) error {
			if g.out[n] {
				return nil
			}
			before := len(found.Goes)
			found = g.exported(n, found)
			c.Others += before - len(found.Goes)
			if len(found.Goes) == 0 {
				c.Others++
				return nil
			}
			c.Stay++
			c.Go += len(found.Goes)
			return yield(found)
		})
		return c, err
	})
	if err != nil {
		localpage.Refuse(w, http.StatusInternalServerError, err)
		return
	}
	file, err := os.Open(name)
	if err != nil {
		localpage.Refuse(w, http.StatusInternalServerError, err)
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = io.Copy(w, file) // an error means that the client has disconnected
}

// export sends the groups that pass the filter: as CSV, JSON or YAML.
func (g *Groups) export(w http.ResponseWriter, r *http.Request) {
	f := g.filterOf(r)
	g.mu.Lock()
	defer g.mu.Unlock()
	out := bufio.NewWriterSize(w, 1<<16)
	switch form := r.URL.Query().Get("form"); form {
	case "csv":
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		rows := csv.NewWriter(out)
		_ = rows.Write([]string{"id", "group", "stays", "agreement", "host", "why"})
		_ = g.spool.each(f, func(n int, found cleanup.Group) error {
			found = g.exported(n, found)
			number := strconv.Itoa(n + 1)
			_ = rows.Write([]string{found.Stays.ID, number, "true", "", found.Stays.Host, found.Why})
			for _, m := range found.Goes {
				if err := rows.Write([]string{m.ID, number, "false", strconv.FormatFloat(m.Agreement, 'f', 4, 64), m.Host, ""}); err != nil {
					return err
				}
			}
			return nil
		})
		rows.Flush()
	case "json":
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(out, "[\n")
		separator := ""
		_ = g.spool.each(f, func(n int, found cleanup.Group) error {
			line, err := json.Marshal(g.exported(n, found))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "%s%s", separator, line)
			separator = ",\n"
			return err
		})
		_, _ = io.WriteString(out, "]\n")
	case "yaml":
		w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
		_, _ = io.WriteString(out, "# groups of near-duplicates\n")
		_ = g.spool.each(f, func(n int, found cleanup.Group) error { return yamlGroup(out, g.exported(n, found)) })
	default:
		localpage.Refuse(w, http.StatusBadRequest, fmt.Errorf("form: %q: use csv, json or yaml", form))
		return
	}
	_ = out.Flush() // an error means that the client has disconnected
}

// yamlGroup writes a group in YAML. Texts are JSON strings, which YAML can read.
func yamlGroup(w io.Writer, g cleanup.Group) error {
	quoted := func(text string) []byte {
		q, _ := json.Marshal(text) // a string never fails
		return q
	}
	if _, err := fmt.Fprintf(w, "- cluster: %s\n  stays: %s\n  why: %s\n  goes:\n", quoted(g.Cluster), quoted(g.Stays.ID), quoted(g.Why)); err != nil {
		return err
	}
	for _, m := range g.Goes {
		if _, err := fmt.Fprintf(w, "  - {id: %s, agreement: %.4f}\n", quoted(m.ID), m.Agreement); err != nil {
			return err
		}
	}
	return nil
}
