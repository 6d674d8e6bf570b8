package files

import (
	"slices"
	"strings"
	"testing"
)

// TestTextsOfOtherEditors: a mark of byte order, old line ends and small letters say nothing else.
func TestTextsOfOtherEditors(t *testing.T) {
	for name, text := range map[string]string{
		"lilim":   "2\t10\t1\n0\t0\t0\t0\t0\t100\t0\t0\t0\n1\t3\t4\t2\t0\t90\t1\t0\t2\n2\t6\t8\t-2\t0\t90\t1\t1\t0\n",
		"cordeau": "2 1 2 1\n0 10\n1 3 4 0 2 1 1 1\n2 6 8 0 2 1 1 1\n3 0 0 0 0 0 0\n",
		"vrplib":  "NAME : a\nTYPE : CVRP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 9\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 8\nDEMAND_SECTION\n1 0\n2 2\n3 2\nDEPOT_SECTION\n1\n-1\nEOF\n",
	} {
		for how, edit := range map[string]func(string) string{
			"as it is": func(s string) string { return s },
			"BOM":      func(s string) string { return "\ufeff" + s },
			"CR":       func(s string) string { return strings.ReplaceAll(s, "\n", "\r") },
			"CRLF":     func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
			"small":    strings.ToLower,
		} {
			p, err := ReadProblem(strings.NewReader(edit(text)), "f", Options{})
			if err != nil || p.N() != 2 || p.Dist(1, 2) != 5 {
				t.Errorf("%s, %s: %v", name, how, err)
			}
		}
	}
}

// TestGroupsThatEndTooSoon: a list of groups has no length, so a file that was cut off there reads
// as one with fewer of them.
func TestGroupsThatEndTooSoon(t *testing.T) {
	const text = "NAME : a\nTYPE : GVRP\nDIMENSION : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 9\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 8\n4 1 1\n5 2 2\n" +
		"DEMAND_SECTION\n1 0\n2 2\n3 2\n4 1\n5 1\nMUTUALLY_EXCLUSIVE_GROUP_SECTION\n1 2 3\n2 4 5\n"
	const note = "no EOF behind MUTUALLY_EXCLUSIVE_GROUP_SECTION: if the file was cut off, groups are missing"
	for end, want := range map[string]bool{"": true, "EOF\n": false} {
		p, err := ReadProblem(strings.NewReader(text+end), "f", Options{})
		if err != nil || slices.Contains(p.Notes, note) != want {
			t.Errorf("%q: %v %v", end, err, p)
		}
	}
}
