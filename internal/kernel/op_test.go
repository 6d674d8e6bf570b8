package kernel

import "testing"

func TestHalvedBytes(t *testing.T) {
	wide := &Tensor{Shape: []int{4, 8}, Stride: 8}
	held := &Tensor{Shape: []int{4, 8}, Stride: 8, Compact: true}
	view := &Tensor{Shape: []int{4, 2}, Stride: 8, Parent: held}
	for _, c := range []struct {
		op   Op
		want int64
	}{
		{&GLU{Y: wide, G: wide}, 0},
		{&Dropout{Y: held, X: wide}, 2 * 32},
		{&LinearGradX{DX: held, DY: view, W: wide, Accumulate: true}, 2*2*32 + 2*8},
	} {
		if got := HalvedBytes(c.op); got != c.want {
			t.Errorf("%s: %d bytes less, want %d", c.op.Kind(), got, c.want)
		}
	}
}
