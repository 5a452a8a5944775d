package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// corpus is a list of documents. Its file, which the peers read, has one document a line.
type corpus struct {
	name, path string
	text       string
	documents  []string
}

func (c corpus) all() []string { return c.documents }

// first returns how many documents lie in the first bytes of the corpus, one at least, and their size without line ends.
func (c corpus) first(bytes int) (count, size int) {
	for _, d := range c.documents {
		if count > 0 && size+len(d) > bytes {
			break
		}
		count, size = count+1, size+len(d)
	}
	return count, size
}

// corpora are the corpora by name.
type corpora map[string]corpus

// corpusNames are the corpora that are timed, in the order of the table. The corpus "pairs" is only for the check of agreement.
var corpusNames = []string{"synth", "real", "intl", "long", "short"}

func (c corpora) timed() []corpus {
	var list []corpus
	for _, name := range corpusNames {
		if found, ok := c[name]; ok {
			list = append(list, found)
		}
	}
	return list
}

func (c corpora) documents(name string) []string { return c[name].documents }

// prepareCorpora makes what the cache lacks and loads all. Corpora that can't be made for want of Debian's packages are missing;
// missing tells why, by package or corpus.
func prepareCorpora(cache string, documents int) (corpora, []string, error) {
	script, err := fingerprint("corpus.py")
	if err != nil {
		return nil, nil, err
	}
	folder := filepath.Join(cache, fmt.Sprintf("corpora-%s-%d", script, documents))
	count := strconv.Itoa(documents)
	if !exists(filepath.Join(folder, "synth.txt")) { // written last
		if err := command("", nil, "python3", "corpus.py", "synth", folder, count); err != nil {
			return nil, nil, err
		}
	}
	root, fresh, missing := unpackDebian(filepath.Join(cache, "debian"))
	if root != "" && (fresh || !exists(filepath.Join(folder, "real.txt"))) {
		if err := command("", nil, "python3", "corpus.py", "real", folder, count, root); err != nil {
			return nil, nil, err
		}
	}
	all := corpora{}
	for _, name := range append([]string{"pairs"}, corpusNames...) {
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
		all[name] = corpus{name: name, path: path, text: text, documents: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	}
	return all, missing, nil
}

// debianPackages hold the real texts. The kernel's documentation has the version in its package's name: linux-doc depends on it.
var debianPackages = []string{"linux-doc", "manpages", "jargon-text", "fortunes", "debian-handbook"}

// unpackDebian downloads and unpacks the packages without being root, with package lists of its own, and returns the folder they
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
	if err := command("", nil, "apt-get", append(apt, "update")...); err != nil {
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
	if err := command(downloads, nil, "apt-get", append(append(apt, "download"), names...)...); err != nil {
		return err
	}
	debs, _ := filepath.Glob(filepath.Join(downloads, "*.deb"))
	for _, deb := range debs {
		if err := command("", nil, "dpkg", "-x", deb, root); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, name+".done"), nil, 0o644)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// fingerprint names the content of files, for folders of the cache that must not outlive it.
func fingerprint(files ...string) (string, error) {
	h := sha256.New()
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)[:4]), nil
}

// command runs a program in a folder ("" for the present one) and with an environment besides the present one. Its output goes to
// the standard error; an error carries the last line of it.
func command(folder string, environment []string, name string, arguments ...string) error {
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
