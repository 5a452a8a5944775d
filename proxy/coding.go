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

	fastgzip "github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	fastzlib "github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// encoder returns what writes a reply in an encoding that can be read.
func encoder(encoding string, dst io.Writer) io.WriteCloser {
	switch encoding {
	case "snappy":
		return s2.NewWriter(dst, s2.WriterSnappyCompat(), s2.WriterConcurrency(1))
	case "deflate":
		z, _ := fastzlib.NewWriterLevel(dst, fastzlib.BestSpeed) // the level is a valid one, here and below
		return z
	}
	if z, ok := zippers.Get().(*fastgzip.Writer); ok {
		z.Reset(dst)
		return z
	}
	z, _ := fastgzip.NewWriterLevel(dst, fastgzip.BestSpeed)
	return z
}

// coded returns data in a content coding that we read, or as it is where that is empty.
func coded(coding string, data []byte) []byte {
	if coding = strings.ToLower(coding); coding == "" || coding == "identity" {
		return data
	}
	var b bytes.Buffer
	z := encoder(coding, &b)
	_, _ = z.Write(data) // a Buffer takes every write
	_ = z.Close()
	if z, ok := z.(*fastgzip.Writer); ok {
		zippers.Put(z)
	}
	return b.Bytes()
}

// encoded reports whether the body of a request is compressed. Engines read it as it is where they do not know the encoding, or it has several.
func encoded(r *http.Request) bool { return decodes(r.Header.Get("Content-Encoding")) }

// codings are the content codings of bodies that we decode, and whether we decode and encode replies in them. (Engines that do not know snappy or
// zstd refuse such a body. zstd is taken out of what a client accepts: see acceptReadable.)
var codings = map[string]bool{"gzip": true, "x-gzip": true, "deflate": true, "x-deflate": false, "snappy": true, "zstd": false}

// decodes reports whether engines decompress a body of the encoding.
func decodes(encoding string) bool {
	_, known := codings[strings.ToLower(encoding)]
	return known
}

// codingOf returns the content coding of a reply, empty for none, and whether it can be read.
func codingOf(resp *http.Response) (coding string, readable bool) {
	if coding = strings.ToLower(resp.Header.Get("Content-Encoding")); coding == "identity" {
		coding = ""
	}
	return coding, coding == "" || codings[coding]
}

// endsEarly reports whether a whole body could be decoded up to where it ends early. In gzip or deflate engines take that much of it.
func endsEarly(encoding string, plain []byte, err error) bool {
	switch strings.ToLower(encoding) {
	case "snappy", "zstd":
		return false
	}
	return len(plain) > 0 && errors.Is(err, io.ErrUnexpectedEOF)
}

// uncompressed reports whether the head of a body is not zstd although its header says so. An engine that does not know zstd reads it as it is.
// One that does also reads frames of old versions, whose first byte alone differs.
func uncompressed(r *http.Request, head []byte) bool {
	frame := len(head) > 3 && string(head[1:4]) == "\xB5\x2F\xFD"
	skippable := len(head) > 3 && head[0]>>4 == 5 && string(head[1:4]) == "\x2A\x4D\x18"
	return strings.EqualFold(r.Header.Get("Content-Encoding"), "zstd") && !frame && !skippable
}

// maxZstdWindow bounds the memory for decoding zstd, which is allocated at once. leastZstdWindow is what frames after the first one can take in any
// case.
const maxZstdWindow, leastZstdWindow = 8 << 20, 1 << 20

// windowOf returns how much memory decoding a body with this head takes, beside what every encoding takes.
func windowOf(encoding string, head []byte) int64 {
	if !strings.EqualFold(encoding, "zstd") {
		return 0
	}
	var frame zstd.Header
	if err := frame.Decode(head); err != nil || frame.Skippable {
		return maxZstdWindow
	}
	return int64(min(max(frame.WindowSize, leastZstdWindow), maxZstdWindow))
}

// decoder returns a body without its encoding, the body itself where that is empty. window is what [windowOf] returned for it. The standard library decodes:
// klauspost/compress, which encodes, takes a stream that is cut within the head of a further member for a whole one.
func decoder(encoding string, window int64, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(encoding) {
	case "":
		return body, nil
	case "deflate", "x-deflate":
	case "snappy":
		return s2.NewReader(body, s2.ReaderMaxBlockSize(snappyBlock)), nil
	case "zstd":
		z, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(window)))
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
	// Engines take it for zlib by other bits than RFC 1950 has for that: a body whose header names a smaller window is raw to them.
	if head, err := b.Peek(2); err == nil && head[0]&0x78 == 0x78 && (int(head[0])<<8|int(head[1]))%31 == 0 {
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

// acceptReadable takes out of what a client accepts the content codings that engines can know and we can't read. All else stays as it was sent,
// for the engine to choose as it does: Elasticsearch and OpenSearch go by part of a name in lower case and choose snappy for "*", Typesense goes
// by whole names in any case and chooses nothing for "*" (TestRepliesAreCodedAlike).
func acceptReadable(header http.Header) {
	var kept []string
	same := true
	for _, line := range header["Accept-Encoding"] {
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
	if !same && kept == nil {
		kept = []string{"identity"}
	}
	if !same {
		header["Accept-Encoding"] = kept
	}
}
