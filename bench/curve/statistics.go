package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"math/rand/v2"
	"slices"

	"github.com/neardup/sidecar/internal/rule"
	"github.com/neardup/sidecar/jobs/cluster"
	"github.com/neardup/sidecar/sketch"
)

// Statistics are what is learned from the sketches of real texts.
type Statistics struct {
	From      []string `json:"from"` // the corpora
	Documents int      `json:"documents"`
	// Clusters counts the clusters of each size, in documents.
	Clusters map[int]int `json:"clusters"`
	// Copies is the share of the documents of clusters, but for one of each, that have the text of another one.
	Copies float64 `json:"copies"`
	// Near has quantiles of the agreement of other members with the first of their cluster.
	Near []float64 `json:"near"`
	// Families counts how many clusters are in a family: what hangs together by bands that unlike texts share.
	Families map[int]int `json:"families"`
	// Strangers has quantiles of the agreement of unlike texts that share a band, Unrelated of two texts taken at random.
	Strangers []float64 `json:"strangers"`
	Unrelated []float64 `json:"unrelated"`
	// Buckets counts the buckets of each size in texts, of 1, 2, 3 to 4, 5 to 8 and so on, for each 1,000 texts and all bands.
	Buckets []float64 `json:"buckets"`
	// Chance is how many pairs of unlike texts that agree in less than a tenth share a band, for each text, in all bands.
	Chance float64 `json:"chance"`
	// Short is the share of documents that are too short to be compared by their sketches.
	Short float64 `json:"short"`
}

//go:embed statistics.json
var stored []byte

func learned() (s Statistics, err error) { return s, json.Unmarshal(stored, &s) }

// quantiles are 33 values of a sorted list, the least and the greatest among them.
func quantiles(list []float64) (q []float64) {
	slices.Sort(list)
	for i := 0; i <= 32 && len(list) > 0; i++ {
		q = append(q, float64(int(1e4*list[(len(list)-1)*i/32]))/1e4)
	}
	return q
}

// byChance is below which agreement unlike texts share a band by phrases that many texts have.
const byChance = 0.1

// collector adds up what several corpora have.
type collector struct {
	rule                       *rule.Rule
	s                          Statistics
	near, strangers, unrelated []float64
	members, copies, short     int
	chance                     int
	texts                      int
}

// add learns from the sketches of one corpus.
func (l *collector) add(ctx context.Context, name string, sketches []sketch.Sketch) error {
	corpus, err := cluster.New(cluster.Options{Rule: l.rule})
	if err != nil {
		return err
	}
	defer corpus.Close()
	for i := range sketches {
		if err := corpus.Add(cluster.Document{ID: string(rune(i)), Sketch: &sketches[i]}); err != nil {
			return err
		}
	}
	if err := corpus.Cluster(ctx); err != nil {
		return err
	}
	of := map[uint64]int{} // the cluster of each text
	clusters := 0
	err = corpus.Each(ctx, func(list []cluster.Member) error {
		l.s.Clusters[len(list)]++
		texts := map[uint64]bool{}
		for _, m := range list {
			of[m.Fingerprint] = clusters
			if !m.First && !texts[m.Fingerprint] && m.Agreement < 1 {
				l.near = append(l.near, m.Agreement)
			}
			texts[m.Fingerprint] = true
		}
		l.members += len(list) - 1
		l.copies += len(list) - len(texts)
		clusters++
		return nil
	})
	if err != nil {
		return err
	}
	var texts []*sketch.Sketch
	seen := map[uint64]bool{}
	for i := range sketches {
		if k := &sketches[i]; !seen[k.Fingerprint] {
			seen[k.Fingerprint] = true
			texts = append(texts, k)
			if !l.rule.Profile.Long(k) {
				l.short++
			}
		}
	}
	bands, rows := corpus.Shape()
	buckets := make([]map[uint64][]int, bands)
	for b := range buckets {
		buckets[b] = map[uint64][]int{}
	}
	for i, k := range texts {
		if !l.rule.Profile.Long(k) {
			continue
		}
		keys, _ := k.AppendBands(nil, bands, rows)
		for b, key := range keys {
			buckets[b][key] = append(buckets[b][key], i)
		}
	}
	family := cluster.NewForest(clusters)
	for _, band := range buckets {
		for _, list := range band {
			class := 0
			for 1<<class < len(list) {
				class++
			}
			for len(l.s.Buckets) <= class {
				l.s.Buckets = append(l.s.Buckets, 0)
			}
			l.s.Buckets[class]++
			kinds := map[int]int{} // a text of each cluster
			for _, i := range list {
				c := of[texts[i].Fingerprint]
				if _, known := kinds[c]; !known {
					kinds[c] = i
				}
			}
			first := -1
			for c, i := range kinds {
				if first >= 0 {
					a, _ := texts[first].Agreement(texts[i])
					if a < byChance {
						l.chance++
					} else {
						l.strangers = append(l.strangers, a)
						family.Join(uint32(of[texts[first].Fingerprint]), uint32(c))
					}
				}
				first = i
			}
		}
	}
	sizes := map[uint32]int{}
	for c := range uint32(clusters) {
		sizes[family.Of(c)]++
	}
	for _, n := range sizes {
		l.s.Families[n]++
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		a, b := r.IntN(len(texts)), r.IntN(len(texts))
		if a != b && of[texts[a].Fingerprint] != of[texts[b].Fingerprint] {
			alike, _ := texts[a].Agreement(texts[b])
			l.unrelated = append(l.unrelated, alike)
		}
	}
	l.s.From, l.s.Documents, l.texts = append(l.s.From, name), l.s.Documents+len(sketches), l.texts+len(texts)
	return nil
}

// done returns what was learned.
func (l *collector) done() Statistics {
	s := l.s
	s.Copies = float64(l.copies) / float64(max(1, l.members))
	s.Chance = float64(l.chance) / float64(l.texts)
	s.Short = float64(l.short) / float64(l.texts)
	s.Near, s.Strangers, s.Unrelated = quantiles(l.near), quantiles(l.strangers), quantiles(l.unrelated)
	for i := range s.Buckets {
		s.Buckets[i] = float64(int(1e4*s.Buckets[i]*1000/float64(l.texts))) / 1e4
	}
	return s
}

func newCollector(r *rule.Rule) *collector {
	return &collector{rule: r, s: Statistics{Clusters: map[int]int{}, Families: map[int]int{}}}
}
