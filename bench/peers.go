package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/neardup/sidecar/bench/internal/corpora"
	"github.com/neardup/sidecar/bench/internal/peers"
)

// patience is how long a peer may take over one answer.
const patience = 3 * time.Minute

// family is a group of peers that one process runs. The process reads requests from its standard input and writes answers to its
// standard output, one a line; the protocol is at the top of each program in peers/.
type family struct {
	prepare func(cache string) (*exec.Cmd, error)
	members []contender
}

func families() []family {
	return []family{
		{prepareRust, []contender{
			{name: lshdedup, madeOf: "Rust", notes: "splits at white space; keeps case and punctuation; 32 bits a position"},
			{name: "gaoya", madeOf: "Rust", notes: "`MinHasher32` over its `whitespace_split` of lower-cased text " +
				"(ASCII punctuation alone cuts); 32 bits a position"},
			{name: "txtfp", madeOf: "Rust", limit: 8e6, notes: "NFKC, case folding, UAX #29: the job that is closest to ours; " +
				"XXH3, double hashing"},
		}},
		{preparePython, []contender{
			{name: daft, madeOf: "Rust, Python front", notes: "`minhash`, xxhash3_64; the text lies ready in a column; " +
				"splits at spaces; keeps case and punctuation; 32 bits a position"},
			{name: daftFull, madeOf: "Rust, Python front", notes: "the same after `normalize` (lower case, punctuation, white space)"},
			{name: "rensa", madeOf: "Rust, Python front", limit: 6e6, notes: "`RMinHash`, all shingles (its fast path samples them); " +
				"no tokeniser: `\\w+` of lower-cased text in Python; 32 bits a position"},
			{name: "datasketch", madeOf: "Python, NumPy", limit: 4e6, notes: "`MinHash.bulk`, xxh32; " +
				"no tokeniser: the same as for rensa; 32 bits a position"},
		}},
		{prepareLucene, []contender{
			{name: lucene, madeOf: "Java", limit: 2e6, notes: "`StandardTokenizer`, `LowerCaseFilter`, `ShingleFilter`, " +
				"`MinHashFilter` of 1 hash × 128 buckets, with rotation"},
			{name: "Lucene 128x1", madeOf: "Java", limit: 4e5, notes: "the same of 128 hashes × 1 bucket"},
		}},
	}
}

// startPeers prepares and starts every family. Members of one that can't be had are returned all the same, as absent.
func startPeers(cache string) (peers []contender, stop func()) {
	var running []*process
	for _, f := range families() {
		p, err := start(f.prepare, cache)
		if err != nil {
			fmt.Fprintln(os.Stderr, "absent:", err)
		} else {
			running = append(running, p)
		}
		for _, m := range f.members {
			if m.absent = err; err == nil {
				m.pass, m.agree = p.pass(m.name), p.agree(m.name)
			}
			peers = append(peers, m)
		}
	}
	return peers, func() {
		for _, p := range running {
			p.stop()
		}
	}
}

// process is the running program of a family.
type process struct {
	command  *exec.Cmd
	requests io.WriteCloser
	answers  *bufio.Scanner
}

func start(prepare func(cache string) (*exec.Cmd, error), cache string) (*process, error) {
	c, err := prepare(cache)
	if err != nil {
		return nil, err
	}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &process{command: c, requests: in, answers: bufio.NewScanner(out)}, nil
}

// stop lets the program end by itself, as its input does.
func (p *process) stop() {
	_ = p.requests.Close()
	_ = p.command.Wait()
}

// ask sends a request and returns the numbers of the answer. A program that keeps silent for too long is ended.
func (p *process) ask(wanted int, fields ...string) ([]float64, error) {
	late := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() })
	defer late.Stop()
	if _, err := fmt.Fprintln(p.requests, strings.Join(fields, "\t")); err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	if !p.answers.Scan() {
		return nil, errors.Join(errors.New("the program ended without an answer"), p.answers.Err())
	}
	answer := strings.Split(p.answers.Text(), "\t")
	if answer[0] != "ok" || len(answer) != wanted+1 {
		return nil, errors.New(strings.Join(answer, " "))
	}
	values := make([]float64, wanted)
	for i := range values {
		var err error
		if values[i], err = strconv.ParseFloat(answer[i+1], 64); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (p *process) pass(name string) func(corpus, int) (float64, error) {
	return func(on corpus, documents int) (float64, error) {
		values, err := p.ask(2, "time", name, strconv.Itoa(documents), on.Path)
		if err != nil {
			return 0, err
		}
		return max(values[0], values[1]), nil
	}
}

func (p *process) agree(name string) func(corpus) (float64, error) {
	return func(pairs corpus) (float64, error) {
		values, err := p.ask(1, "agree", name, pairs.Path)
		if err != nil {
			return 0, err
		}
		return values[0], nil
	}
}

func prepareRust(cache string) (*exec.Cmd, error) {
	folder, err := peers.Rust(cache)
	if err != nil {
		return nil, err
	}
	return exec.Command(filepath.Join(folder, "peers")), nil
}

func preparePython(cache string) (*exec.Cmd, error) {
	python, err := peers.Python(cache, "requirements.txt")
	if err != nil {
		return nil, err
	}
	return exec.Command(python, filepath.Join("peers", "peers.py")), nil
}

// prepareLucene fetches the jars through Maven; java compiles the one source file as it starts.
func prepareLucene(cache string) (*exec.Cmd, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return nil, err
	}
	project := filepath.Join("peers", "lucene", "pom.xml")
	folder, err := peers.Once(cache, "lucene", project, func(folder string) error {
		return corpora.Command("", nil, "mvn", "-q", "-f", project, "dependency:copy-dependencies", "-DoutputDirectory="+folder)
	})
	if err != nil {
		return nil, err
	}
	return exec.Command("java", "-Xmx1g", "-XX:+UseSerialGC", "-XX:ActiveProcessorCount=1", "-cp", filepath.Join(folder, "*"),
		filepath.Join("peers", "lucene", "Peers.java")), nil
}
