package cli

import (
	"fmt"
	"strings"
	"testing"
)

// TestResultsBreakAtWords: on a screen of 60 columns no word of a result is cut in two, what goes
// on hangs below the text it goes on with, and JSON stays whole, in whatever pieces it is written.
func TestResultsBreakAtWords(t *testing.T) {
	long := strings.Repeat("x", 70)
	for line, want := range map[string]string{
		"short": "short",
		"cost    587 in the file's units, 5.8700 on the unit square (the file is scaled by 100)": "cost    587 in the file's units, 5.8700 on the unit square\n        (the file is scaled by 100)",
		"   - 8 products and convolutions per step in full fp32, 42.7 ms: 97 % of all":           "   - 8 products and convolutions per step in full fp32,\n     42.7 ms: 97 % of all",
		"A cost is the time in which the GPU waited for that cause and no other":                 "A cost is the time in which the GPU waited for that cause\n  and no other",
		"      SSE4.2 AVX AVX2 FMA AVX512F AVX512BW AVX512DQ AVX512VL AVX512_BF16":               "      SSE4.2 AVX AVX2 FMA AVX512F AVX512BW AVX512DQ\n      AVX512VL AVX512_BF16",
		`{"a": "` + long + ` y"}`: `{"a": "` + long + ` y"}`,
		long:                      long,
		"\x1b[1m" + strings.Repeat("ab ", 19) + "abc end\x1b[0m": "\x1b[1m" + strings.Repeat("ab ", 18) + "ab\n  abc end\x1b[0m", // marks of colour give no line more room
		"\x1b[1m" + strings.Repeat("ab ", 18) + "end\x1b[0m":     "\x1b[1m" + strings.Repeat("ab ", 18) + "end\x1b[0m",
	} {
		var out strings.Builder
		s := &ScreenWriter{To: &out, Width: func() int { return 60 }}
		for _, piece := range strings.SplitAfter(line+"\n", " ") {
			fmt.Fprint(s, piece)
		}
		fmt.Fprint(s, "rest")
		if err := s.Flush(); err != nil || out.String() != want+"\nrest" {
			t.Errorf("got %q, want %q", out.String(), want+"\nrest")
		}
	}
}
