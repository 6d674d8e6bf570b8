package cu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// captureCalls holds the functions that record another library's work into a graph: CUDA 12.3 or
// newer. They are looked up at first use, so that older drivers can be used otherwise.
type captureCalls struct {
	Begin uintptr `sym:"cuStreamBeginCaptureToGraph"`
	Info  uintptr `sym:"cuStreamGetCaptureInfo_v3"`
	End   uintptr `sym:"cuStreamEndCapture"`
}

const threadLocal = 1 // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

// Context returns the context of the graph.
func (g *Graph) Context() *Context { return g.c }

// Capture records into the graph what f queues on the stream, to run after wait. It returns the
// nodes that later nodes must depend on. It must run inside Do.
func (g *Graph) Capture(s Stream, wait []Node, f func() error) ([]Node, error) {
	var c captureCalls
	if err := g.c.driver.bind(&c); err != nil {
		return nil, fmt.Errorf("recording another library's work takes a driver for CUDA 12.3 or newer: %w", err)
	}
	deps := unsafe.Pointer(unsafe.SliceData(wait))
	r, _, _ := purego.SyscallN(c.Begin, uintptr(s), g.handle, uintptr(deps), 0, uintptr(len(wait)), threadLocal)
	runtime.KeepAlive(wait)
	if err := g.c.check("cuStreamBeginCaptureToGraph", Result(r)); err != nil {
		return nil, err
	}
	failed := f()
	var status int32
	var id uint64
	var graph, nodes, edges, n uintptr
	r, _, _ = purego.SyscallN(c.Info, uintptr(s), uintptr(unsafe.Pointer(&status)), uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&graph)),
		uintptr(unsafe.Pointer(&nodes)), uintptr(unsafe.Pointer(&edges)), uintptr(unsafe.Pointer(&n)))
	err := g.c.check("cuStreamGetCaptureInfo", Result(r))
	var last []Node
	if err == nil && n > 0 { // memory of the driver, valid until the capture continues
		last = append(last, unsafe.Slice(*(**Node)(unsafe.Pointer(&nodes)), n)...)
	}
	r, _, _ = purego.SyscallN(c.End, uintptr(s), uintptr(unsafe.Pointer(&graph)))
	for _, e := range []error{failed, err, g.c.check("cuStreamEndCapture", Result(r))} {
		if e != nil {
			return nil, e
		}
	}
	return last, nil
}
