package cpu

import "unsafe"

// The generator knows the fields by these offsets.
var _ = [1]struct{}{}[unsafe.Sizeof(headArgs{})-37*8|unsafe.Offsetof(headArgs{}.step)-40|unsafe.Offsetof(headArgs{}.first)-72|
	unsafe.Offsetof(headArgs{}.logSum)-104|unsafe.Offsetof(headArgs{}.dk)-136|unsafe.Offsetof(headArgs{}.p)-168|
	unsafe.Offsetof(headArgs{}.scale)-200|unsafe.Offsetof(headArgs{}.begin)-216|unsafe.Offsetof(headArgs{}.reached)-272]

func (h *headArgs) words() *[37]uintptr { return (*[37]uintptr)(unsafe.Pointer(h)) }

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

func attendAMX(h *headArgs) {
	h.config = uintptr(unsafe.Pointer(&headConfig))
	attendHead(h.words())
}

func attendGradAMX(h *headArgs) {
	h.config = uintptr(unsafe.Pointer(&headConfig))
	attendHeadGrad(h.words())
}
