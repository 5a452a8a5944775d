package cleanup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/neardup/sidecar/adapters"
	"github.com/neardup/sidecar/internal/jsonedit"
	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/internal/terminal"
	"github.com/neardup/sidecar/jobs"
)

// planFormat is the version of the plan's format.
const planFormat = 1

// Plan is the head of a plan file. The file is one JSON object: these members, and then groups, a list of [Group].
type Plan struct {
	Format int    `json:"neardup_plan"`
	Engine string `json:"engine"`
	Index  string `json:"index"`
	// Identity changes if the index is re-created under the same name.
	Identity string `json:"identity"`
	// Keep says how the documents that stay were chosen.
	Keep string `json:"keep"`
	// Threshold is the threshold that the groups were found with. Apply judges each pair with it again.
	Threshold float64 `json:"threshold"`
	// Hide is the field that Apply sets to true instead of deleting documents; empty to delete.
	Hide   string `json:"hide,omitempty"`
	Counts Counts `json:"counts"`
}

// Counts are the counts of a plan.
type Counts struct {
	// Documents are in the index, Clustered of them in clusters of two or more.
	Documents int `json:"documents"`
	Clusters  int `json:"clusters"`
	Clustered int `json:"clustered"`
	// Stay is how many groups there are, each with a document that stays; Go how many documents go.
	Stay int `json:"stay"`
	Go   int `json:"go"`
	// Others stay too: they are in a cluster, but not near-duplicates of a document that stays. Hidden were hidden before. LeftOut were changed or
	// deleted while the plan was made, or share an id.
	Others int `json:"others"`
	// Unranked stay too, in plans that keep the newest or the oldest: they have no readable date.
	Unranked int `json:"unranked,omitempty"`
	Hidden   int `json:"hidden,omitempty"`
	LeftOut  int `json:"left_out"`
	// Hosts are those with the most documents that go.
	Hosts []Host `json:"hosts,omitempty"`
}

// Host is a host with how many of its documents stay in a group and how many go.
type Host struct {
	Host string `json:"host"`
	Stay int    `json:"stay"`
	Go   int    `json:"go"`
}

// Group is a document that stays and its near-duplicates, which go.
type Group struct {
	Cluster string   `json:"cluster"`
	Stays   Member   `json:"stays"`
	Why     string   `json:"why"`
	Goes    []Member `json:"goes"`
}

// Member is a document of a group.
type Member struct {
	ID   string `json:"id"`
	Host string `json:"host,omitempty"`
	// Agreement is the agreement with the one that stays; 0 for that one itself.
	Agreement float64 `json:"agreement,omitempty"`
	// Digest is the document's [Digest] when the plan was made.
	Digest string `json:"digest"`
	// Title is the beginning of its text, and Fields are its short values. Only [Options.Shown] sets them; plans leave them out.
	Title  string  `json:"title,omitempty"`
	Fields []Field `json:"fields,omitempty"`
}

// Field is a short value of a document.
type Field struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Text is the value without quotation marks.
func (f Field) Text() string {
	text, _ := jsonedit.ValueText(f.Value) // "" for null
	return text
}

// Digest returns a hash of a document without our fields. It ignores the order of members, white space and the notation of numbers.
func Digest(source []byte) (string, error) {
	var all map[string]any
	d := json.NewDecoder(bytes.NewReader(source))
	d.UseNumber()
	if err := d.Decode(&all); err != nil {
		return "", err
	}
	for name := range all {
		if rule.Our(name) {
			delete(all, name)
		}
	}
	text, err := json.Marshal(byValue(all)) // which sorts members
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12]), err
}

// byValue normalizes the numbers in a JSON value, so that 1.50 equals 1.5.
func byValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			v[name] = byValue(v[name])
		}
	case []any:
		for i := range v {
			v[i] = byValue(v[i])
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if len(strings.TrimLeft(exponent, "+-0")) > 3 { // too slow to compute
			return v
		}
		if value, ok := new(big.Rat).SetString(v.String()); ok {
			return map[string]any{"number": value.String()}
		}
	}
	return v
}

// WritePlan writes a plan with the groups that each yields. The file appears only when it is complete. each returns the counts of the plan.
func WritePlan(name string, p Plan, each func(yield func(Group) error) (Counts, error)) (Plan, error) {
	spool, err := os.CreateTemp(filepath.Dir(name), ".neardup-plan") // because the counts come before the groups
	if err != nil {
		return p, err
	}
	defer os.Remove(spool.Name())
	defer spool.Close()
	out := json.NewEncoder(spool)
	out.SetEscapeHTML(false)
	first := true
	p.Format = planFormat
	p.Counts, err = each(func(g Group) error {
		if !first {
			if _, err := io.WriteString(spool, ","); err != nil {
				return err
			}
		}
		first = false
		return out.Encode(g)
	})
	if err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		return p, err
	}
	return p, terminal.WriteFile(name, func(w io.Writer) error {
		head, err := json.MarshalIndent(p, "", " ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s,\n \"groups\": [\n", bytes.TrimSuffix(head, []byte("\n}")))
		if err == nil {
			_, err = io.Copy(w, spool)
		}
		if err == nil {
			_, err = io.WriteString(w, "]}\n")
		}
		return err
	})
}

