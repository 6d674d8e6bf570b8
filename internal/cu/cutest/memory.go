package cutest

import (
	"math"
	"reflect"
	"unsafe"

	"haul/internal/ptx"
)

// locked returns f with the lock `use` held during each call.
func locked(f any) any {
	v := reflect.ValueOf(f)
	return reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
		use.Lock()
		defer use.Unlock()
		return v.Call(args)
	}).Interface()
}

// New memory up to this size is filled with values that no kernel can mean.
const poisoned = 16 << 20

func memAlloc(p *uint64, n uintptr) uintptr {
	if here.fault != nil {
		return illegalAddress
	}
	if n == 0 {
		return invalidValue
	}
	if here.taken+int(n) > here.gpus[0].Memory {
		return said(outOfMemory, "%d bytes are taken, %d more do not fit", here.taken, n)
	}
	b, err := reserve(int(n))
	if err != nil {
		return said(outOfMemory, "%v", err)
	}
	if n <= poisoned {
		for i := range b {
			b[i] = 0xff
		}
	}
	here.taken += int(n)
	*p = keep(b)
	return success
}

// keep makes host memory accessible to kernels.
func keep(b []byte) uint64 {
	at := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	here.owned[at] = b
	here.memory.Add(at, len(b))
	return at
}

func hostAlloc(p *uintptr, n uintptr, flags uint32) uintptr {
	b, err := reserve(int(max(n, 1)))
	if err != nil {
		return said(outOfMemory, "%v", err)
	}
	*p = uintptr(keep(b))
	return success
}

func memFree(p uint64, device bool) uintptr {
	b, ok := here.owned[p]
	if !ok || !here.memory.Remove(p) {
		return said(invalidValue, "%#x was not allocated, or is free", p)
	}
	delete(here.owned, p)
	if device {
		here.taken -= len(b)
	}
	release(b)
	return success
}

func memInfo(free, total *uint64) uintptr {
	*total = uint64(here.gpus[0].Memory)
	*free = *total - uint64(here.taken)
	return success
}

// within returns the device memory of a copy, or the code of an error.
func within(at uint64, n uintptr) ([]byte, uintptr) {
	if here.fault != nil {
		return nil, illegalAddress
	}
	b, err := here.memory.Bytes(at, int(n))
	if err != nil {
		return nil, said(invalidValue, "a copy or a fill of %v", err)
	}
	return b, success
}

func copyTo(to uint64, from []byte) uintptr {
	b, code := within(to, uintptr(len(from)))
	copy(b, from)
	return code
}

func copyFrom(to []byte, from uint64) uintptr {
	b, code := within(from, uintptr(len(to)))
	copy(to, b)
	return code
}

func copyWithin(to, from uint64, n, s uintptr) uintptr {
	b, code := within(from, n)
	if code != success {
		return code
	}
	return copyTo(to, b)
}

func memset(to uint64, v uint32, n, s uintptr) uintptr {
	b, code := within(to, 4*n)
	if code != success || n == 0 {
		return code
	}
	if v == 0 {
		clear(b)
		return code
	}
	if n > math.MaxInt32 {
		return invalidValue
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), n)
	for i := range words {
		words[i] = v
	}
	return code
}

// encodeTiled describes a matrix of 16-bit numbers, or several matrices, for the copy engine: rows
// of 128 bytes, swizzled, with zeros outside. Other descriptions are errors.
func encodeTiled(to unsafe.Pointer, kind, rank uint32, at uint64, sizes, strides *uint64, box, steps *uint32, interleave, swizzle, promotion, outside uint32) uintptr {
	const bf16, swizzled = 9, 3
	if kind != bf16 || rank < 2 || rank > 3 || interleave != 0 || swizzle != swizzled || outside != 0 {
		return said(invalidValue, "a tensor of type %d and %d dimensions, swizzle %d: not known here", kind, rank, swizzle)
	}
	m := ptx.TensorMap{Address: at, Rank: int(rank), Box: [3]uint32{1, 1, 1}, Sizes: [3]uint64{1, 1, 1}}
	copy(m.Sizes[:], unsafe.Slice(sizes, rank))
	copy(m.Strides[:], unsafe.Slice(strides, rank-1))
	copy(m.Box[:], unsafe.Slice(box, rank))
	if at%16 != 0 || uintptr(to)%64 != 0 || m.Box[0] != 64 {
		return said(invalidValue, "a tensor at %#x, described at %#x, %d numbers of a row at a time", at, uintptr(to), m.Box[0])
	}
	for i := range int(rank) {
		if m.Sizes[i] < 1 || m.Sizes[i] > 1<<32 || m.Box[i] < 1 || m.Box[i] > 256 || unsafe.Slice(steps, rank)[i] != 1 {
			return said(invalidValue, "a tensor of %v, %v at a time", m.Sizes, m.Box)
		}
	}
	for _, n := range m.Strides[:rank-1] {
		if n%16 != 0 || n >= 1<<40 {
			return said(invalidValue, "a tensor with rows %v bytes apart: multiples of 16", m.Strides)
		}
	}
	m.Encode((*[ptx.TensorMapBytes]byte)(to))
	return success
}
