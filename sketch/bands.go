package sketch

// AppendBands appends one key for each band of the sketch: a 64-bit hash of consecutive positions. Two documents share a key if they agree in
// all positions of a band, so an exact-match index over the keys finds candidates. [Candidate] returns the probability that a pair of
// resemblance r is one. Keys of different bands or schemes are equal with a chance of 2^-64. (Locality-sensitive hashing, Indyk and Motwani
// 1998; "Mining of Massive Datasets" §3.4.)
//
// It reports false, and appends nothing, if the sketch has fewer than bands·rows positions, or sides (simhash, where a row is a bit). The
// values of m_smallest and zero_mod_m have no fixed positions. Where b bits of each position are kept, positions agree by chance as well:
// pass r + (1-r)/2^b to [Candidate].
func (s *Sketch) AppendBands(keys []uint64, bands, rows int) ([]uint64, bool) {
	if bands < 1 || rows < 1 || s.Shingles == 0 {
		return keys, false
	}
	width := int(s.Bits)
	if s.Form != Positions && s.Form != Sides && s.Form != VectorSides || width == 0 || bands > 8*len(s.Payload)/width/rows {
		return keys, false
	}
	for band := range bands {
		h := mix(uint64(s.Scheme)<<32 | uint64(band))
		var word uint64
		filled := 0
		for row := range rows {
			at := (band*rows + row) * width
			word = word<<width | uint64(s.Payload[at/8])>>(at%8)&(1<<width-1)
			if filled += width; filled == 64 || row == rows-1 {
				h = mix(h ^ word)
				word, filled = 0, 0
			}
		}
		keys = append(keys, h)
	}
	return keys, true
}
