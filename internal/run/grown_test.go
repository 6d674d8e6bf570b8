package run

import (
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/safetensors"
)

// TestGrownWeightsBeginWithTheOldOnes: a weight whose beginning along the named axis is in the file
// is filled up with zeros. Any other difference of shape is refused.
func TestGrownWeightsBeginWithTheOldOnes(t *testing.T) {
	var l kernel.Layout
	l.Add("columns", kernel.InitUniform, 3, 2, 3)
	l.Add("rows", kernel.InitUniform, 3, 3, 2)
	l.Add("same", kernel.InitUniform, 2, 2)
	axes := map[string]int{"columns": 1, "rows": 0}
	file := func(columns, rows, same []int) *Checkpoint {
		c := &Checkpoint{Path: "old", file: &safetensors.File{}}
		for _, p := range []struct {
			name  string
			shape []int
		}{{"columns", columns}, {"rows", rows}, {"same", same}} {
			values := make([]float32, size(p.shape))
			for i := range values {
				values[i] = float32(i + 1)
			}
			c.file.Tensors = append(c.file.Tensors, safetensors.Float32s(p.name, values, p.shape...))
		}
		return c
	}
	flat, err := file([]int{2, 2}, []int{1, 2}, []int{2}).grown(&l, "", axes)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float32{{1, 2, 0, 3, 4, 0}, {1, 2, 0, 0, 0, 0}, {1, 2}} {
		p := l.Params[i]
		if got := flat[p.Offset:][:p.Len()]; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", p.Name, got, want)
		}
	}
	for what, c := range map[string]*Checkpoint{
		"longer along the axis": file([]int{2, 4}, []int{3, 2}, []int{2}), "shorter along the other": file([]int{1, 3}, []int{3, 2}, []int{2}),
		"nothing along the axis": file([]int{2, 0}, []int{3, 2}, []int{2}), "no weight that grows": file([]int{2, 3}, []int{3, 2}, []int{1}),
		"one dimension less": file([]int{2}, []int{3, 2}, []int{2})} {
		if _, err := c.grown(&l, "", axes); err == nil || !strings.Contains(err.Error(), "by its settings") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := file([]int{2, 2}, []int{3, 2}, []int{2}).Weights(&l, ""); err == nil {
		t.Error("weights of a resumed run have grown")
	}
}
