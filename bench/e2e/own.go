package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/internal/measured"
)

// own measures the processor time of a collapsed search without HTTP, with the benchmarks of the packages.
func (b *bench) own() error {
	t := measured.Table{
		Name: "own", Title: "Our own processor time",
		Columns: []measured.Column{{Name: "own", Unit: "µs a search"}, {Name: "memory", Unit: "bytes a search"}, {Name: "allocations", Unit: "a search"}},
		Notes: []string{
			"A collapsed search without HTTP and compression: parsed, collapsed and spliced on one core, by `BenchmarkExchange`, with the garbage " +
				"collector at 400 %, where the sidecar has it. The reply has 50 hits and some 100 kB; " +
				"*deep* is page 50, behind 700 hits whose sketches alone are read.",
		},
	}
	for _, about := range []struct{ name, folder string }{{"Elasticsearch, OpenSearch", "elastic"}, {"Typesense", "typesense"}} {
		runs := []string{"-count", "6", "-benchtime", "0.5s"}
		if b.short {
			runs = []string{"-count", "1", "-benchtime", "1x"}
		}
		found, err := b.benchmarks(append([]string{"test", "-run", "^$", "-bench", "^BenchmarkExchange$", "-benchmem", "-cpu", "1"}, append(runs, "./adapters/"+about.folder)...))
		if err != nil {
			return err
		}
		for _, f := range found {
			row := measured.Row{What: f.name, Engine: about.name}
			row.Contenders = []measured.Contender{{Name: ours, Figures: map[string]float64{"own": median(f.micros), "memory": f.bytes, "allocations": f.allocations}}}
			v := over("own", "", "µs", f.micros)
			if !strings.HasPrefix(f.name, "deep") { // those pages are not what the target is about
				v = judged(within(v, 150), fmt.Sprintf("%.0f allocations of %.0f kB together", f.allocations, f.bytes/1000))
			}
			row.Verdicts = []measured.Verdict{v}
			t.Rows = append(t.Rows, row)
		}
	}
	b.report.Tables = append(b.report.Tables, t)
	return nil
}

// benchmark is what several runs of one have shown.
type benchmark struct {
	name               string
	micros             []float64 // of processor time
	bytes, allocations float64
}

// benchmarks runs go with arguments in the project's root and reads the benchmarks' lines.
func (b *bench) benchmarks(arguments []string) (list []benchmark, err error) {
	cmd := exec.CommandContext(b.ctx, "go", arguments...)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOGC=400")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(arguments, " "), err, out)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // BenchmarkExchange/folding=0 1234 5678 ns/op 9 B/op 1 allocs/op, perhaps with MB/s in between
		_, name, ok := strings.Cut(line, "BenchmarkExchange/")
		if !ok || len(fields) < 4 {
			continue
		}
		name, _, _ = strings.Cut(name, " ")
		name, _, _ = strings.Cut(name, "\t")
		i := slices.IndexFunc(list, func(f benchmark) bool { return f.name == name })
		if i < 0 {
			i, list = len(list), append(list, benchmark{name: name})
		}
		for k := 3; k < len(fields); k += 2 {
			v, err := strconv.ParseFloat(fields[k-1], 64)
			if err != nil {
				return nil, fmt.Errorf("read %q: %w", line, err)
			}
			switch fields[k] {
			case "cpu-µs/op":
				list[i].micros = append(list[i].micros, v)
			case "B/op":
				list[i].bytes = v
			case "allocs/op":
				list[i].allocations = v
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no benchmark in %q", out)
	}
	return list, nil
}
