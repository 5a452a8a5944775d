package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Tree is all pages below a root.
type Tree struct {
	Root  string
	Pages map[string]*Page // by their path
}

// leftOut are folders that hold no pages of ours.
var leftOut = []string{".git", ".cache", "node_modules", "testdata", "bin", "dist"}

// Load reads every page below a root.
func Load(root string) (*Tree, error) {
	t := &Tree{Root: root, Pages: map[string]*Page{}}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // somebody's temporary file
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(leftOut, d.Name()) && file != root:
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".md"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		t.Pages[name] = Parse(name, string(text))
		return nil
	})
	return t, err
}

// Names returns the paths of the pages, in order.
func (t *Tree) Names() []string {
	var names []string
	for name := range t.Pages {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CheckLinks follows every link of a page that leads into the tree.
func (t *Tree) CheckLinks(p *Page) (faults []Fault) {
	for _, l := range p.Links {
		if what := t.follow(p, l.Target); what != "" {
			faults = append(faults, Fault{l.Line, fmt.Sprintf("the link %s %s", l.Target, what)})
		}
	}
	return faults
}

// follow says what is wrong with a link, or nothing.
func (t *Tree) follow(p *Page, link string) string {
	u, err := url.Parse(link)
	switch {
	case err != nil:
		return "is none: " + err.Error()
	case u.Scheme == "http" || u.Scheme == "https":
		if u.Host == "" || strings.ContainsAny(link, " \t") {
			return "has no host"
		}
		return ""
	case u.Scheme == "mailto":
		return ""
	case u.Scheme != "" || u.Host != "":
		return "is of a kind that is not known: http, https, mailto or a path"
	case strings.HasPrefix(u.Path, "/"):
		return "begins at the root of whatever host shows it: write it from the page's own folder"
	case u.Path == "" && u.Fragment == "":
		return "leads nowhere"
	}
	name := p.Path
	if u.Path != "" {
		name = path.Join(path.Dir(p.Path), u.Path)
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		return "leads out of the tree"
	}
	if _, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(name))); err != nil {
		return "leads to what does not exist"
	}
	if u.Fragment == "" {
		return ""
	}
	other, known := t.Pages[name]
	if !known {
		return "has an anchor, and leads to no page: lines move"
	}
	if !other.HasAnchor(u.Fragment) {
		return "has an anchor that its page has not"
	}
	return ""
}

// path of a file or folder, without anything that stands for others.
var named = regexp.MustCompile(`^[A-Za-z.][A-Za-z0-9_.-]*(/[A-Za-z0-9_.-]+)+/?$`)

// CheckNames looks for the files and folders that a page names between backticks, if they begin like one of the tree.
func (t *Tree) CheckNames(p *Page) (faults []Fault) {
	for _, s := range p.Spans {
		top, _, _ := strings.Cut(s.Text, "/")
		if !named.MatchString(s.Text) || slices.Contains(leftOut, top) {
			continue
		}
		if info, err := os.Stat(filepath.Join(t.Root, top)); err != nil || !info.IsDir() {
			continue
		}
		if _, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(s.Text))); err != nil {
			faults = append(faults, Fault{s.Line, fmt.Sprintf("%s does not exist", s.Text)})
		}
	}
	return faults
}
