package proxy

import (
	"bytes"
	"compress/zlib"
	"strconv"
	"strings"
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
		z, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed) // the level is a valid one, and a Buffer takes every write
		_, _ = z.Write(data)
		_ = z.Close()
		return b.Bytes()
	}
	return data
}
