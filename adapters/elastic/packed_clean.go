package elastic

import (
	"bufio"
	"bytes"
	"io"

	"github.com/neardup/sidecar/internal/jsonedit"
)

// maxPackedReply is how long a reply in CBOR or SMILE may be whose fields of ours are cut out: it is held whole.
const maxPackedReply = 8 << 20

// packedOf returns what reads a reply that begins so; nil if it is in neither CBOR nor SMILE.
func packedOf(head []byte) packed {
	switch {
	case bytes.HasPrefix(head, smileHead):
		return smileForm{}
	case len(head) > 0 && head[0]>>5 == cborMap: // no text of JSON or YAML begins with such a byte
		return cborForm{}
	}
	return nil
}

// cleanPacked copies a reply in CBOR or SMILE without the members that are cut. A reply that is too long or malformed is copied unchanged.
func cleanPacked(p packed, dst io.Writer, src *bufio.Reader, cuts jsonedit.Cuts) error {
	body, err := io.ReadAll(io.LimitReader(src, maxPackedReply+1))
	if err != nil {
		_, _ = dst.Write(body)
		return err
	}
	if len(body) <= maxPackedReply {
		body = cutPacked(p, body, cuts)
	}
	if _, err = dst.Write(body); err == nil {
		_, err = io.Copy(dst, src)
	}
	return err
}

// cutPacked returns a body less what is cut.
func cutPacked(p packed, body []byte, cuts jsonedit.Cuts) []byte {
	plain, head, ended := body, 0, len(body)
	if _, ok := p.(smileForm); ok {
		var whole bool
		if plain, ended, whole = smilePlain(body, 4*maxPackedReply); !whole {
			return body
		}
		head = smileHeadLength
	}
	end, ok := p.value(plain, head, 0)
	if !ok {
		return body
	}
	if head == 0 {
		ended = end
	}
	k := packedKnife{p: p, data: plain, cuts: cuts}
	out, _, _ := k.value(append(make([]byte, 0, len(plain)), plain[:head]...), head, false)
	if !k.cut {
		return body
	}
	return append(out, body[ended:]...)
}

// packedKnife cuts members out of a well-formed value.
type packedKnife struct {
	p    packed
	data []byte
	cuts jsonedit.Cuts
	path []string
	cut  bool
}

// value appends what stays of a value and returns where that ends, looking at each byte once. emptied says that the value is to be pruned.
func (k *packedKnife) value(dst []byte, at int, element bool) (out []byte, end int, emptied bool) {
	if first, count, ok := k.p.list(k.data, at); ok {
		dst, end = append(dst, k.data[at:first]...), first
		for ; count != 0; count-- {
			if after, ok := k.p.listEnds(k.data, end); ok {
				return append(dst, k.data[end:after]...), after, false
			}
			dst, end, _ = k.value(dst, end, true)
		}
		return dst, end, false
	}
	first, count, ok := k.p.object(k.data, at)
	if !ok {
		end, _ = k.p.value(k.data, at, 0)
		return append(dst, k.data[at:end]...), end, false
	}
	kept, dropped := 0, 0
	dst = k.p.appendOpen(dst)
	for end = first; count != 0; count-- {
		if after, ok := k.p.ends(k.data, end); ok {
			end = after
			break
		}
		start, before := end, len(dst)
		name, value, _ := k.p.key(k.data, start)
		k.path = append(k.path, name)
		var gone bool
		if k.cuts.Drop(k.path) {
			k.cut, gone = true, true
			end, _ = k.p.value(k.data, value, 0)
		} else {
			dst, end, gone = k.value(append(dst, k.data[start:value]...), value, false)
		}
		k.path = k.path[:len(k.path)-1]
		if gone {
			dst = dst[:before]
			dropped++
		} else {
			kept++
		}
	}
	return k.p.appendClose(dst), end, dropped > 0 && kept == 0 && len(k.path) > 0 && k.cuts.Prune != nil && k.cuts.Prune(k.path, element)
}
