package cutest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"haul/internal/ptx"
)

// Codes of CUresult.
const (
	success        = 0
	invalidValue   = 1
	outOfMemory    = 2
	invalidDevice  = 101
	invalidImage   = 200
	invalidPTX     = 218
	invalidHandle  = 400
	notFound       = 500
	illegalAddress = 700
	launchFailed   = 719
)

var names = map[uint32]string{invalidValue: "CUDA_ERROR_INVALID_VALUE", outOfMemory: "CUDA_ERROR_OUT_OF_MEMORY", invalidDevice: "CUDA_ERROR_INVALID_DEVICE",
	invalidImage: "CUDA_ERROR_INVALID_IMAGE", invalidPTX: "CUDA_ERROR_INVALID_PTX", invalidHandle: "CUDA_ERROR_INVALID_HANDLE", notFound: "CUDA_ERROR_NOT_FOUND",
	illegalAddress: "CUDA_ERROR_ILLEGAL_ADDRESS", launchFailed: "CUDA_ERROR_LAUNCH_FAILED"}

// entries holds the driver's functions with the arguments of their C declarations. Results are
// codes.
var entries = map[string]any{
	"cuInit":             func(flags uint32) uintptr { return success },
	"cuDriverGetVersion": func(v *int32) uintptr { *v = 12080; return success },
	"cuDeviceGetCount":   func(n *int32) uintptr { *n = int32(len(here.gpus)); return success },
	"cuDeviceGet": func(d *int32, ordinal int32) uintptr {
		if ordinal < 0 || int(ordinal) >= len(here.gpus) {
			return invalidDevice
		}
		*d = ordinal
		return success
	},
	"cuDeviceGetName": func(p *byte, n int32, d int32) uintptr {
		copy(unsafe.Slice(p, n), here.gpus[d].Name+"\x00")
		return success
	},
	"cuDeviceTotalMem_v2": func(n *uint64, d int32) uintptr { *n = uint64(here.gpus[d].Memory); return success },
	"cuDeviceGetAttribute": func(v *int32, number, d int32) uintptr {
		c := &here.gpus[d]
		known := map[int32]int{13: 1 << 20, 16: c.Multiprocessors, 75: c.Major, 76: c.Minor, 97: c.Shared}
		n, ok := known[number]
		if !ok {
			return said(invalidValue, "device attribute %d is not known here", number)
		}
		*v = int32(n)
		return success
	},
	"cuGetErrorName":               func(code uint32, text *uintptr) uintptr { return words(text, names[code]) },
	"cuGetErrorString":             func(code uint32, text *uintptr) uintptr { return words(text, detail(code)) },
	"cuDevicePrimaryCtxRetain":     func(c *uintptr, d int32) uintptr { *c = here.add(context{&here.gpus[d]}); return success },
	"cuDevicePrimaryCtxRelease_v2": func(d int32) uintptr { return success },
	"cuCtxSetCurrent":              func(c uintptr) uintptr { return success },
	"cuCtxGetStreamPriorityRange":  func(least, greatest *int32) uintptr { *least, *greatest = 0, -5; return success },

	"cuStreamCreate":      func(s *uintptr, flags uint32) uintptr { *s = here.add(stream{}); return success },
	"cuStreamDestroy_v2":  func(s uintptr) uintptr { return gone(drop[stream](s)) },
	"cuStreamSynchronize": func(s uintptr) uintptr { return gone(known[stream](s)) },
	"cuStreamWaitEvent":   func(s, e uintptr, flags uint32) uintptr { return gone(known[stream](s) && known[event](e)) },
	"cuEventCreate":       func(e *uintptr, flags uint32) uintptr { *e = here.add(event{}); return success },
	"cuEventDestroy_v2":   func(e uintptr) uintptr { return gone(drop[event](e)) },
	"cuEventRecord":       func(e, s uintptr) uintptr { return gone(known[stream](s) && known[event](e)) },
	"cuEventSynchronize":  func(e uintptr) uintptr { return gone(known[event](e)) },
	"cuEventQuery":        func(e uintptr) uintptr { return gone(known[event](e)) },
	"cuEventElapsedTime":  func(ms *float32, a, b uintptr) uintptr { *ms = 0.001; return gone(known[event](a) && known[event](b)) },
	"cuMemAlloc_v2":       memAlloc,
	"cuMemFree_v2":        func(p uint64) uintptr { return memFree(p, true) },
	"cuMemHostAlloc":      hostAlloc,
	"cuMemFreeHost":       func(p uintptr) uintptr { return memFree(uint64(p), false) },
	"cuMemGetInfo_v2":     memInfo,
	"cuMemcpyHtoDAsync_v2": func(to uint64, from unsafe.Pointer, n, s uintptr) uintptr {
		return copyTo(to, unsafe.Slice((*byte)(from), n))
	},
	"cuMemcpyDtoHAsync_v2": func(to unsafe.Pointer, from uint64, n, s uintptr) uintptr {
		return copyFrom(unsafe.Slice((*byte)(to), n), from)
	},
	"cuMemcpyDtoDAsync_v2":   copyWithin,
	"cuMemsetD32Async":       memset,
	"cuTensorMapEncodeTiled": encodeTiled,

	"cuModuleLoadDataEx": func(m *uintptr, text unsafe.Pointer, n uint32, keys *int32, values *uintptr) uintptr {
		code, why := loadModule(m, text)
		for i := range n { // CU_JIT_ERROR_LOG_BUFFER is followed by its size
			if unsafe.Slice(keys, n)[i] == 5 && i+1 < n {
				room := unsafe.Slice(*(**byte)(unsafe.Pointer(&unsafe.Slice(values, n)[i])), unsafe.Slice(values, n)[i+1])
				copy(room, why+"\x00")
			}
		}
		return code
	},
	"cuModuleUnload": func(m uintptr) uintptr { return gone(drop[*loaded](m)) },
	"cuLibraryLoadData": func(l *uintptr, text unsafe.Pointer, k *int32, v *uintptr, n uint32, o *int32, g *uintptr, q uint32) uintptr {
		code, _ := loadModule(l, text)
		return code
	},
	"cuLibraryGetModule":  func(m *uintptr, l uintptr) uintptr { *m = l; return gone(known[*loaded](l)) },
	"cuLibraryUnload":     func(l uintptr) uintptr { return gone(drop[*loaded](l)) },
	"cuModuleGetFunction": func(f *uintptr, m uintptr, name *byte) uintptr { return getFunction(f, m, text(unsafe.Pointer(name))) },
	"cuFuncSetAttribute":  setAttribute,
	"cuFuncGetAttribute":  getAttribute,
	"cuLaunchKernel":      launchKernel,

	"cuGraphCreate":                 func(g *uintptr, flags uint32) uintptr { *g = here.add(&graph{}); return success },
	"cuGraphDestroy":                func(g uintptr) uintptr { return gone(drop[*graph](g)) },
	"cuGraphAddKernelNode":          addKernel,
	"cuGraphAddDependencies_v2":     addDependencies,
	"cuGraphKernelNodeSetAttribute": func(n uintptr, attribute int32, v unsafe.Pointer) uintptr { return gone(known[*node](n)) },
	"cuGraphInstantiateWithFlags":   instantiate,
	"cuGraphExecDestroy":            func(e uintptr) uintptr { return gone(drop[*ready](e)) },
	"cuGraphLaunch":                 launchGraph,
}

