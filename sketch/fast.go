package sketch

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The fast way from a text to its tokens has the same result as text.go, for the default folding and [Auto]. It has two passes. The
// first, here, writes the base text; the second, in fastwords.go, finds the words in it. Both take eight bytes of ASCII at a time.
// Other runes are looked up in the pages of runes.go, and what becomes of a letter and a mark in a cache. If a rune may combine with its
// neighbours in another way, the text between two blanks takes the plain way: a blank combines with nothing, and no word spans one.

const (
	sevens = 0x7f7f7f7f7f7f7f7f
	tops   = 0x8080808080808080
	each   = 0x0101010101010101
)

// padding is the free bytes after a base text, so that reading and writing ahead need no check.
const padding = 128 + 16

// baseWriter is the state of the first pass.
type baseWriter struct {
	text string
	in   int // the next byte of text to read
	out  []byte
	n    int // the next byte of out to write
	// start is where the text's begins in out.
	start int
	// wordBits and oddBits are those of the workspace. They are right for all bytes before n, except within runes.
	wordBits, oddBits []byte
	// blank: the last byte written is a blank, or nothing is written.
	blank bool
	marks
}

// appendBase appends the base text of a text to w.base.
func (w *workspace) appendBase(text string) {
	start := len(w.base)
	b := baseWriter{text: text, out: w.base[:cap(w.base)], n: start, start: start, wordBits: w.wordBits, oddBits: w.oddBits, blank: true}
	b.reserve(0)
	b.oddBits[start/8] &= 1<<(start%8) - 1
	clear(b.oddBits[start/8+1:][:(len(text)+padding)/8])
	for {
		b.blocks()
		if b.in == len(text) {
			break
		}
		b.runes()
	}
	if b.blank && b.n > start {
		b.n--
	}
	b.wordBits[b.n/8] &= 1<<(b.n%8) - 1
	clear(b.wordBits[b.n/8+1:][:padding/8])
	w.base, w.wordBits, w.oddBits = b.out[:b.n], b.wordBits, b.oddBits
}

// reserve makes room for size bytes, for the rest of the text, if no rune of it grows, and for padding.
func (b *baseWriter) reserve(size int) {
	size += b.n + len(b.text) - b.in + padding
	if size <= len(b.out) && size/8+padding <= len(b.wordBits) {
		return
	}
	size += size / 4
	out, wordBits, oddBits := make([]byte, size), make([]byte, size/8+padding), make([]byte, size/8+padding)
	copy(out, b.out[:b.n])
	copy(wordBits, b.wordBits)
	copy(oddBits, b.oddBits)
	b.out, b.wordBits, b.oddBits = out, wordBits, oddBits
}

// blocks writes eight bytes at a time, up to the first byte that is neither ASCII nor of a letter from à to ÿ, a control character that is
// no white space, or the second of two blanks. At the end of the text it leaves up to seven bytes, or fifteen from such a letter on.
func (b *baseWriter) blocks() {
	text, wordBits := b.text[b.in:], b.wordBits[b.n/8:]
	out := b.out[b.n:][:len(text)]
	before := wordBits[0]
	blank, more := uint64(0), 0 // the bit 0x80 of blank: the last byte is a blank
	if b.blank {
		blank = 0x80
	}
	// The bit 0x80 of half: the first byte of the block is the second of a letter.
	i, blank, half := b.blocks32(out, wordBits, text, blank)
	for ; i+8 <= len(text); i += 8 {
		x := load(text[i : i+8])
		z := x & sevens
		strange := (x | ^(z + each*(0x80-' '))) & tops // not ASCII, or a control character
		if strange != 0 {
			latin, space := smallLatin(x, text[i+1:]), spaceBytes(x)
			strange &^= latin | latin<<8 | half | space
			half = latin >> 56
			if latin != 0 {
				b.setOdds(b.n+i, gather(latin))
			}
			x = x&^(space>>7*0xff) | space>>2 // 0x20 is a blank
			z = x & sevens
		}
		// Each of these has the top bit set in the bytes of its kind.
		blanks := (tops - (z ^ each*' ')) &^ x
		small := z | each*('a'-'A')
		letters := ((small + each*(0x80-'a')) ^ (small + each*(0x80-'z'-1))) &^ x
		binary.LittleEndian.PutUint64(out[i:i+8], x|letters&tops>>2)
		wordBits[i/8] = byte(gather(letters | numberBytes(z) | x))
		odd := strange | blanks&(blanks<<8|blank)&tops
		if odd != 0 {
			if more = bits.TrailingZeros64(odd) / 8; more > 0 {
				blank = blanks >> (8*more - 8)
			}
			break
		}
		blank = blanks >> 56
	}
	if i += more; i == 0 {
		wordBits[0] = before
		return
	}
	shiftBits(wordBits[:i/8+8], before, b.n%8)
	b.blank, b.ccc = blank&0x80 != 0, 0
	b.in, b.n = b.in+i, b.n+i
}

// setOdd notes that the rune at a place of out is odd.
func (b *baseWriter) setOdd(at int) { b.oddBits[at/8] |= 1 << (at % 8) }

