package proxy

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
)

// coded returns data in a content coding that we read, or as it is.
func coded(coding string, data []byte) []byte {
	if coding = strings.ToLower(coding); coding == "" || coding == "identity" {
		return data
	}
	return encode(coding, data)
}

// encoded reports whether the body of a request is compressed. Engines take it as it stands under a name that they do not know, however like
// one that they know, and of several names.
func encoded(r *http.Request) bool { return decodes(r.Header.Get("Content-Encoding")) }

// decodes reports whether engines decompress a body of the encoding. (snappy and zstd only some do; the others then refuse it.)
func decodes(encoding string) bool {
	switch strings.ToLower(encoding) {
	case "gzip", "x-gzip", "deflate", "x-deflate", "snappy", "zstd":
		return true
	}
	return false
}

// tolerated returns what an error of decoding a whole body means, behind what could be read of it. Engines take a body in gzip or deflate that ends early, or behind which something
// stands, for what can be read of it: then there is none. What they make of one in snappy or zstd is not known: it is refused.
func tolerated(r *http.Request, plain []byte, err error) error {
	switch strings.ToLower(r.Header.Get("Content-Encoding")) {
	case "snappy", "zstd":
		if err != nil && !errors.Is(err, errTooLarge) && !errors.Is(err, errBusy) {
			return errors.Join(errEncoding, err)
		}
	default:
		if len(plain) > 0 && (errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, gzip.ErrHeader)) {
			return nil
		}
	}
	return err
}

// uncompressed reports whether a body that begins so is not zstd although it says so. An engine that does not know zstd takes it as it stands.
func uncompressed(r *http.Request, head []byte) bool {
	skippable := len(head) > 3 && head[0]>>4 == 5 && bytes.HasPrefix(head[1:], []byte("\x2A\x4D\x18"))
	return strings.EqualFold(r.Header.Get("Content-Encoding"), "zstd") && !skippable && !bytes.HasPrefix(head, []byte("\x28\xB5\x2F\xFD"))
}

// maxZstdWindow bounds the memory for decoding zstd.
const maxZstdWindow = 8 << 20

// decoder returns a compressed body without its encoding. What engines take as deflate has the header of zlib or none. The
// standard library decodes: klauspost/compress, which encodes, takes a stream that is cut within the head of a further member for a whole one.
func decoder(encoding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(encoding) {
	case "deflate", "x-deflate":
	case "snappy":
		return s2.NewReader(body, s2.ReaderMaxBlockSize(snappyBlock)), nil
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, err
		}
		return z, nil
	default:
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

// snappyBlock is the most that a frame of snappy holds, decoded.
const snappyBlock = 64 << 10

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

// readable returns what a client accepts less the content codings that engines can know and we can't read, or nil if there are none of
// these. All else stays as it was sent, for the engine to choose as it does: Elasticsearch and OpenSearch go by part of a name in lower
// case and choose snappy for "*", Typesense goes by whole names in any case and chooses nothing for "*" (TestRepliesAreCodedAlike).
func readable(lines []string) []string {
	var kept []string
	same := true
	for _, line := range lines {
		items := strings.Split(line, ",")
		left := slices.DeleteFunc(slices.Clone(items), func(item string) bool {
			name, _, _ := strings.Cut(strings.ToLower(item), ";")
			return strings.Contains(name, "br") || strings.Contains(name, "zstd")
		})
		same = same && len(left) == len(items)
		if len(left) > 0 {
			kept = append(kept, strings.Join(left, ","))
		}
	}
	switch {
	case same:
		return nil
	case kept == nil:
		return []string{"identity"}
	}
	return kept
}