type (
	context struct{ gpu *GPU }
	stream  struct{}
	event   struct{}
)

func known[T any](h uintptr) bool {
	_, ok := find[T](h)
	return ok
}

// gone returns the code of a call: success if everything it names exists.
func gone(there bool) uintptr {
	switch {
	case here.fault != nil:
		return illegalAddress
	case there:
		return success
	}
	return said(invalidHandle, "a handle that was never given, or given back")
}

// why holds the message of the last failed call of each code.
var why = map[uint32]string{}

func said(code uint32, format string, args ...any) uintptr {
	why[code] = fmt.Sprintf(format, args...)
	return uintptr(code)
}

func detail(code uint32) string {
	if code == illegalAddress && here.fault != nil {
		return strings.ReplaceAll(here.fault.Error(), "\n", " ")
	}
	return why[code]
}

// failed records a kernel's fault and returns its code.
func failed(err error) uintptr {
	var f *ptx.Fault
	if !errors.As(err, &f) {
		return said(invalidValue, "%v", err)
	}
	here.fault = err
	return illegalAddress
}

// texts holds C strings that callers read; they are never freed.
var texts = map[string][]byte{}

func words(out *uintptr, s string) uintptr {
	if s == "" {
		return invalidValue
	}
	b, ok := texts[s]
	if !ok {
		b = append([]byte(s), 0)
		texts[s] = b
	}
	*out = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return success
}

// text reads a string that ends in a zero byte.
func text(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

var (
	addresses = map[string]uintptr{}
	binding   sync.Mutex
)

// symbol returns the address of a function for C. It creates each function once per process.
func symbol(name string) (uintptr, error) {
	binding.Lock()
	defer binding.Unlock()
	if at, ok := addresses[name]; ok {
		return at, nil
	}
	f, ok := entries[name]
	if !ok {
		return 0, fmt.Errorf("the interpreted driver has no %s", name)
	}
	at := purego.NewCallback(locked(f))
	addresses[name] = at
	return at, nil
}
