package kernel

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBlocks: matrices whose rows and columns are multiples of the side, row by row; a vector of as
// many elements, other matrices and what has three dimensions are left to AdamW, in runs that begin
// and end at sixteens.
func TestBlocks(t *testing.T) {
	l := &Layout{}
	l.Add("embed", InitUniform, 4, 6, 4)    // 0 to 24, padded to 32
	l.Add("qkv", InitUniform, 6, 12, 6)     // 32 to 104, padded to 112
	l.Add("norm", InitOne, 6, 6)            // 112 to 118, 128
	l.Add("down", InitUniform, 12, 6, 12)   // 128 to 200, 208
	l.Add("out", InitUniform, 6, 6, 6)      // 208 to 244, 256
	l.Add("bias", InitZero, 6, 36)          // 256 to 292, 304
	l.Add("three", InitUniform, 6, 6, 6, 6) // 304 to 520, 528
	l.Add("last", InitUniform, 6, 6, 6)     // 528 to 564, 576
	o := &AdamW{Layout: l, Side: 6}
	if diff := cmp.Diff([]Block{{32, 6}, {68, 6}, {128, 12}, {134, 12}, {208, 6}, {528, 6}}, o.Blocks()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][2]int{{0, 32}, {112, 128}, {256, 528}}, o.Rest()); diff != "" {
		t.Error(diff)
	}
	const products = 6 * 5 * (1 + 1 + 2) * 6 * 6 * 6
	if got, plain := o.Cost(), (&AdamW{Layout: l}).Cost(); got.FLOPs-plain.FLOPs != products || plain.Bytes-got.Bytes != 6*6*6*8 {
		t.Errorf("it costs %+v, without blocks %+v", got, plain)
	}
	if o.Kind() != "muon" || (&AdamW{Layout: l}).Kind() != "adamw" {
		t.Errorf("it is called %s", o.Kind())
	}
	o.Side = 0
	if diff := cmp.Diff([][2]int{{0, l.Len}}, o.Rest()); diff != "" || o.Blocks() != nil {
		t.Errorf("%v without a side: %s", o.Blocks(), diff)
	}
	for width, side := range map[int]int{1: 1, 8: 8, 127: 127, 128: 128, 130: 65, 254: 127, 256: 128, 257: 1, 300: 100} {
		if got := MuonSide(width); got != side {
			t.Errorf("the side of width %d is %d, want %d", width, got, side)
		}
	}
}
