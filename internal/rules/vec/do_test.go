package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/rules"
	"haul/internal/rules/ir"
)

// corners are words at the edges of the types.
var corners = []uint32{0, 1, 2, 31, 32, 33, 64, 1 << 31, 1<<31 - 1, math.MaxUint32, 0x3f800000, 0xbf800000, 0x80000000, 0x7f800000, 0xff800000,
	0x7fc00000, 0xffc00000, 0x7f800001, 0x007fffff, 0x00800000, 0x4f000000, 0xcf000000, 0x3f000000, 0x40490fdb}

// randomBlock is between guard words that no operation may touch.
func randomBlock(r *rand.Rand) (guarded *[66]uint32, b *Block) {
	guarded = new([66]uint32)
	for i := range guarded {
		guarded[i] = r.Uint32()
		if r.IntN(2) == 0 {
			guarded[i] = corners[r.IntN(len(corners))]
		}
	}
	return guarded, (*Block)(guarded[1:65])
}

// TestSetsAreApply compares every operation of each set with ir.Apply, word by word, in place too.
func TestSetsAreApply(t *testing.T) {
	for name, s := range map[string]*set{"plain": &plain, "fastest": fastest()} {
		r := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			_, a := randomBlock(r)
			_, b := randomBlock(r)
			for _, o := range ir.Ops() {
				kind := o.Spec().Result
				if compare := s.compares[o]; compare != nil {
					mask := compare(a, b)
					for i := range a {
						if want := ir.Apply(o, a[i], b[i], 0); mask>>i&1 != uint64(want) {
							t.Fatalf("%s: %v of %#x and %#x is not %d", name, o, a[i], b[i], want)
						}
					}
				}
				if compute := s.computes[o]; compute != nil {
					guarded, d := randomBlock(r)
					first, last := guarded[0], guarded[65]
					compute(d, a, b)
					for i := range a {
						if want := ir.Apply(o, a[i], b[i], 0); !rules.Same(kind, d[i], want) {
							t.Fatalf("%s: %v of %#x and %#x is %#x, want %#x", name, o, a[i], b[i], d[i], want)
						}
					}
					same := *a
					compute(&same, &same, b)
					for i := range same {
						if !rules.Same(kind, same[i], d[i]) {
							t.Fatalf("%s: %v in place gives %#x, want %#x", name, o, same[i], d[i])
						}
					}
					if guarded[0] != first || guarded[65] != last {
						t.Fatalf("%s: %v writes outside its block", name, o)
					}
				}
			}
			mask := r.Uint64()
			guarded, d := randomBlock(r)
			first, last := guarded[0], guarded[65]
			s.choose(d, mask, a, b)
			for i := range d {
				if want := ir.Apply(ir.Select, uint32(mask>>i&1), a[i], b[i]); d[i] != want {
					t.Fatalf("%s: word %d of a choice is %#x, want %#x", name, i, d[i], want)
				}
			}
			s.fill(d, a[3])
			if d[0] != a[3] || d[17] != a[3] || d[40] != a[3] || d[63] != a[3] || guarded[0] != first || guarded[65] != last {
				t.Fatalf("%s: a block is filled with %v", name, guarded)
			}
		}
	}
}
