// Package quality measures how well near-duplicates are told from other documents, on sets of documents labelled by people. Its
// figures stand in a golden file, so that a change that judges worse shows as a difference.
//
// A set is a folder of docs.jsonl (id, text, perhaps title), pairs.tsv (id_a, id_b, label, subset, perhaps kind, language, words) or
// clusters.tsv (id, cluster, subset), and meta.json, whose "gold" says which of the two counts: with pairs only the listed pairs are judged; with clusters every pair
// inside one subset is, and is positive if both are of one cluster; with clusters+pairs the label of pairs.tsv counts inside a
// cluster, and pairs of different clusters are negative.
package quality

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Set is a labelled set.
type Set struct {
	Name string
	// Preset is the preset whose kind of duplicates the set has, if not the default one; ForDefault says whether its labels are right for
	// the default one too.
	Preset     string
	ForDefault bool
	Docs       []Document
	// listed are the judged pairs of pairs.tsv.
	listed []pair
	// clusters is the cluster of each document, by its place in Docs, for the subset it belongs to; empty where pairs alone count.
	clusters []member
	// groups is the cluster of each document where clusters.tsv stands beside pairs that alone are judged: for the adjusted Rand index.
	groups []member
}

// Document is one document of a set.
type Document struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type pair struct {
	a, b     int
	positive bool
	// subset is the side of the split that the pair belongs to, kind what the label follows from. They are empty where pairs.tsv has none.
	subset, kind, language string
	// words is the length of the shorter text.
	words int
}

type member struct{ cluster, subset string }

// Load reads the set in a folder.
func Load(folder string) (*Set, error) {
	s := &Set{Name: filepath.Base(folder)}
	var meta struct {
		Gold, Preset string
		ForDefault   bool `json:"for_default"`
		Clusters     any  // true, or in some sets their number
	}
	raw, err := os.ReadFile(filepath.Join(folder, "meta.json"))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, fmt.Errorf("%s: meta.json: %w", s.Name, err)
	}
	s.Preset, s.ForDefault = meta.Preset, meta.ForDefault || meta.Preset == ""
	places, err := s.readDocs(filepath.Join(folder, "docs.jsonl"))
	if err != nil {
		return nil, err
	}
	if strings.Contains(meta.Gold, "pairs") {
		err := readTable(filepath.Join(folder, "pairs.tsv"), func(row map[string]string) error {
			a, okA := places[row["id_a"]]
			b, okB := places[row["id_b"]]
			if !okA || !okB {
				return fmt.Errorf("unknown id in %s, %s", row["id_a"], row["id_b"])
			}
			words, _ := strconv.Atoi(row["words"])
			s.listed = append(s.listed, pair{a: a, b: b, positive: row["label"] == "1", subset: row["subset"], kind: row["kind"],
				language: row["language"], words: words})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if !strings.HasPrefix(meta.Gold, "clusters") {
		if meta.Clusters == true {
			s.groups, err = s.readClusters(folder, places)
		}
		return s, err
	}
	s.clusters, err = s.readClusters(folder, places)
	return s, err
}

// readClusters returns the cluster of each document by its place.
func (s *Set) readClusters(folder string, places map[string]int) ([]member, error) {
	clusters := make([]member, len(s.Docs))
	return clusters, readTable(filepath.Join(folder, "clusters.tsv"), func(row map[string]string) error {
		place, ok := places[row["id"]]
		if !ok {
			return fmt.Errorf("unknown id %s", row["id"])
		}
		clusters[place] = member{cluster: row["cluster"], subset: row["subset"]}
		return nil
	})
}

func (s *Set) readDocs(path string) (places map[string]int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	places = map[string]int{}
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var doc Document
		if err := d.Decode(&doc); err == io.EOF {
			return places, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		places[doc.ID] = len(s.Docs)
		s.Docs = append(s.Docs, doc)
	}
}

// readTable calls row for each line of a tab-separated file, with the values by the names in its first line.
func readTable(path string, row func(map[string]string) error) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(string(raw), "\n"), "\n")
	names := strings.Split(lines[0], "\t")
	for i, line := range lines[1:] {
		values := map[string]string{}
		for j, value := range strings.Split(strings.TrimSuffix(line, "\r"), "\t") {
			if j < len(names) {
				values[names[j]] = value
			}
		}
		if err := row(values); err != nil {
			return fmt.Errorf("%s: line %d: %w", path, i+2, err)
		}
	}
	return nil
}

// Judged calls f for each judged pair, by the documents' places.
func (s *Set) Judged(f func(a, b int, positive bool)) {
	for _, p := range s.listed {
		f(p.a, p.b, p.positive)
	}
	for a, of := range s.clusters {
		if of.subset == "" {
			continue
		}
		for b := a + 1; b < len(s.clusters); b++ {
			if s.clusters[b].subset != of.subset {
				continue
			}
			if same := s.clusters[b].cluster == of.cluster; !same || len(s.listed) == 0 {
				f(a, b, same)
			}
		}
	}
}
