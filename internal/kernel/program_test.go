package kernel_test

import (
	"fmt"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// A program that no device could run is refused in one line.
func TestProgramCheck(t *testing.T) {
	rows := func(columns int) *kernel.Tensor {
		return &kernel.Tensor{Name: "x", Space: kernel.Batch, Shape: []int{2, columns}, Stride: columns}
	}
	l := &kernel.Layout{}
	many := &kernel.Tally{}
	for i := range kernel.MaxSums + 1 {
		many.Sums = append(many.Sums, kernel.NewSum(fmt.Sprint(i), rows(1), nil))
	}
	for want, p := range map[string]kernel.Program{
		"33 sums, there is room for 32":         {Once: []kernel.Op{many}},
		`sum "a" has no name or is there twice`: {Once: []kernel.Op{&kernel.Tally{Sums: []kernel.Sum{kernel.NewSum("a", rows(1), nil)}}, &kernel.Tally{Sums: []kernel.Sum{kernel.NewSum("a", rows(1), nil)}}}},
		`coefficient "" has no name`:            {PerShard: []kernel.Op{&kernel.RolloutGrad{}}},
		"want a batch tensor of 1 or 3 columns": {Once: []kernel.Op{&kernel.Tally{Sums: []kernel.Sum{kernel.NewSum("a", rows(3), rows(2))}}}},
		"adamw without a reduced gradient":      {Once: []kernel.Op{&kernel.AdamW{Layout: l}, &kernel.Reduce{Layout: l}}},
		"exchange without a reduced gradient":   {Once: []kernel.Op{&kernel.Exchange{Layout: l}, &kernel.Reduce{Layout: l}}},
		"the gradient is reduced twice":         {Once: []kernel.Op{&kernel.Reduce{Layout: l}, &kernel.Reduce{Layout: l}}},
		"s[1] is no scalar at place 0":          {Tensors: []*kernel.Tensor{{Name: "s", Space: kernel.Scalar, Shape: []int{1}, Stride: 1}}},
	} {
		p.Name = "p"
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want one line with %q", err, want)
		}
	}
	good := kernel.Program{Once: []kernel.Op{&kernel.Reduce{Layout: l}, &kernel.Exchange{Layout: l}, &kernel.AdamW{Layout: l}, &kernel.Tally{Sums: []kernel.Sum{kernel.NewSum("a", rows(3), rows(1))}}}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}

// Sums of two stretches add up by name, and come back from JSON as they were.
func TestMetricsAddUpByName(t *testing.T) {
	a := kernel.Metrics{Steps: 2, GradNorm: 1, Sums: kernel.NewSums([]string{"x", "y"}, []float64{1, 2})}
	b := kernel.Metrics{Steps: 3, GradNorm: 0.5, Sums: kernel.NewSums([]string{"y", "z"}, []float64{10, 20})}
	got := a.Plus(b)
	want := kernel.SumsOf(map[string]float64{"x": 1, "y": 12, "z": 20})
	if got.Steps != 5 || got.GradNorm != 1.5 || !got.Sums.Equal(want) || a.Sum("y") != 2 || got.Sum("none") != 0 {
		t.Errorf("%+v", got)
	}
	if first := (kernel.Metrics{}).Plus(a); !first.Sums.Equal(a.Sums) {
		t.Errorf("%+v", first)
	}
	text, err := got.Sums.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var back kernel.Sums
	if err := back.UnmarshalJSON(text); err != nil || !back.Equal(want) {
		t.Errorf("%s came back as %+v, %v", text, back, err)
	}
}

// TestPiecesTile: pieces of all processes follow each other without a gap, begin at whole units and
// differ by one unit at most.
func TestPiecesTile(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 1000} {
		for _, unit := range []int{1, 8} {
			for _, size := range []int{0, 1, 2, 3, 8} {
				end, least, most := 0, n, 0
				for rank := range max(1, size) {
					from, to := kernel.Share{Rank: rank, Size: size}.Piece(n, unit)
					if from != end || to < from || from%unit != 0 && from != n {
						t.Fatalf("%d in units of %d: process %d of %d has %d to %d, the one before ends at %d", n, unit, rank, size, from, to, end)
					}
					units := (to - from + unit - 1) / unit
					end, least, most = to, min(least, units), max(most, units)
				}
				if end != n || most > least+1 {
					t.Errorf("%d in units of %d: %d processes end at %d, with %d to %d units each", n, unit, size, end, least, most)
				}
			}
		}
	}
}
