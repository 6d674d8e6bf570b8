package rng

import "testing"

// TestKnownAnswers holds the published Random123 vectors for philox4x32 with ten rounds.
func TestKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff},
			[4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Block(c.key, c.ctr); got != c.want {
			t.Errorf("Block(%x, %x) = %x, want %x", c.key, c.ctr, got, c.want)
		}
	}
}

func TestAtLaysOutKeyAndCounter(t *testing.T) {
	const seed, index = 0x0123456789abcdef, 0xfedcba9876543210
	want := Block([2]uint32{0x89abcdef, 0x01234567}, [4]uint32{0x76543210, 0xfedcba98, 7, uint32(Actions)})
	if got := At(seed, index, 7, Actions); got != want {
		t.Errorf("At = %x, want %x", got, want)
	}
}

func TestBelowAndFloatStayInRange(t *testing.T) {
	if got := Below(0xffffffff, 101); got != 100 {
		t.Errorf("Below(max, 101) = %d, want 100", got)
	}
	if got := Below(0, 101); got != 0 {
		t.Errorf("Below(0, 101) = %d, want 0", got)
	}
	if got := Float(0xffffffff); got >= 1 {
		t.Errorf("Float(max) = %v, want below 1", got)
	}
}

func BenchmarkBlock(b *testing.B) {
	var sum uint32
	for i := range b.N {
		sum += At(1, uint64(i), 0, Instances)[0]
	}
	sink = sum
}

var sink uint32
