package analysis

import (
	"slices"
	"testing"

	"haul/internal/doctor/trace"
)

// TestLegsBeginWhereAPartIsLongEnough: as long as is wide, and not less.
func TestLegsBeginWhereAPartIsLongEnough(t *testing.T) {
	for second, want := range map[int64]int{99: 1, 100: 2, 101: 2} {
		list := []pieceOfPath{{Span: trace.Span{Start: 0, End: 500}, part: "forward"}, {Span: trace.Span{Start: 500, End: 500 + second}, part: "backward"}}
		if got := legsOf(trace.Span{Start: 0, End: 500 + second}, list, 100); len(got) != want {
			t.Errorf("a part of %d: %d legs, want %d", second, len(got), want)
		}
	}
}

// TestProductsAreRowsColumnsDepth, of plain and of batched ones.
func TestProductsAreRowsColumnsDepth(t *testing.T) {
	form := func(dims ...[]int64) *trace.Form {
		f := &trace.Form{}
		for _, d := range dims {
			f.Inputs = append(f.Inputs, trace.Input{Dims: d})
		}
		return f
	}
	for _, c := range []struct {
		name string
		f    *trace.Form
		want []int64
	}{
		{"aten::mm", form([]int64{2, 3}, []int64{3, 5}), []int64{2, 5, 3}},
		{"aten::bmm", form([]int64{7, 2, 3}, []int64{7, 3, 5}), []int64{2, 5, 3}},
		{"aten::addmm", form([]int64{5}, []int64{2, 3}, []int64{3, 5}), []int64{2, 5, 3}},
		{"aten::mm", form([]int64{2}, []int64{3, 5}), nil},
		{"aten::add", form([]int64{2, 3}, []int64{2, 3}), nil},
	} {
		if got := productDims(c.name, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
