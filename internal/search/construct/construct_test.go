package construct

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"haul/internal/vrp"
)

// scattered is a problem of n customers anywhere in a square.
func scattered(n int, capacity int32) *vrp.Problem {
	r := rand.New(rand.NewPCG(7, uint64(n)))
	p := &vrp.Problem{Capacity: capacity, Metric: vrp.Rounded}
	for v := range n + 1 {
		p.X, p.Y = append(p.X, math.Floor(1e5*r.Float64())), append(p.Y, math.Floor(1e5*r.Float64()))
		p.Demand = append(p.Demand, int32(min(v, 1)*(1+r.IntN(9))))
	}
	return p
}

// The curve goes from cell to neighbouring cell, and routes along it keep capacities.
func TestRoutesAlongTheCurve(t *testing.T) {
	const side = 64
	cells := make([][2]uint32, side*side)
	for x := range uint32(side) {
		for y := range uint32(side) {
			cells[hilbert(x, y)] = [2]uint32{x, y}
		}
	}
	for i := 1; i < len(cells); i++ {
		a, b := cells[i-1], cells[i]
		if dx, dy := int(a[0])-int(b[0]), int(a[1])-int(b[1]); dx*dx+dy*dy != 1 {
			t.Fatalf("cell %v follows %v", b, a)
		}
	}
	p := scattered(20000, math.MaxInt32)
	if tour := AlongCurve(p); vrp.Validate(p, tour) != nil || len(tour.Routes) != 1 || p.Cost(tour) > 1.5*0.7124*math.Sqrt(20000*1e10) {
		t.Errorf("a tour of %.0f in %d routes", p.Cost(tour), len(tour.Routes))
	}
	for _, p := range []*vrp.Problem{scattered(1, 9), scattered(500, 9), scattered(501, 40), {Capacity: 5, Metric: vrp.Exact, X: []float64{1, 1, 1}, Y: []float64{2, 2, 2}, Demand: []int32{0, 5, 5}}} {
		s := AlongCurve(p)
		if err := vrp.Validate(p, s); err != nil {
			t.Error(err)
		}
	}
}

// Savings in pieces are in the order of one sort.
func TestSavingsInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2 * savingsPiece, 2*savingsPiece + 1, 4 * savingsPiece} {
		for _, levels := range []int{1, 40} {
			list := make([]saving, n)
			for i := range list {
				list[i] = saving{float64(r.IntN(levels)), int32(i % 1000), int32(i / 1000)}
			}
			want := slices.Clone(list)
			slices.SortFunc(want, bySaving)
			o := ordering{list: list, ends: []int{n}}
			for o.at < n {
				o.next()
			}
			if !slices.Equal(list, want) {
				t.Errorf("%d savings of %d sizes are out of order", n, levels)
			}
		}
	}
}
