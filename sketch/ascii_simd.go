//go:build goexperiment.simd && amd64

package sketch

import (
	"encoding/binary"
	"simd/archsimd"
	"unsafe"
)

// hasAVX2 says whether the processor has the instructions that blocks32 needs.
var hasAVX2 = archsimd.X86.AVX2()

// A byte of ASCII is a word byte if the row of its low half has a bit at its high half. Each half of a vector looks up in a table of its own,
// so each table is there twice. A byte beyond ASCII has neither a row nor a bit; it is a word byte, too.
var wordRows, highBits = func() (rows, bits [32]uint8) {
	for c := range uint8(0x80) {
		bits[c>>4], bits[c>>4+16] = 1<<(c>>4), 1<<(c>>4)
		if isWordByte[c] || c >= 'A' && c <= 'Z' {
			rows[c&15] |= 1 << (c >> 4)
			rows[c&15+16] |= 1 << (c >> 4)
		}
	}
	return rows, bits
}()

// blocks32 does what the loop of blocks does, 32 bytes at a time, until one of them ends that loop or fewer than 40 are left. It returns how
// many bytes it took, and what the loop goes on with.
func (b *baseWriter) blocks32(out, wordBits []byte, text string, blank uint64) (i int, _, half uint64) {
	if !hasAVX2 || len(text) < 40 {
		return 0, blank, 0
	}
	in := unsafe.Slice(unsafe.StringData(text), len(text))
	rows, bits, low := archsimd.LoadUint8x32(&wordRows), archsimd.LoadUint8x32(&highBits), archsimd.BroadcastUint8x32(15)
	blanks := archsimd.BroadcastInt8x32(' ')
	// Added to a byte, the first of each pair makes the last of a range 0x7f. All in the range are then above the second.
	toSpace, aboveSpace := archsimd.BroadcastInt8x32(0x7f-'\r'), archsimd.BroadcastInt8x32(0x7e-('\r'-'\t'))
	toCapital, aboveCapital := archsimd.BroadcastInt8x32(0x7f-'Z'), archsimd.BroadcastInt8x32(0x7e-('Z'-'A'))
	before, second := uint32(blank>>7), uint32(0) // of the first byte: whether a blank is before it; whether it is the second of a letter
	for ; i+40 <= len(in); i += 32 {
		x := archsimd.LoadUint8x32Slice(in[i:]).AsInt8x32()
		x = blanks.Merge(x, x.Add(toSpace).Greater(aboveSpace))
		strange := blanks.Greater(x).ToBits() // bytes beyond ASCII are negative
		latin := uint32(0)
		if strange != 0 {
			latin = smallLatin32(x, archsimd.LoadUint8x32Slice(in[i+1:]).AsInt8x32())
			strange &^= latin | latin<<1 | second
		}
		blank := x.Equal(blanks).ToBits()
		if strange|blank&(blank<<1|before) != 0 {
			break
		}
		before, second = blank>>31, latin>>31
		if latin != 0 {
			at := b.n + i
			odd := b.oddBits[at/8:]
			binary.LittleEndian.PutUint64(odd, binary.LittleEndian.Uint64(odd)|uint64(latin)<<(at%8))
		}
		bit := bits.PermuteOrZeroGrouped(x.AsUint16x16().ShiftAllRight(4).AsUint8x32().And(low).AsInt8x32())
		word := rows.PermuteOrZeroGrouped(x).And(bit).Equal(bit).ToBits()
		binary.LittleEndian.PutUint32(wordBits[i/8:], word)
		x.Or(blanks.Masked(x.Add(toCapital).Greater(aboveCapital))).AsUint8x32().StoreSlice(out[i:])
	}
	archsimd.ClearAVXUpperBits()
	return i, uint64(before) << 7, uint64(second) << 7
}

// smallLatin32 has a bit for the first byte of each letter from à to ÿ, as [smallLatin]. next are the bytes after those of x.
func smallLatin32(x, next archsimd.Int8x32) uint32 {
	first := x.Equal(archsimd.BroadcastInt8x32(0xc3 - 0x100))
	second := next.Greater(archsimd.BroadcastInt8x32(0x9f - 0x100)).And(archsimd.BroadcastInt8x32(0xc0 - 0x100).Greater(next))
	division := next.Equal(archsimd.BroadcastInt8x32(0xb7 - 0x100))
	return first.And(second).ToBits() &^ division.ToBits()
}