// setOdds is setOdd for eight places, given as bits.
func (b *baseWriter) setOdds(at int, odd uint64) {
	place := b.oddBits[at/8:]
	binary.LittleEndian.PutUint16(place, binary.LittleEndian.Uint16(place)|uint16(odd<<(at%8)))
}

// smallLatin has the top bit set in the first byte of each letter from à to ÿ, which stay the same in a base text. rest is the text after
// the first byte of x. Near the end of the text it returns 0, so that no letter is cut in two.
func smallLatin(x uint64, rest string) uint64 {
	if len(rest) < 15 {
		return 0
	}
	next := load(rest[:8])
	first, second, division := x^each*0xc3, next^each*0xa0, next^each*0xb7
	return ^(first | (first&sevens + sevens) | second | (second&sevens + each*0x60)) & (division | (division&sevens + sevens)) & tops
}

// spaceBytes has the top bit set, alone, in each byte of ASCII that is white space but no blank.
func spaceBytes(x uint64) uint64 {
	z := x & sevens
	return ((z + each*(0x80-'\t')) ^ (z + each*(0x80-'\r'-1))) & tops &^ x
}

// numberBytes has the top bit set in each byte of ASCII that is a digit or a sign: one of $%&*+<=>. The bit is set in each sum from its
// threshold on, and the thresholds take turns to begin and to end a range.
func numberBytes(x uint64) uint64 {
	sum := x + each*(0x80-'$')
	in := sum
	sum -= each * ('&' + 1 - '$')
	in ^= sum
	sum -= each * ('*' - '&' - 1)
	in ^= sum
	sum -= each * ('+' + 1 - '*')
	in ^= sum
	sum -= each * ('0' - '+' - 1)
	in ^= sum
	sum -= each * ('9' + 1 - '0')
	in ^= sum
	sum -= each * ('<' - '9' - 1)
	in ^= sum
	sum -= each * ('>' + 1 - '<')
	return in ^ sum
}

// signBytes has the top bit set in each byte of ASCII that is a sign: one of $%&*+<=>.
func signBytes(x uint64) uint64 {
	low := (x + each*(0x80-'$')) ^ (x + each*(0x80-'&'-1))
	middle := (x + each*(0x80-'*')) ^ (x + each*(0x80-'+'-1))
	high := (x + each*(0x80-'<')) ^ (x + each*(0x80-'>'-1))
	return low | middle | high
}

// shiftBits moves all bits up by less than 8, so that the low bits of before come in front.
func shiftBits(all []byte, before byte, by int) {
	carry := uint64(before) & (1<<by - 1)
	for by != 0 && len(all) >= 8 {
		x := binary.LittleEndian.Uint64(all)
		binary.LittleEndian.PutUint64(all, x<<(by&7)|carry)
		carry, all = x>>((64-by)&63), all[8:]
	}
}

// gather returns the top bits of eight bytes in one.
func gather(x uint64) uint64 { return (x & tops >> 7) * 0x0102040810204080 >> 56 }

// load reads eight bytes; the compiler makes one instruction of it.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// enough is how many bytes of ASCII in a row make it worth trying blocks again: more than the blank between two words of another
// script.
const enough = 2

// runes writes rune by rune until enough bytes of ASCII follow one another.
func (b *baseWriter) runes() {
	from, ascii := b.n, 0
	for b.in < len(b.text) && ascii < enough {
		if c := b.text[b.in]; c < utf8.RuneSelf {
			b.in++
			ascii++
			if c != 0 {
				b.write(asciiBase[c])
			}
			continue
		}
		ascii = 0
		if b.stay() {
			continue
		}
		r, size := utf8.DecodeRuneInString(b.text[b.in:])
		b.in += size
		if r != utf8.RuneError || size > 1 {
			from = min(from, b.rune(r))
		}
	}
	for i := from &^ 7; i < b.n; i += 8 {
		b.wordBits[i/8] = byte(gather(wordBytes(binary.LittleEndian.Uint64(b.out[i:]))))
	}
}

// fewLetters is how many letters of ASCII between other runes are not worth trying blocks again.
const fewLetters = 6

