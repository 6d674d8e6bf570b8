package analysis

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Allocations are counted by tenth of their step.
func TestAllocationsByTenth(t *testing.T) {
	list := []string{ev("user_annotation", "ProfilerStep#1", 1, 0, 1000, ""), ev("user_annotation", "ProfilerStep#2", 1, 1000, 1000, ""), ev("cpu_op", "aten::add", 1, 0, 5, "")}
	for i, at := range []float64{0, 99, 100, 950, 999, 1000, 1999} {
		list = append(list, ev("cuda_runtime", "cudaMalloc", 1, at, 0.5, fmt.Sprintf(`"correlation":%d`, i+1)))
	}
	a := read(t, list...)
	if got := slices.Sorted(maps.Keys(a.AllocIn)); !slices.Equal(got, []int{0, 1, 9, 10, 19}) || a.AllocIn[0] != 2 || a.AllocIn[9] != 2 || a.Allocs != 7 {
		t.Errorf("%v", a.AllocIn)
	}
}
