package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
)

// standardDecoder is decoder by the standard library.
func standardDecoder(encoding string, body io.Reader) (io.Reader, error) {
	b := bufio.NewReader(body)
	if encoding == "gzip" {
		return gzip.NewReader(b)
	}
	if head, err := b.Peek(2); err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// whole reads all of a compressed body.
func whole(open func(string, io.Reader) (io.Reader, error), encoding string, body []byte) (plain []byte, err error) {
	z, err := open(encoding, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// FuzzCoding holds what is encoded and decoded to the standard library: it reads what we write, and of what a stranger sent, whole or
// broken, cut within the head of a further member too, a decoder that was used before makes the same as a new one.
func FuzzCoding(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	text := []byte(pageOf(20))
	for _, encoding := range []string{"gzip", "deflate"} {
		good := encode(encoding, text)
		f.Add(good, encoding == "gzip")
		f.Add(append(bytes.Clone(good), good...), encoding == "gzip")
		f.Add(text[:2000], encoding == "gzip")
		f.Add([]byte{}, encoding == "gzip")
		f.Add(append(bytes.Clone(good), 0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 0xff, 'n'), encoding == "gzip")
		f.Add([]byte{0x1f, 0x8b, 8, 0x20, 0, 0, 0, 0, 0, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}, encoding == "gzip")
		for range 50 {
			bad := bytes.Clone(good[:1+random.IntN(len(good))])
			bad[random.IntN(len(bad))] ^= 1 << random.IntN(8)
			f.Add(bad, encoding == "gzip")
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, zipped bool) {
		encoding := map[bool]string{true: "gzip", false: "deflate"}[zipped]
		if plain, err := whole(standardDecoder, encoding, encode(encoding, data)); err != nil || !bytes.Equal(plain, data) {
			t.Fatalf("the standard library reads something else in what we encode: %v", err)
		}
		want, wantErr := whole(standardDecoder, encoding, data)
		if z, err := decoder(encoding, bytes.NewReader(encode(encoding, data))); err == nil {
			reuse(z)
		}
		got, err := whole(decoder, encoding, data)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes and %v, the standard library: %d bytes and %v", len(got), err, len(want), wantErr)
		}
	})
}

// pageOf is a reply of n hits of some 2 kB.
func pageOf(n int) string {
	words, random := []string{}, rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		word := make([]byte, 2+random.IntN(9))
		for i := range word {
			word[i] = "etaoinshrdlucmfw"[min(random.IntN(16), random.IntN(16))]
		}
		words = append(words, string(word))
	}
	var b bytes.Buffer
	b.WriteString(`{"took":3,"hits":{"hits":[`)
	for i := range n {
		fmt.Fprintf(&b, `{"_index":"news-1","_id":"%d","_score":%v,"_source":{"body":"`, i, random.Float64())
		for range 300 {
			b.WriteString(words[min(random.IntN(3000), random.IntN(3000))])
			b.WriteByte(' ')
		}
		b.WriteString(`"}},`)
	}
	return b.String() + "{}]}}"
}

// BenchmarkCoding takes what a reply of ten hits costs that comes from the engine in gzip and goes on in it.
func BenchmarkCoding(b *testing.B) {
	page := []byte(pageOf(10))
	sent := encode("gzip", page)
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		var t *hold
		for b.Loop() {
			if _, err := t.decode("gzip", sent, 1<<20); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		b.ReportAllocs()
		for b.Loop() {
			encode("gzip", page)
		}
	})
}
