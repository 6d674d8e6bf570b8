package search

import (
	"slices"
	"testing"

	"haul/internal/search/model"
)

// rows are ways to evaluate a problem, and the more general way that each is tested against: a
// search of a row and one of its partner draw the same numbers and find the same routes, with
// positions overlooked and vehicles overloaded. TestDenseSearchesAsFlatDoes is the same for lists
// of 16 bits. ScanSimple, the lists of 32 bits and clocked times overlook other positions than
// their partners do: TestLeanFindsWhatSweepFinds, packed32_test.go and TestClockAgreesWithWalk
// compare them with none overlooked.
var rows = []struct {
	name     string
	problems []string // of fingerprintCases
	has      func(t *model.Traits) bool
	partner  func(t *model.Traits) // makes the traits those of the partner
}{
	{"routes-only", []string{"vrpspd", "vrpb", "mdvrp", "solomon", "routefinder-vrptw"},
		func(t *model.Traits) bool { return t.Store >= model.RoutesOnly },
		func(t *model.Traits) { t.Store = model.Segments }},
	{"windows", []string{"homberger", "hvrptw", "solomon", "routefinder-vrptw"},
		func(t *model.Traits) bool { return t.Time == model.WindowsOnly },
		func(t *model.Traits) { t.Time = model.TimeSegments }},
	{"distance-alone", []string{"hfvrp", "gvrp", "pcvrp"},
		func(t *model.Traits) bool { return t.Insertion == model.DistanceAlone },
		func(t *model.Traits) { t.Insertion = model.LoadTotal }},
}

// A row and its partner have equal routes, costs and random states after every ten of 1,000
// iterations.
func TestRowsFindWhatTheirPartnersFind(t *testing.T) {
	cases := fingerprintCases(t)
	for _, row := range rows {
		for _, name := range row.problems {
			i := slices.IndexFunc(cases, func(c fingerprintCase) bool { return c.name == name })
			if i < 0 {
				t.Errorf("%s: no problem %s", row.name, name)
				continue
			}
			p := cases[i].problem()
			var chains [2]*candidate
			for i := range chains {
				m := compileNear(t.Context(), p)
				if !row.has(&m.Traits) {
					t.Errorf("%s: %s is another row: %+v", row.name, name, m.Traits)
				}
				// Of several rows that a problem is in, the one at hand is tested.
				if m.Traits.Store == model.Packed {
					m.Traits.Store = model.RoutesOnly
				}
				if row.name == "windows" && m.Traits.Scan == model.ScanSimple {
					m.Traits.Scan = model.ScanTable
				}
				if i > 0 {
					row.partner(&m.Traits)
				}
				c := newCandidate(m, model.NewStream(3, 1))
				c.set(nil, nil, nil)
				c.build(t.Context())
				c.typicalLeg()
				chains[i] = c
			}
			for step := range 100 {
				for _, c := range chains {
					c.scheduleOverload(10)
					for range 10 {
						c.step(c.Leg * []float64{1, 0.3, 0.1}[step%3])
					}
				}
				a, b := chains[0], chains[1]
				same := slices.EqualFunc(a.routes, b.routes, func(r, q int32) bool { return slices.Equal(a.states[r].stops, b.states[q].stops) })
				if !same || a.cost != b.cost || a.overload != b.overload || a.State != b.State || !slices.Equal(a.used, b.used) {
					t.Errorf("%s, %s: after %d iterations the routes cost %v, and %v of the partner", row.name, name, 10*(step+1), a.cost, b.cost)
					break
				}
			}
		}
	}
}
