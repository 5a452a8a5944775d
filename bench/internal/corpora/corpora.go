// Package corpora has the texts of the benchmarks: it makes or fetches what the cache lacks, and loads it.
package corpora

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed corpus.py
var maker []byte

// Corpus is a list of documents. Its file, which the peers read, has one document a line.
type Corpus struct {
	Name, Path string
	Text       string
	Documents  []string
}

// All returns the documents.
func (c Corpus) All() []string { return c.Documents }

// First returns how many documents lie in the first bytes of the corpus, one at least, and their size without line ends.
func (c Corpus) First(bytes int) (count, size int) {
	for _, d := range c.Documents {
		if count > 0 && size+len(d) > bytes {
			break
		}
		count, size = count+1, size+len(d)
	}
	return count, size
}

// Corpora are the corpora by name.
type Corpora map[string]Corpus

// names are the corpora that are timed, in the order of the table. The corpus "pairs" is only for the check of agreement.
var names = []string{"synth", "real", "intl", "long", "short"}

// Timed returns those that are timed, in order.
func (c Corpora) Timed() []Corpus {
	var list []Corpus
	for _, name := range names {
		if found, ok := c[name]; ok {
			list = append(list, found)
		}
	}
	return list
}

// Prepare makes what the cache lacks and loads all. Corpora that can't be made for want of Debian's packages are missing;
// missing tells why, by package or corpus.
func Prepare(cache string, documents int) (all Corpora, missing []string, err error) {
	folder, err := folderOf(cache, documents)
	if err != nil {
		return nil, nil, err
	}
	if !exists(filepath.Join(folder, "synth.txt")) { // written last
		if err := makeIn(folder, "synth", strconv.Itoa(documents)); err != nil {
			return nil, nil, err
		}
	}
	missing, err = fetchReal(cache, folder, documents)
	if err != nil {
		return nil, nil, err
	}
	all, absent, err := load(folder, append([]string{"pairs"}, names...))
	return all, append(missing, absent...), err
}

// Real makes or fetches the English texts of Debian's packages alone, and loads at most this many documents of them.
func Real(cache string, documents int) (Corpus, error) {
	folder, err := folderOf(cache, documents)
	if err != nil {
		return Corpus{}, err
	}
	missing, err := fetchReal(cache, folder, documents)
	if err != nil {
		return Corpus{}, err
	}
	all, absent, err := load(folder, []string{"real"})
	if err == nil && len(all) == 0 {
		err = errors.New(strings.Join(append(missing, absent...), "; "))
	}
	return all["real"], err
}

// folderOf names the folder of the corpora of one size, after what makes them.
func folderOf(cache string, documents int) (string, error) {
	sum := sha256.Sum256(maker)
	folder := filepath.Join(cache, fmt.Sprintf("corpora-%s-%d", hex.EncodeToString(sum[:4]), documents))
	return folder, os.MkdirAll(folder, 0o755)
}

// fetchReal makes the corpora of real texts, where they are not there yet or more of their packages are.
func fetchReal(cache, folder string, documents int) (missing []string, err error) {
	root, fresh, missing := unpackDebian(filepath.Join(cache, "debian"))
	if root == "" || !fresh && exists(filepath.Join(folder, "real.txt")) {
		return missing, nil
	}
	return missing, makeIn(folder, "real", strconv.Itoa(documents), root)
}

// makeIn runs the program that makes corpora.
func makeIn(folder, which string, arguments ...string) error {
	script := filepath.Join(folder, "corpus.py")
	if err := os.WriteFile(script, maker, 0o644); err != nil {
		return err
	}
	return Command("", nil, "python3", append([]string{script, which, folder}, arguments...)...)
}

// load reads corpora from their files.
func load(folder string, wanted []string) (all Corpora, missing []string, err error) {
	all = Corpora{}
	for _, name := range wanted {
		path := filepath.Join(folder, name+".txt")
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			missing = append(missing, "corpus "+name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		text := string(data)
		all[name] = Corpus{Name: name, Path: path, Text: text, Documents: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	}
	return all, missing, nil
}

// debianPackages hold the real texts. The kernel's documentation has the version in its package's name: linux-doc depends on it.
var debianPackages = []string{"linux-doc", "manpages", "jargon-text", "fortunes", "debian-handbook"}

// unpackDebian downloads and unpacks the packages without being root, with separate package lists, and returns the folder they
// lie in, or "" where none could be had, and whether it unpacked one in this run. A package that failed is tried again in the next.
func unpackDebian(folder string) (root string, fresh bool, missing []string) {
	root = filepath.Join(folder, "root")
	var todo []string
	for _, name := range debianPackages {
		if !exists(filepath.Join(folder, name+".done")) {
			todo = append(todo, name)
		}
	}
	if len(todo) == 0 {
		return root, false, nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", false, []string{"apt-get is absent, so there is no real text"}
	}
	lists, archives := filepath.Join(folder, "lists"), filepath.Join(folder, "cache")
	apt := []string{"-q", "-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + archives}
	for _, sub := range []string{"root", "lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o755); err != nil {
			return "", false, []string{err.Error()}
		}
	}
	if err := Command("", nil, "apt-get", append(apt, "update")...); err != nil {
		missing = append(missing, err.Error())
	}
	for _, name := range todo {
		if err := unpackPackage(folder, root, name, apt); err != nil {
			missing = append(missing, fmt.Sprintf("package %s: %v", name, err))
			continue
		}
		fresh = true
	}
	if done, _ := filepath.Glob(filepath.Join(folder, "*.done")); len(done) == 0 {
		return "", false, missing
	}
	return root, fresh, missing
}

func unpackPackage(folder, root, name string, apt []string) error {
	names := []string{name}
	if name == "linux-doc" {
		out, err := exec.Command("apt-cache", append(apt, "depends", name)...).Output()
		if err != nil {
			return fmt.Errorf("apt-cache depends: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			if dependency, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok {
				names = append(names, dependency)
			}
		}
	}
	downloads, err := os.MkdirTemp(folder, "download")
	if err != nil {
		return err
	}
	defer os.RemoveAll(downloads)
	if err := Command(downloads, nil, "apt-get", append(append(apt, "download"), names...)...); err != nil {
		return err
	}
	debs, _ := filepath.Glob(filepath.Join(downloads, "*.deb"))
	for _, deb := range debs {
		if err := Command("", nil, "dpkg", "-x", deb, root); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, name+".done"), nil, 0o644)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Command runs a program in a folder ("" for the present one) and with an environment besides the present one. Its output goes to
// the standard error; an error carries the last line of it.
func Command(folder string, environment []string, name string, arguments ...string) error {
	fmt.Fprintln(os.Stderr, name, strings.Join(arguments, " "))
	c := exec.Command(name, arguments...)
	c.Dir, c.Env = folder, append(os.Environ(), environment...)
	out, err := c.CombinedOutput()
	if err == nil {
		return nil
	}
	if len(out) == 0 {
		return fmt.Errorf("%s: %w", name, err)
	}
	_, _ = os.Stderr.Write(out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s: %w: %s", name, err, lines[len(lines)-1])
}

// Cache returns the folder for all that the benchmarks fetch or make, and makes it.
func Cache() (string, error) {
	base := os.Getenv("NEARDUP_CACHE")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find the cache (set NEARDUP_CACHE): %w", err)
		}
		base = filepath.Join(home, ".cache", "neardup")
	}
	folder, err := filepath.Abs(filepath.Join(base, "bench"))
	if err != nil {
		return "", err
	}
	return folder, os.MkdirAll(folder, 0o755)
}
