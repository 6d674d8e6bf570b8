package cpu

import (
	"fmt"
	"testing"

	"haul/internal/kernel/cpu/isa"
)

// BenchmarkRowSums times a shard's gradients of weights in the sizes of tiny_1, packed first and
// packed on the way, with sums that stay in the second cache and with sums of many lanes, which do
// not.
func BenchmarkRowSums(b *testing.B) {
	prims, woven, err := isa.PickTiles("")
	if err != nil {
		b.Fatal(err)
	}
	packed := *woven
	packed.Weave = nil
	const rows, lanes = 176, 24 << 20 // bytes of sums that no second cache holds
	for _, layer := range TinyProducts.Layers {
		in, out := layer[0], layer[1]
		x, dy := matrix(rows*in), matrix(rows*out)
		for _, sums := range []struct {
			name  string
			bytes int
			add   bool
		}{{"near", 4 * in * out, false}, {"far", lanes, false}, {"far, added", lanes, true}} {
			all := matrix(sums.bytes / 4)
			for _, way := range []struct {
				name string
				set  *isa.TileSet
			}{{"packed first", &packed}, {"woven", woven}} {
				if way.set == woven && woven.Weave == nil {
					continue
				}
				b.Run(fmt.Sprintf("%d to %d, %s, %s", in, out, sums.name, way.name), func(b *testing.B) {
					p := isa.NewRowSums(way.set, rows, out, in, out, in, sums.bytes >= isa.FarBytes)
					g, scratch, n, size := new(isa.TileArgs), matrix(p.Need()), 0, in*out
					for b.Loop() {
						p.Product(prims, g, all[n*size:][:size], dy, x, sums.add, scratch)
						n = (n + 1) % (len(all) / size)
					}
				})
			}
		}
	}
}
