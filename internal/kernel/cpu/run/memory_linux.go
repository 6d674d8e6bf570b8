package run

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePages asks for large pages under the block, whose pages nobody has touched yet. A kernel that
// refuses leaves small ones.
func hugePages(f []float32) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
	if whole := len(b) &^ (HugePage - 1); whole > 0 {
		_ = unix.Madvise(b[:whole], unix.MADV_HUGEPAGE)
		_ = unix.Madvise(b[:whole], unix.MADV_COLLAPSE)
	}
}
