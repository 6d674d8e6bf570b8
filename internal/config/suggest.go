package config

import "strings"

// Nearest returns the candidate that a mistyped word most likely meant, or "".
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }

// nearest returns the candidate that a mistyped key most likely meant, or "". It compares the whole
// key, and also the last part alone, so that it finds a key in another section. Of equal candidates
// the first one is taken.
func nearest(key string, candidates []string) string {
	const longest = 200 // nothing that long is a typing error, and the distance is quadratic
	if len(key) > longest {
		return ""
	}
	best, bestCost := "", 1<<30
	word := lastWord(key)
	for _, c := range candidates {
		cost := 1 << 30
		if d := editDistance(key, c); d <= tolerance(key) {
			cost = d
		}
		if w := lastWord(c); w != c || word != key {
			if d := editDistance(word, w); d <= tolerance(word) {
				cost = min(cost, d+1)
			}
		}
		if cost < bestCost {
			best, bestCost = c, cost
		}
	}
	return best
}

// tolerance is the number of typing errors allowed for a key: about one in four letters.
func tolerance(key string) int { return max(1, min(4, len(key)/4)) }

func lastWord(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

// editDistance counts the insertions, deletions, replacements and swaps of neighbours that turn a
// into b (optimal string alignment). It ignores case.
func editDistance(a, b string) int {
	x, y := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	before, last, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			replace := last[j-1]
			if x[i-1] != y[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(y)]
}
