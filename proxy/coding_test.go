package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"math/rand/v2"
	"strconv"
	"testing"
)

// standardDecoder is decoder by the standard library.
func standardDecoder(encoding string, _ int64, body io.Reader) (io.Reader, error) {
	b := bufio.NewReader(body)
	if encoding == "gzip" {
		return gzip.NewReader(b)
	}
	if head, err := b.Peek(2); err == nil && head[0]&0x78 == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

// whole reads all of a compressed body.
func whole(open func(string, int64, io.Reader) (io.Reader, error), encoding string, body []byte) (plain []byte, err error) {
	z, err := open(encoding, 0, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// FuzzCoding holds what is encoded and decoded to the standard library: it reads what we write, and of what a stranger sent, whole or
// broken, cut within the head of a further member too, a decoder that was used before makes the same as a new one.
func FuzzCoding(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for range 5000 {
		text = strconv.AppendInt(text, random.Int64N(1<<30), 10)
	}
	for _, encoding := range []string{"gzip", "deflate"} {
		good := coded(encoding, text)
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
		if plain, err := whole(standardDecoder, encoding, coded(encoding, data)); err != nil || !bytes.Equal(plain, data) {
			t.Fatalf("the standard library reads something else in what we encode: %v", err)
		}
		want, wantErr := whole(standardDecoder, encoding, data)
		if z, err := decoder(encoding, 0, bytes.NewReader(coded(encoding, data))); err == nil {
			reuse(z)
		}
		got, err := whole(decoder, encoding, data)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes and %v, the standard library: %d bytes and %v", len(got), err, len(want), wantErr)
		}
	})
}
