package run

import "unsafe"

// What a reader could break: buffers of a step are walked with strides of kilobytes, and on 4 KiB
// pages that outruns the processor's table of recent pages. Buffers that a step touches all over
// must come from one large allocation (a slab), which hugePages can place on 2 MiB pages.

// HugePage is the size of a large page on every system that has them here.
const HugePage = 2 << 20

// Aligned allocates n floats that start at a cache line; large blocks start at a large page and ask
// for such pages.
func Aligned(n int) []float32 {
	unit := 64
	if 4*n >= HugePage/2 {
		unit = HugePage
	}
	buf := make([]float32, n+unit/4)
	at := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf)))%uintptr(unit)) / 4
	out := buf[at:][:n:n]
	if unit == HugePage {
		hugePages(out)
	}
	return out
}

// slab hands out pieces of one allocation, each at the start of a cache line.
type slab struct{ rest []float32 }

// newSlab makes a slab with room for pieces of these sizes.
func newSlab(sizes ...int) *slab {
	n := 0
	for _, s := range sizes {
		n += line(s)
	}
	return &slab{Aligned(n)}
}

func (s *slab) take(n int) []float32 {
	piece := s.rest[:n:n]
	s.rest = s.rest[line(n):]
	return piece
}

// line rounds floats up to whole cache lines.
func line(n int) int { return (n + 15) &^ 15 }

// Pieces hands out scratch.
type Pieces []float32

func (p *Pieces) Take(n int) []float32 {
	s := (*p)[:n:n]
	*p = (*p)[n:]
	return s
}
