package cuda

import (
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel/cuda/bind"
)

// TestAWrongLaunchIsRefused: an argument too many, an address in the place of a size, a number in
// the place of a size, and too many threads are refused by the kernel's name; the launch as it
// should be is not.
func TestAWrongLaunchIsRefused(t *testing.T) {
	good := bind.Launch{Module: "linear_tf32", Kernel: "linear_large", Grid: bind.Dim3{1, 1, 1}, Block: bind.Dim3{256, 1, 1},
		Args: []any{uint64(1), uint64(2), uint64(3), uint64(4), uint64(5), int32(6), int32(7), int32(8), int32(9), int32(10), int32(11)}}
	d, ok := declarations(t)[good.Key()]
	if !ok {
		t.Fatal("no such kernel")
	}
	if why := d.refuses(good); why != "" {
		t.Fatal(why)
	}
	for want, wrong := range map[string]func(l *bind.Launch){
		"takes 11 arguments and is given 10":                 func(l *bind.Launch) { l.Args = l.Args[1:] },
		"declares parameter 5 as u64 and is given u32":       func(l *bind.Launch) { l.Args[4], l.Args[5] = l.Args[5], l.Args[4] },
		"declares parameter 11 as u32 and is given f32":      func(l *bind.Launch) { l.Args[10] = float32(11) },
		"declares parameter 6 as u32 and is given int":       func(l *bind.Launch) { l.Args[5] = 6 },
		"allows 256 threads in a block and is given 512":     func(l *bind.Launch) { l.Block[0] = 512 },
		"linear_tf32.linear_large is given the grid [0 1 1]": func(l *bind.Launch) { l.Grid[0] = 0 },
	} {
		l := good
		l.Args = slices.Clone(good.Args)
		wrong(&l)
		if why := d.refuses(l); !strings.HasPrefix(why, good.Key()) || !strings.HasSuffix(why, want) {
			t.Errorf("%q, want %q", why, want)
		}
	}
}
