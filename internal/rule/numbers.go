package rule

import (
	"slices"
	"strings"
	"unicode"
)

// NumbersApart says in which numbers, signs and versions two texts differ, given as words for shingles: "numbers differ: 1.5, 4.0 only in A; 15,
// 40 only in B", where inA and inB are "in A" and "in B". It is empty if they have the same ones in the same order.
func NumbersApart(a, b []string, inA, inB string) string {
	numbersA, numbersB := numbersIn(a), numbersIn(b)
	if slices.Equal(numbersA, numbersB) {
		return ""
	}
	onlyA, onlyB := without(numbersA, numbersB), without(numbersB, numbersA)
	var parts []string
	if len(onlyA) > 0 {
		parts = append(parts, shorten(onlyA)+" only "+inA)
	}
	if len(onlyB) > 0 {
		parts = append(parts, shorten(onlyB)+" only "+inB)
	}
	if len(parts) == 0 {
		return "the numbers are in another order"
	}
	return "numbers differ: " + strings.Join(parts, "; ")
}

// numbersIn returns the words that are numbers, signs or versions: all others have letters and their marks alone.
func numbersIn(words []string) (list []string) {
	for _, word := range words {
		if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
			list = append(list, word)
		}
	}
	return list
}

// without returns the first list without the words of the second, each as often as it has it.
func without(list, other []string) (rest []string) {
	counts := map[string]int{}
	for _, word := range other {
		counts[word]++
	}
	for _, word := range list {
		if counts[word]--; counts[word] < 0 {
			rest = append(rest, word)
		}
	}
	return rest
}

// maxNumbers is how many numbers are listed.
const maxNumbers = 5

func shorten(list []string) string {
	if len(list) > maxNumbers {
		list = append(slices.Clone(list[:maxNumbers]), "…")
	}
	return strings.Join(list, ", ")
}
