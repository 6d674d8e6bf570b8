package files

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// idle is what stands before numbers that say nothing of the problem: ids that VROOM's answer alone
// repeats, and a group's own number.
var idle = regexp.MustCompile(`("vehicles":\[\{"id":|"breaks":\[\{"id":|_GROUP_SECTION\n1 3 5\n)$`)

// TestEveryNumberCounts: no number of a file is dropped in silence. Another number in its place is
// another problem, a note or a refusal.
func TestEveryNumberCounts(t *testing.T) {
	var own bytes.Buffer
	if err := WriteJSON(&own, drawn()); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"json": own.String(), "geojson": geojsonText, "vroom": vroomText}
	for i, text := range samples() {
		all["sample "+strconv.Itoa(i)] = text
	}
	number := regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text := all[name]
		o := Options{Speed: 30, Capacity: 10}
		was, err := ReadProblem(strings.NewReader(text), "f", o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		counted := 0
		for _, at := range number.FindAllStringIndex(text, -1) {
			same := 0
			for _, more := range []float64{1, 2} { // one of them may be what stands for nothing
				x, err := strconv.ParseFloat(text[at[0]:at[1]], 64)
				if err != nil {
					t.Fatal(err)
				}
				p, err := ReadProblem(strings.NewReader(text[:at[0]]+strconv.FormatFloat(x+more, 'f', -1, 64)+text[at[1]:]), "f", o)
				if err == nil && cmp.Equal(was, p) {
					same++
				}
			}
			if counted++; same == 2 && !idle.MatchString(text[:at[0]]) {
				t.Errorf("%s: %q says nothing, behind %q", name, text[at[0]:at[1]], text[max(0, at[0]-40):at[0]])
			}
		}
		if counted < 5 {
			t.Errorf("%s: %d numbers", name, counted)
		}
	}
}
