package isa

import "unsafe"

// The generator knows the fields by these offsets.
var _ = [1]struct{}{}[unsafe.Sizeof(HeadArgs{})-37*8|unsafe.Offsetof(HeadArgs{}.Step)-40|unsafe.Offsetof(HeadArgs{}.First)-72|
	unsafe.Offsetof(HeadArgs{}.LogSum)-104|unsafe.Offsetof(HeadArgs{}.DK)-136|unsafe.Offsetof(HeadArgs{}.P)-168|
	unsafe.Offsetof(HeadArgs{}.Scale)-200|unsafe.Offsetof(HeadArgs{}.Begin)-216|unsafe.Offsetof(HeadArgs{}.reached)-272]

func (h *HeadArgs) words() *[37]uintptr { return (*[37]uintptr)(unsafe.Pointer(h)) }

// headConfig is of tiles of half depth: accumulators in tiles 0 to 3, then two of A and two of B.
var headConfig = func() (t tileConfig) {
	t[0] = 1 // palette
	for i := range 8 {
		rows, bytes := 16, 64
		switch i / 2 {
		case 2:
			bytes = 32
		case 3:
			rows = 8
		}
		t[48+i], t[16+2*i] = byte(rows), byte(bytes)
	}
	return t
}()

func attendAMX(h *HeadArgs) {
	h.config = uintptr(unsafe.Pointer(&headConfig))
	attendHead(h.words())
}

func attendGradAMX(h *HeadArgs) {
	h.config = uintptr(unsafe.Pointer(&headConfig))
	attendHeadGrad(h.words())
}