// ReadPlan reads a plan and yields its groups. The head may follow the groups in the file, so it is known only at the end.
func ReadPlan(r io.Reader, yield func(Group) error) (p Plan, err error) {
	d := json.NewDecoder(r)
	members := map[string]json.RawMessage{}
	if err := delim(d, '{'); err != nil {
		return p, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return p, err
		}
		if key != "groups" {
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				return p, err
			}
			members[key.(string)] = value
			continue
		}
		if err := delim(d, '['); err != nil {
			return p, err
		}
		for d.More() {
			var g Group
			if err := d.Decode(&g); err != nil {
				return p, err
			}
			if err := yield(g); err != nil {
				return p, err
			}
		}
		if err := delim(d, ']'); err != nil {
			return p, err
		}
	}
	if err := delim(d, '}'); err != nil {
		return p, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return p, errors.New("something follows the end of the plan")
	}
	head, err := json.Marshal(members)
	if err == nil {
		err = json.Unmarshal(head, &p)
	}
	return p, err
}

func delim(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && got != want {
		err = fmt.Errorf("%v in place of %v", got, want)
	}
	return err
}

// OpenPlan reads a whole plan file. It returns the head, how many documents go, and a hash of the file. It fails if the plan can't be carried out: its
// format is another one, or a document goes twice, or both goes and stays.
func OpenPlan(name string) (p Plan, goes int, sum string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return p, 0, "", err
	}
	defer file.Close()
	hash := sha256.New()
	in := io.TeeReader(file, hash)
	seen := map[idKey]bool{} // whether the document goes
	p, err = ReadPlan(in, func(g Group) error {
		for i, m := range append([]Member{g.Stays}, g.Goes...) {
			id := keyOf(m.ID)
			before, twice := seen[id]
			if seen[id] = i > 0; m.ID == "" || m.Digest == "" || twice && (before || i > 0) {
				return fmt.Errorf("document %q has no id or no digest, or the plan has it in two places", m.ID)
			}
			goes += min(i, 1)
		}
		return nil
	})
	if err == nil {
		_, err = io.Copy(io.Discard, in) // the rest, such as a line end, is part of the hash
	}
	switch {
	case err != nil:
	case p.Format != planFormat:
		err = fmt.Errorf("neardup_plan is %d: this version reads %d: make the plan again", p.Format, planFormat)
	case p.Index == "" || p.Engine == "" || p.Identity == "":
		err = errors.New("engine, index or identity is missing")
	case p.Threshold <= 0 || p.Threshold > 1:
		err = errors.New("threshold is missing: make the plan again")
	case p.Hide != "":
		err = CheckHide(p.Hide)
	}
	if err != nil {
		return p, 0, "", fmt.Errorf("plan %s can't be carried out: %w", name, err)
	}
	return p, goes, hex.EncodeToString(hash.Sum(nil)), nil
}

// CheckHide returns an error if a field can't be used to hide documents.
func CheckHide(field string) error {
	if field == "id" || strings.HasPrefix(field, "_") || strings.HasPrefix(field, rule.FieldPrefix) || strings.ContainsAny(field, ".*, \"\\") {
		return fmt.Errorf("--hide: %q can't be set: name a field of yours at the top of documents, such as hidden", field)
	}
	return nil
}

// CheckField returns an error if a field can't hide documents of an index: no filter would find it, or the rule uses it.
func CheckField(ctx context.Context, store adapters.EngineStore, job jobs.Job, field string) error {
	used := append([]string{job.Rule.DateField}, job.Rule.Fields...)
	for _, d := range job.Rule.Deciding() {
		used = append(used, d.Field)
	}
	for _, name := range used {
		if top, _, _ := strings.Cut(name, "."); top == field {
			return fmt.Errorf("--hide %s: the rule uses this field: name another one", field)
		}
	}
	flag, err := store.Flag(ctx, job.Index, field)
	if err == nil && !flag {
		err = fmt.Errorf("--hide %s: %s does not declare this field as a boolean that is indexed: add it as one (Typesense: an optional bool)", field, job.Index)
	}
	return err
}

// add counts a group.
func (c *Counts) add(g *Group, hosts map[string]*Host) {
	c.Stay++
	c.Go += len(g.Goes)
	of := func(m *Member) *Host {
		if hosts[m.Host] == nil {
			hosts[m.Host] = &Host{Host: m.Host}
		}
		return hosts[m.Host]
	}
	of(&g.Stays).Stay++
	for i := range g.Goes {
		of(&g.Goes[i]).Go++
	}
}

// mostHosts is how many hosts [Counts] lists.
const mostHosts = 20

// list lists the hosts with the most documents that go.
func (c *Counts) list(hosts map[string]*Host) {
	for _, h := range hosts {
		if h.Host != "" {
			c.Hosts = append(c.Hosts, *h)
		}
	}
	slices.SortFunc(c.Hosts, func(a, b Host) int { return cmp.Or(cmp.Compare(b.Go, a.Go), cmp.Compare(a.Host, b.Host)) })
	c.Hosts = c.Hosts[:min(mostHosts, len(c.Hosts))]
}

// idKey stands for an id in memory. It is short, and nobody can make two ids with the same one: whoever writes documents chooses their ids.
type idKey [16]byte

func keyOf(id string) idKey {
	sum := sha256.Sum256([]byte(id))
	return idKey(sum[:16])
}
