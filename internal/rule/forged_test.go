package rule

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/neardup/sidecar/internal/expect"
	"github.com/neardup/sidecar/rerank"
	"github.com/neardup/sidecar/sketch"
)

// idWithHash returns an id of letters, digits and - that has an xxHash64: the last step of that hash can be undone.
func idWithHash(t *testing.T, number uint64) string {
	t.Helper()
	const p1, p2, p3, p4, p5 = 11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261
	inverse := func(odd uint64) uint64 {
		x := odd
		for range 6 {
			x *= 2 - odd*x
		}
		return x
	}
	before := (number ^ number>>32) * inverse(p3)
	before = (before ^ before>>29 ^ before>>58) * inverse(p2)
	before ^= before >> 33
	want := bits.RotateLeft64((before-p4)*inverse(p1), -27)
	start := uint64(16)
	start += p5
	for try := range int64(1 << 26) {
		id := []byte(strconv.FormatInt(1<<40+try, 32))[:8]
		first := bits.RotateLeft64(binary.LittleEndian.Uint64(id)*p2, 31) * p1
		h := bits.RotateLeft64(start^first, 27)*p1 + p4
		last := bits.RotateLeft64((h^want)*inverse(p1), -31) * inverse(p2)
		if id = binary.LittleEndian.AppendUint64(id, last); plain(id) {
			expect.Must(t, number, xxhash.Sum64(id), "the hash of %s", id)
			return string(id)
		}
	}
	t.Fatal("no such id was found")
	return ""
}

func plain(id []byte) bool {
	for _, c := range id {
		if c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// TestNoIDLeadsIntoACluster: a document without a text is not in the cluster of somebody's text, whatever id its writer chose. Anybody who may search can
// read the number of that text from its cluster id.
func TestNoIDLeadsIntoACluster(t *testing.T) {
	for _, seed := range []string{"", "a secret"} {
		r := &Rule{Fields: []string{"body"}, Sketcher: expect.Value(sketch.New(sketch.Scheme{Seed: seed}))(t), Profile: rerank.Default(), Clusters: true}
		victim, _ := r.OursFor([]byte(`{"body":"the council voted to keep the library open on weekends"}`), "victim")
		number := expect.Value(idEncoding.DecodeString(victim.Cluster[len(r.ClusterMark()):]))(t)
		forged, _ := r.OursFor([]byte(`{"title":"buy this"}`), idWithHash(t, binary.BigEndian.Uint64(number)))
		if forged.Cluster == victim.Cluster {
			t.Errorf("seed %q: it is in the cluster of another document's text", seed)
		}
	}
	a, b := &Rule{Sketcher: expect.Value(sketch.New(sketch.Scheme{Seed: "a"}))(t)}, &Rule{Sketcher: expect.Value(sketch.New(sketch.Scheme{Seed: "b"}))(t)}
	if a.NumberOf("1") == b.NumberOf("1") || a.NumberOf("1") == a.NumberOf("2") {
		t.Error("the seed or the id does not count")
	}
}