// stay copies runes of two and three bytes, as long as they stay the same in the base text, as most runes beyond ASCII do, and single blanks
// and few small letters of ASCII between them. It reports whether it copied any.
func (b *baseWriter) stay() bool {
	text, i, ascii := b.text[b.in:], 0, 0 // ascii is how many letters of ASCII came last
	out := b.out[b.n:][:len(text)]
	for i+4 <= len(text) {
		x := uint32(text[i]) | uint32(text[i+1])<<8 | uint32(text[i+2])<<16 | uint32(text[i+3])<<24
		var r rune
		size := 2
		switch {
		case x&0xc0e0 == 0x80c0 && x&0x1e != 0:
			r = rune(x&0x1f<<6 | x>>8&0x3f)
		case x&0xc0c0f0 == 0x8080e0 && x&0x200f != 0:
			r, size = rune(x&0x0f<<12|x>>8&0x3f<<6|x>>16&0x3f), 3
		case byte(x)-'a' <= 'z'-'a' && ascii < fewLetters:
			out[i], b.ccc = byte(x), 0
			i, ascii = i+1, ascii+1
			continue
		case byte(x) == ' ' && i > 0 && out[i-1] != ' ' && (x&0x8000 != 0 || byte(x>>8)-'a' <= 'z'-'a' && ascii < fewLetters):
			out[i], b.ccc = ' ', 0
			i++
			continue
		default:
			size = 0
		}
		p := pages[r>>pageBits].Load() // pageOf is not inlined
		if p == nil {
			p = makePage(r)
		}
		info := p.info[r&(pageSize-1)]
		if size == 0 || info&staysMask != runeInfo(r) {
			break
		}
		if info.keptLetter(r) {
			b.ccc = 0
		} else if info&(mayCompose|255<<47) == 0 && info.class() != attached {
			b.ccc = 0
			b.setOdd(b.n + i)
		} else if !b.keeps(info, b.n+i) {
			break
		}
		binary.LittleEndian.PutUint32(out[i:], x)
		i, ascii = i+size, 0
	}
	if i == 0 {
		return false
	}
	b.in, b.n = b.in+i, b.n+i
	b.blank = out[i-1] == ' '
	return true
}

// keeps reports whether a rune that may be a mark stays as it is at a place of out. If it does, its odd bit and its combining class are noted.
func (b *baseWriter) keeps(info runeInfo, at int) bool {
	before, size := utf8.DecodeLastRune(b.out[b.start:at])
	ccc, r := info.ccc(), info.base()
	marked := ccc != 0 && b.ccc != 0
	if info&mayCompose != 0 && size > 0 && (marked || compose(before, r) != apart) || b.marks.doubt(ccc) {
		return false
	}
	if size == 0 || before < utf8.RuneSelf && asciiClass[before] != letter || marked || !info.keptMark(r) {
		b.setOdd(at)
	}
	b.ccc = ccc
	return true
}

// write writes a byte of ASCII.
func (b *baseWriter) write(c byte) {
	b.ccc = 0
	if c == ' ' && b.blank {
		return
	}
	b.out[b.n] = c
	b.n++
	b.blank = c == ' '
}

// rune writes the base text of a rune beyond ASCII. It returns where its output begins: after the last blank if rewrite was needed.
func (b *baseWriter) rune(r rune) (from int) {
	from = b.n
	p := pageOf(r)
	info := p.info[r&(pageSize-1)]
	before := b.ccc
	doubt := b.marks.doubt(info.ccc())
	switch {
	case info.class() == blank:
		b.write(' ')
	case info&doubtBase != 0 || doubt:
		return b.rewrite()
	case info&mayCompose != 0 && b.n > b.start:
		return b.compose(r, before, info.ccc())
	case info&manyBase != 0:
		many := p.many[info.base()]
		if many == "" { // invisible
			b.ccc = before
			break
		}
		if !isLetters(many) {
			b.setOdd(b.n)
		}
		b.n += copy(b.out[b.n:], many)
		last, _ := utf8.DecodeLastRuneInString(many)
		b.blank, b.ccc = false, infoOf(last).ccc()
		b.reserve(0)
	default:
		if !infoOf(info.base()).keptLetter(info.base()) {
			b.setOdd(b.n)
		}
		b.n += utf8.EncodeRune(b.out[b.n:b.n+utf8.UTFMax], info.base())
		b.blank, b.ccc = false, info.ccc()
		if info.base() > r {
			b.reserve(0)
		}
	}
	return from
}

// compose writes a rune that may compose with the one before it, and returns where its output begins. before and ccc are the combining
// classes of the two.
func (b *baseWriter) compose(r rune, before, ccc uint8) (from int) {
	last, size := utf8.DecodeLastRune(b.out[b.start:b.n])
	composed := compose(last, r)
	switch {
	case before != 0 && ccc != 0 || composed == manyRunes:
		return b.rewrite()
	case composed == apart:
		composed, size = r, 0
	default:
		ccc = 0
	}
	from = b.n - size
	b.setOdd(from)
	b.n = from + utf8.EncodeRune(b.out[from:from+utf8.UTFMax], composed)
	b.blank, b.ccc = false, ccc
	b.reserve(0)
	return from
}

// rewrite writes the text between two blanks again, in the plain way, and returns where that begins.
func (b *baseWriter) rewrite() (from int) {
	begin, end := 0, b.in
	if blank := strings.LastIndexFunc(b.text[:b.in], unicode.IsSpace); blank >= 0 {
		_, size := utf8.DecodeRuneInString(b.text[blank:])
		begin = blank + size
	}
	from = b.start + 1 + bytes.LastIndexByte(b.out[b.start:b.n], ' ')
	for end < len(b.text) && (b.text[end] >= utf8.RuneSelf || asciiBase[b.text[end]] != ' ') {
		end++
	}
	plain := baseText(b.text[begin:end], Keep{})
	b.in, b.n = end, from
	b.reserve(len(plain))
	b.n += copy(b.out[b.n:], plain)
	for i := from; i < b.n; i++ {
		if b.out[i] >= utf8.RuneSelf {
			b.setOdd(i)
		}
	}
	b.blank, b.ccc = plain == "", 0
	return from
}
