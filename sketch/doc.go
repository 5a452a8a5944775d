// Package sketch turns texts into small sketches and sketches into an estimate of how much the texts share.
//
// A text is normalised and cut into words; every run of w consecutive words is a shingle (in scripts written without spaces, every
// run of n characters); a document is the set of its shingles. The resemblance of two documents is |A∩B| / |A∪B| of their sets, the
// containment of one in the other |A∩B| / |A| (Broder, "On the resemblance and containment of documents", 1997). A sketch is
// a small summary of one set. Both are estimated from two sketches alone, without the texts.
//
//	sketcher, err := sketch.New(sketch.DefaultScheme())
//	a, ok := sketcher.Sketch("My name is Inigo Montoya. You killed my father. Prepare to die.")
//	b, ok := sketcher.Sketch("Hello! My name is Inigo Montoya. You killed my father.")
//	agreement, comparable := a.Agreement(&b)
//
// # Schemes
//
// Two sketches are comparable only when they come from the same [Scheme]: family, features, folding, sizes and seed. The seed is
// the operator's secret and keys every hash, so that nobody else can craft a text that collides on purpose. The same text under the
// same scheme id gives the same sketch on every machine; testdata/known_answers.json holds the vectors. A release that changes what
// a text becomes raises the text version, and with it every scheme id.
//
// # Families
//
// All estimate resemblance; [Sketch.Agreement] says how. The first four do so without bias, simhash without bias the angle, hamming
// the share of equal bits exactly.
//
//	family            source                                       keeps                             for
//	fast_similarity   Dahlgaard, Knudsen, Thorup 2017              k positions of 1 to 8 bits        nearly everything: the default
//	permutations      Broder; CS124; Manning and Raghavan          k positions of 1 to 8 bits        min-hash as in the textbooks
//	m_smallest        F_m of Manning and Raghavan                  the m smallest hashes             exact results for short documents
//	zero_mod_m        V_m of Manning and Raghavan                  hashes that are 0 mod m           sketches that grow with the document
//	simhash           Charikar 2002                                one side of each of k hyperplanes vectors; indices that have simhashes already
//	hamming           –                                            a 64-bit value that came ready    images, simhashes made elsewhere
//
// # Vectors
//
// Under [Vectors] a document is one vector of numbers, and the agreement of two is the cosine of the angle between them: [Sketcher.SketchVector].
//
// # Words
//
// A text is first freed of what does not make another text: characters that cannot be seen, case, accents, forms of one character (width,
// ligatures, presentation forms), and traditional Chinese is made simplified. Then it is cut at the word borders of UAX #29. A number is one
// word with the marks inside of it, so 1.5 is not 15. A sign of money, arithmetic or comparison is a word, so -3 is not 3 and == is not !=.
// Other punctuation is dropped. A character of a script without spaces is a token by itself.
//
// # What else a sketch says
//
//   - The fingerprint is a hash of the text with case and white space folded: equal ones mean the same text ([Sketch.SameText]).
//   - Words is the length of the document. A Chinese or Japanese character is half a word, a letter of Thai and the like a quarter, a sign
//     nothing.
//   - Numbers is a hash of all numbers and signs in their order.
//   - Topics is a table of the words that occur often and of those that are repeated ([Sketch.OtherTopics]). Documents of fewer than 40
//     words have none.
//
// Two sketches that are equal but for the fingerprint are of the same words ([Sketch.SameWords]).
//
// # Short and empty texts
//
// A text without a letter, digit or sign has no sketch, except under [Tags] and Keep.Punctuation. A text too short for a shingle becomes one
// shingle. Several texts of one document are cut separately, so no shingle spans two of them.
//
// # Speed
//
// [Sketcher.SketchInto] makes one pass over the bytes for the fingerprint's text, one for the words and one for the positions. It
// allocates nothing if the sketch's payload is large enough, unless the text has several marks on one letter in another than the usual form.
// HTML is first turned into text. The options of [Keep] and features other than [Auto] are
// 15 to 50 times slower.
//
// The package does no I/O, starts no goroutine and reads no clock. A [Sketcher] is safe for concurrent use.
package sketch
