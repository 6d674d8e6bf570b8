package doctor

import (
	"bytes"
	"strings"
	"testing"

	"haul/internal/doctor/report"
)

// A line of a comparison reads before, after, change, unit.
func TestLinesOfADifference(t *testing.T) {
	build := func(us float64) *report.Report {
		s := newSynth()
		for n := range 3 {
			s.gpu = s.now
			s.step(n, func() { loaderFor(us)(s); s.dense(40, 100) })
		}
		return diagnose(t, s.json())
	}
	var b bytes.Buffer
	if err := report.Compare(build(5000), build(2000)).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	line := ""
	for _, l := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(l, "  idle in the data loader") {
			line = strings.Join(strings.Fields(strings.TrimPrefix(l, "  idle in the data loader")), " ")
		}
	}
	if line != "5.00 2.00 -3.00 ms" {
		t.Errorf("%q in\n%s", line, b.String())
	}
}
