package flink

import (
	"fmt"
	"strconv"
	"strings"
)

// bucketCap is how many members of a bucket make pairs with each other. A further one makes a pair with the first alone, so a
// bucket of any size stays linear.
const bucketCap = 50

// successFile is what Flink puts beside the pairs once all of them are there.
const successFile = "_SUCCESS"

// statements are what runs in the session; the last one is the job. texts and pairs are where the files lie. Of a text there is
// one row:
//
//	id     its number
//	bands  those keys of its bands that another text has too, made in Go: two languages never hash differently
//	w0, …  the positions of its sketch, as many to a number as fit, where the job is to compare them
//
// The job in words: the members of each bucket in order of their numbers, each with the list of those before it; the lists, each
// once, since near-duplicates share many buckets; the candidates, each once; those of them whose sketches are equal in positions enough.
func (r *run) statements(texts, pairs string) []string {
	var words strings.Builder
	for i := range r.shape.words() {
		fmt.Fprintf(&words, ", w%d BIGINT", i)
	}
	return []string{
		fmt.Sprintf("CREATE TEMPORARY TABLE texts (id BIGINT, bands ARRAY<BIGINT>%s) WITH (%s)", words.String(), onFiles(texts)),
		fmt.Sprintf("CREATE TEMPORARY TABLE pairs (a BIGINT, b BIGINT) WITH (%s, 'sink.partition-commit.policy.kind' = 'success-file')", onFiles(pairs)),
		"INSERT INTO pairs " + r.shape.query(),
	}
}

func onFiles(location string) string {
	return "'connector' = 'filesystem', 'format' = 'csv', 'path' = '" + strings.ReplaceAll(location, "'", "''") + "'"
}

// candidates says the rule in one pass over the sorted members. A join of the buckets with themselves says it too, reads the
// members three times and takes twice as long. Without lists half as much again is shuffled.
var candidates = strings.NewReplacer("{cap}", strconv.Itoa(bucketCap), "{before}", strconv.Itoa(bucketCap-1)).Replace(`WITH
members AS (
  SELECT id, band FROM texts CROSS JOIN UNNEST(bands) AS u (band)
), ranked AS (
  SELECT id, ROW_NUMBER() OVER w AS place, FIRST_VALUE(id) OVER w AS leader,
    ARRAY_AGG(id) OVER (PARTITION BY band ORDER BY id ROWS BETWEEN {before} PRECEDING AND CURRENT ROW) AS earlier
  FROM members WINDOW w AS (PARTITION BY band ORDER BY id)
), lists AS (
  SELECT DISTINCT id, CASE WHEN place <= {cap} THEN earlier ELSE ARRAY[leader] END AS others FROM ranked WHERE place > 1
), candidates AS (
  SELECT DISTINCT a, id AS b FROM lists CROSS JOIN UNNEST(others) AS u (a) WHERE a < id
)
`)

func (s shape) query() string {
	if s.least == 0 {
		return candidates + "SELECT a, b FROM candidates"
	}
	return candidates + "SELECT a, b FROM candidates JOIN texts AS x ON x.id = a JOIN texts AS y ON y.id = b\nWHERE " +
		s.equal() + " >= " + strconv.Itoa(s.least)
}

// equal is the number of positions in which two sketches are equal. Flink's SQL has neither a loop nor operators on bits, so it
// is written out, with divisions by constants: under a microsecond a pair.
func (s shape) equal() string {
	terms := make([]string, s.positions)
	for i := range terms {
		word, at := i/s.perWord(), i%s.perWord()
		digit := func(side string) string {
			return fmt.Sprintf("MOD(%s.w%d / %d, %d)", side, word, int64(1)<<(at*s.width), 1<<s.width)
		}
		terms[i] = fmt.Sprintf("CASE WHEN %s = %s THEN 1 ELSE 0 END", digit("x"), digit("y"))
	}
	return sum(terms)
}

// sum adds up terms by halves: Flink goes through an expression by recursion, and some hundred additions in a row are too deep
// for it.
func sum(terms []string) string {
	if len(terms) == 1 {
		return terms[0]
	}
	half := len(terms) / 2
	return "(" + sum(terms[:half]) + " + " + sum(terms[half:]) + ")"
}
