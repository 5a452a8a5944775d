package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	fastzlib "github.com/klauspost/compress/zlib"
)

// coding returns the content coding that we ask the engine for on behalf of a client that accepts these: of those that we read,
// the one that it likes best, as the engine itself chooses; empty if it accepts none of them.
func coding(accepted []string) string {
	switch weights := weights(accepted); {
	case weights["gzip"] > 0 && weights["gzip"] >= weights["deflate"]:
		return "gzip"
	case weights["deflate"] > 0:
		return "deflate"
	}
	return ""
}

// weights returns how well a client likes the content codings that it names, 0 to 1.
func weights(accepted []string) map[string]float64 {
	weights := map[string]float64{}
	for item := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, weight, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(item, " ", "")), ";")
		q, err := strconv.ParseFloat(strings.TrimPrefix(weight, "q="), 64)
		if err != nil {
			q = 1
		}
		weights[strings.TrimPrefix(name, "x-")] = q
	}
	return weights
}

// coded returns data in a content coding that we read, or as it is.
func coded(coding string, data []byte) []byte {
	switch strings.ToLower(coding) {
	case "gzip", "x-gzip":
		return gzipped(data)
	case "deflate":
		var b bytes.Buffer
		z, _ := fastzlib.NewWriterLevel(&b, fastzlib.BestSpeed) // the level is a valid one, and a Buffer takes every write
		_, _ = z.Write(data)
		_ = z.Close()
		return b.Bytes()
	}
	return data
}

// encoded reports whether the body of a readable request is compressed.
func encoded(r *http.Request) bool {
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	return strings.HasSuffix(encoding, "gzip") || encoding == "deflate"
}

// decoder returns a compressed body without its encoding, gzip or deflate. What engines take as deflate has the header of zlib or none. The
// standard library decodes: klauspost/compress, which encodes, takes a stream that is cut within the head of a further member for a whole one.
func decoder(encoding string, body io.Reader) (io.Reader, error) {
	if !strings.EqualFold(encoding, "deflate") {
		z, ok := unzippers.Get().(*gzip.Reader)
		if !ok {
			return gzip.NewReader(body)
		}
		return z, z.Reset(body)
	}
	b := bufio.NewReader(body)
	if head, err := b.Peek(2); err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(b)
	}
	return flate.NewReader(b), nil
}

func gzipped(data []byte) []byte { return encode("gzip", data) }

// unzippers are decoders and zippers encoders that were used before: the one takes some 40 kB, the other some 800.
var unzippers, zippers sync.Pool

// reuse keeps a decoder for another body. It is not to be read from any more.
func reuse(decoder io.Reader) {
	if z, ok := decoder.(*gzip.Reader); ok {
		unzippers.Put(z)
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}

// readable returns what a client accepts less the encodings that we can't read, or nil if that is all of it. Engines know some of
// these, and choose them above others where any will do.
func readable(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	var kept []string
	same := true
	for item := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		coding, weight, weighted := strings.Cut(strings.TrimSpace(item), ";")
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip", "deflate", "identity":
			kept = append(kept, strings.TrimSpace(item))
			continue
		case "*":
			coding = "gzip"
			if weighted {
				coding += ";" + weight
			}
			kept = append(kept, coding)
		}
		same = false
	}
	if same {
		return nil
	}
	if len(kept) == 0 {
		return []string{"identity"}
	}
	return []string{strings.Join(kept, ", ")}
}
