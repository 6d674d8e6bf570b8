package cu

import (
	"unsafe"

	"github.com/ebitengine/purego"
)

// calls holds the driver functions that running programs need. The tag of a field is the symbol;
// the _v2 names have 64-bit sizes.
type calls struct {
	PrimaryCtxRetain  func(ctx *uintptr, device int32) Result                                    `sym:"cuDevicePrimaryCtxRetain"`
	PrimaryCtxRelease func(device int32) Result                                                  `sym:"cuDevicePrimaryCtxRelease_v2"`
	CtxSetCurrent     func(ctx uintptr) Result                                                   `sym:"cuCtxSetCurrent"`
	MemAlloc          func(p *uint64, bytes uintptr) Result                                      `sym:"cuMemAlloc_v2"`
	MemFree           func(p uint64) Result                                                      `sym:"cuMemFree_v2"`
	MemGetInfo        func(free, total *uint64) Result                                           `sym:"cuMemGetInfo_v2"`
	MemHostAlloc      func(p *unsafe.Pointer, bytes uintptr, f uint32) Result                    `sym:"cuMemHostAlloc"`
	MemFreeHost       func(p unsafe.Pointer) Result                                              `sym:"cuMemFreeHost"`
	CopyIn            func(dst uint64, src unsafe.Pointer, bytes uintptr, stream uintptr) Result `sym:"cuMemcpyHtoDAsync_v2"`
	CopyOut           func(dst unsafe.Pointer, src uint64, bytes uintptr, stream uintptr) Result `sym:"cuMemcpyDtoHAsync_v2"`
	Memset32          func(dst uint64, value uint32, count uintptr, stream uintptr) Result       `sym:"cuMemsetD32Async"`

	StreamCreate  func(s *uintptr, flags uint32) Result        `sym:"cuStreamCreate"`
	StreamDestroy func(s uintptr) Result                       `sym:"cuStreamDestroy_v2"`
	EventCreate   func(e *uintptr, flags uint32) Result        `sym:"cuEventCreate"`
	EventDestroy  func(e uintptr) Result                       `sym:"cuEventDestroy_v2"`
	EventElapsed  func(ms *float32, start, end uintptr) Result `sym:"cuEventElapsedTime"`

	ModuleLoad     func(m *uintptr, image unsafe.Pointer, n uint32, keys *int32, values *uintptr) Result                  `sym:"cuModuleLoadDataEx"`
	ModuleUnload   func(m uintptr) Result                                                                                 `sym:"cuModuleUnload"`
	ModuleFunction func(f *uintptr, m uintptr, name *byte) Result                                                         `sym:"cuModuleGetFunction"`
	FuncSetAttr    func(f uintptr, attribute, value int32) Result                                                         `sym:"cuFuncSetAttribute"`
	FuncGetAttr    func(value *int32, attribute int32, f uintptr) Result                                                  `sym:"cuFuncGetAttribute"`
	Launch         func(f uintptr, gx, gy, gz, bx, by, bz, shared uint32, s uintptr, params, extra unsafe.Pointer) Result `sym:"cuLaunchKernel"`

	GraphCreate      func(g *uintptr, flags uint32) Result                                                  `sym:"cuGraphCreate"`
	GraphDestroy     func(g uintptr) Result                                                                 `sym:"cuGraphDestroy"`
	GraphAddKernel   func(node *uintptr, g uintptr, deps *uintptr, n uintptr, params unsafe.Pointer) Result `sym:"cuGraphAddKernelNode"`
	GraphAttribute   func(node uintptr, attribute int32, value unsafe.Pointer) Result                       `sym:"cuGraphKernelNodeSetAttribute"`
	Priorities       func(least, greatest *int32) Result                                                    `sym:"cuCtxGetStreamPriorityRange"`
	GraphInstantiate func(exec *uintptr, g uintptr, flags uint64) Result                                    `sym:"cuGraphInstantiateWithFlags"`
	GraphExecDestroy func(exec uintptr) Result                                                              `sym:"cuGraphExecDestroy"`
}

// stepCalls holds the addresses of the functions that every step calls. Calling a typed function
// would allocate on Go's heap. Their arguments must not point into that heap, because the collector
// would not see the pointers.
type stepCalls struct {
	GraphLaunch uintptr `sym:"cuGraphLaunch"`
	EventRecord uintptr `sym:"cuEventRecord"`
	EventSync   uintptr `sym:"cuEventSynchronize"`
	EventQuery  uintptr `sym:"cuEventQuery"`
	StreamWait  uintptr `sym:"cuStreamWaitEvent"`
	CopyLocked  uintptr `sym:"cuMemcpyHtoDAsync_v2"`
	CopyWithin  uintptr `sym:"cuMemcpyDtoDAsync_v2"`
	CopyBack    uintptr `sym:"cuMemcpyDtoHAsync_v2"`
	StreamSync  uintptr `sym:"cuStreamSynchronize"`
}

// step calls one of them with up to four words, which it stores in the Context. It must run inside
// Do.
func (c *Context) step(symbol uintptr, a, b, x, y uintptr) Result {
	c.words = [4]uintptr{a, b, x, y}
	r, _, _ := purego.SyscallN(symbol, c.words[:]...)
	return Result(r)
}
