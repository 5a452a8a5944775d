package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/neardup/sidecar/bench/internal/cost"
	"github.com/neardup/sidecar/bench/internal/peers"
)

// task is what a contender is asked for: the near-duplicates of a file. What it writes goes to a folder of its own.
type task struct {
	input, folder string
	documents     int
	words         int
	threshold     float64
}

// contender is one program with one setting.
type contender struct {
	name, settings string
	most           int // documents that it gets at most; 0 is any number
	command        func(t task) (*exec.Cmd, error)
	read           func(t task) (answer, error)
}

// answer is what a contender found. Programs that tell no clusters have copies alone, and those that tell no pairs have none.
type answer struct {
	clusters []int32
	copies   []bool
	pairs    []pair
}

// contendersOf are all of them. Those of others are installed first; who can't be had says why.
func contendersOf(sidecar, cache string) []contender {
	ours := func(name, settings, scheme string, most int, flags ...string) contender {
		return contender{"sidecar " + name, settings, most, func(t task) (*exec.Cmd, error) {
			config := filepath.Join(t.folder, "config.yaml")
			text := fmt.Sprintf("sketch: {words: %d%s}\n", t.words, scheme)
			arguments := append([]string{"cluster", "--output", filepath.Join(t.folder, "clusters.csv"), "--temp-dir", t.folder}, flags...)
			if name == "unseen" {
				arguments = []string{"unseen", "--output", filepath.Join(t.folder, "new.jsonl"), "--expect", strconv.Itoa(t.documents)}
			}
			arguments = append(arguments, "--config", config, "--fields", "text", "--threshold", fmt.Sprint(t.threshold), "--input", t.input)
			return exec.Command(sidecar, arguments...), os.WriteFile(config, []byte(text), 0o600)
		}, readClusters}
	}
	unseen := ours("unseen", "96 positions; passes what is new, makes no clusters", "", 0)
	unseen.read = readUnseen
	list := []contender{
		ours("cluster", "96 positions, the default", "", 0),
		ours("cluster, 256 positions", "", ", positions: 256", 0),
		ours("cluster, broder", "counts shingles: --algorithm broder --common 100", "", 20_000, "--algorithm", "broder", "--common", "100"),
		unseen,
	}
	python, pythonErr := peers.Python(cache, "clusters.txt")
	byPython := func(name, settings string, most int) contender {
		return contender{name, settings, most, func(t task) (*exec.Cmd, error) {
			return exec.Command(python, filepath.Join("peers", "clusters.py"), name, t.input, t.folder, strconv.Itoa(t.words),
				fmt.Sprint(t.threshold)), pythonErr
		}, readClusters}
	}
	rust, rustErr := peers.Rust(cache)
	return append(list,
		contender{"gaoya", "0.2.2, Rust: 128 positions, 32 bands of 4, compared by whole sketches; union-find is ours", 0, func(t task) (*exec.Cmd, error) {
			return exec.Command(filepath.Join(rust, "clusters"), t.input, t.folder, strconv.Itoa(t.words), fmt.Sprint(t.threshold)), rustErr
		}, readClusters},
		byPython("rensa", "0.5.0, Rust and Python: the same", 0),
		byPython("datasketch", "2.0.0, Python and NumPy: the same", 100_000),
		byPython("text-dedup", "0.4.0, Python and NumPy: 250 positions, bands by its own choice, links what shares one", 100_000),
		byPython("datatrove", "0.10.1, Python and NumPy: 112 positions, 14 bands of 8 whatever the threshold, links what shares one", 20_000),
	)
}

// readClusters reads clusters.csv, and pairs.csv where there is one.
func readClusters(t task) (a answer, err error) {
	a.clusters = make([]int32, t.documents)
	names, rows := map[string]int32{}, 0
	err = readRows(filepath.Join(t.folder, "clusters.csv"), func(id, cluster string) error {
		if id == "id" {
			return nil // the head of a table
		}
		i, err := numberOf(id, t)
		if err != nil {
			return err
		}
		if _, found := names[cluster]; !found {
			names[cluster] = int32(len(names))
		}
		a.clusters[i], rows = names[cluster], rows+1
		return nil
	})
	if err == nil && rows != t.documents {
		err = fmt.Errorf("%d of %d documents have a cluster", rows, t.documents)
	}
	if err != nil {
		return a, err
	}
	a.copies = copies(a.clusters)
	err = readRows(filepath.Join(t.folder, "pairs.csv"), func(one, other string) error {
		i, err := numberOf(one, t)
		if err != nil {
			return err
		}
		j, err := numberOf(other, t)
		a.pairs = append(a.pairs, pair{min(i, j), max(i, j)})
		return err
	})
	if os.IsNotExist(err) {
		err = nil
	}
	return a, err
}

// readRows reads the first two columns of a file.
func readRows(file string, each func(a, b string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		columns := append(strings.SplitN(lines.Text(), ",", 3), "")
		if err := each(columns[0], columns[1]); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return lines.Err()
}

func numberOf(id string, t task) (int32, error) {
	i, err := strconv.Atoi(id)
	if err == nil && (i < 0 || i >= t.documents) {
		err = fmt.Errorf("there is no document %d", i)
	}
	return int32(i), err
}

// readUnseen reads which documents were passed on: the others count as copies.
func readUnseen(t task) (a answer, err error) {
	f, err := os.Open(filepath.Join(t.folder, "new.jsonl"))
	if err != nil {
		return a, err
	}
	defer f.Close()
	a.copies = make([]bool, t.documents)
	for i := range a.copies {
		a.copies[i] = true
	}
	for lines := json.NewDecoder(bufio.NewReaderSize(f, 1<<20)); lines.More(); {
		var d document
		if err := lines.Decode(&d); err != nil {
			return a, err
		}
		i, err := numberOf(d.ID, t)
		if err != nil {
			return a, err
		}
		a.copies[i] = false
	}
	return a, nil
}

// run has a contender do a task and reads what it wrote.
func (c contender) run(ctx context.Context, t task) (took cost.Cost, a answer, err error) {
	folder, err := os.MkdirTemp(t.folder, "run-")
	if err != nil {
		return took, a, err
	}
	defer os.RemoveAll(folder)
	t.folder = folder
	cmd, err := c.command(t)
	if err != nil {
		return took, a, err
	}
	if took, err = cost.Of(ctx, cmd, nil); err != nil {
		return took, a, err
	}
	a, err = c.read(t)
	return took, a, err
}
