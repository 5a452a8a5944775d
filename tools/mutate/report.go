package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// report prints the share that was noticed, by package, and each place that was not.
func report(w io.Writer, sites []*site, results map[int]*result) {
	type row struct{ places, short, long int }
	rows := map[string]*row{}
	for _, s := range sites {
		for _, name := range []string{s.Package, "~all"} {
			if rows[name] == nil {
				rows[name] = &row{}
			}
			rows[name].places++
			if res := results[s.ID]; res != nil && res.By != "" {
				rows[name].long++
				if !res.Long {
					rows[name].short++
				}
			}
		}
	}
	fmt.Fprintln(w, "\nnot noticed:")
	for _, s := range sites {
		if res := results[s.ID]; res == nil || res.By == "" {
			reached := 0
			if res != nil {
				reached = res.Reached
			}
			fmt.Fprintf(w, "%s:%d: %s (%d tests reach it)\n", s.File, s.Line, s.Break, reached)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\npackage\tbroken\tnoticed by make test\tby all that ran\t")
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		fmt.Fprintf(t, "%s\t%d\t%d (%.0f %%)\t%d (%.0f %%)\t\n", name, r.places, r.short, 100*float64(r.short)/float64(r.places), r.long, 100*float64(r.long)/float64(r.places))
	}
	t.Flush()
}
