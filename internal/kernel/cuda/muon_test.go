package cuda

import (
	"slices"
	"strings"
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/model"
)

// muonLaunches are the optimizer's of a step of the graph transformer with blocks, with the tables
// that they are given.
func muonLaunches(t *testing.T, width, maxShared int) (o *kernel.AdamW, ls []bind.Launch, tables [][]byte, err error) {
	t.Helper()
	p := stepOf(t, 3, 7, 1, model.GTConfig{Width: width, Heads: 2, Layers: 2, FeedMul: 2})
	b := testBinder(p, bind.BF16)
	b.Table = func(data []byte) uint64 {
		tables = append(tables, data)
		return uint64(len(tables)) << 50
	}
	b.MaxShared = maxShared
	for _, op := range p.Once {
		if a, ok := op.(*kernel.AdamW); ok {
			o, a.Side = a, kernel.MuonSide(width)
			ls, err = launchesOf(b, op)
		}
	}
	return o, ls, tables, err
}

// TestMuonLaunches: the kernels take what they are given, every weight is updated by one of them,
// and where there are blocks Muon's and AdamW's kernels may run side by side.
func TestMuonLaunches(t *testing.T) {
	kernels := declarations(t)
	for _, width := range []int{128, 256, 50, 18} {
		o, ls, tables, err := muonLaunches(t, width, 227<<10)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range ls {
			checkLaunch(t, kernels, l)
			names = append(names, l.Kernel)
		}
		if !slices.Equal(names, []string{"adamw_sum", "muon", "adamw_update"}) || !ls[1].Aside || !ls[2].Aside {
			t.Fatalf("width %d: launches %v", width, names)
		}
		updated := make([]int, o.Layout.Len)
		word := func(data []byte, i int) int {
			return int(data[4*i]) | int(data[4*i+1])<<8 | int(data[4*i+2])<<16 | int(data[4*i+3])<<24
		}
		for i := range len(tables[0]) / 8 {
			at, stride := word(tables[0], 2*i), word(tables[0], 2*i+1)
			for r := range o.Side {
				for c := range o.Side {
					updated[at+r*stride+c]++
				}
			}
		}
		for i := range len(tables[1]) / 4 {
			for e := range 16 {
				updated[16*word(tables[1], i)+e]++
			}
		}
		for _, p := range o.Layout.Params {
			for i, n := range updated[p.Offset:][:p.Len()] {
				if n != 1 {
					t.Fatalf("width %d: %s[%d] is updated %d times", width, p.Name, i, n)
				}
			}
		}
		if ls[1].Grid[0] != len(o.Blocks()) || ls[2].Args[7] != int32(4*len(tables[1])) {
			t.Errorf("width %d: %d thread blocks for %d blocks, AdamW for %v weights of %d", width, ls[1].Grid[0], len(o.Blocks()), ls[2].Args[7], 4*len(tables[1]))
		}
	}
	if _, _, _, err := muonLaunches(t, 128, 48<<10); err == nil || !strings.Contains(err.Error(), "use AdamW") {
		t.Errorf("a card with 48 KiB of shared memory: %v", err)
	}
}
