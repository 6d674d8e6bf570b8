package isa

import "testing"

// TestRowSumsShort: a slice one float short of the gradient's shape, or of its scratch, panics with
// the one message.
func TestRowSumsShort(t *testing.T) {
	s := NewRowSums(&spreadTiles, 0, 4, 3, 4, 3, false)
	short := func(dw, scratch int) (said any) {
		defer func() { said = recover() }()
		s.Product(&Plain, new(TileArgs), make([]float32, dw), nil, nil, false, make([]float32, scratch))
		return nil
	}
	if got := short(12, s.Need()); got != nil || s.Need() < 1 {
		t.Errorf("what fits: %v, scratch %d", got, s.Need())
	}
	for _, c := range [][2]int{{11, s.Need()}, {12, s.Need() - 1}} {
		if got := short(c[0], c[1]); got != shapeMessage {
			t.Errorf("%d of 12 floats, scratch %d of %d: %v", c[0], c[1], s.Need(), got)
		}
	}
}
