package comm

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"haul/internal/cu"
)

// nccl is NVIDIA's library for collectives between GPUs. A run has one communicator, which is
// created, used and ended on the thread of the GPU's context.
//
// A graph with nodes of the library must be destroyed before the communicator ends, because
// ncclCommDestroy can wait forever while such a graph exists. A run therefore destroys its graphs
// first, and then calls ncclCommAbort.
type nccl struct {
	file    string
	version int32
	comm    uintptr
	ctx     *cu.Context

	getUniqueID   func(id unsafe.Pointer) int32
	commInitRank  func(comm *uintptr, n int32, id uniqueID, rank int32) int32
	commAbort     func(comm uintptr) int32
	allReduce     func(send, recv uint64, count uintptr, kind, op int32, comm, stream uintptr) int32
	allGather     func(send, recv uint64, count uintptr, kind int32, comm, stream uintptr) int32
	getError      func(code int32) string
	getVersion    func(v *int32) int32
	getAsyncError func(comm uintptr, code *int32) int32
}

type uniqueID struct{ b [128]byte }

const (
	ncclFloat32 = 7
	ncclSum     = 0
)

// openNCCL opens the library. It needs no GPU.
func openNCCL() (*nccl, error) {
	names := []string{"libnccl.so.2"}
	switch path := os.Getenv("HAUL_NCCL"); path {
	case "":
	case "off":
		return nil, errors.New("HAUL_NCCL=off")
	default:
		names = []string{path}
	}
	before := readSignals()
	defer before.restore()
	lib, file, err := dlopen(purego.RTLD_LOCAL, names...)
	if err != nil {
		return nil, fmt.Errorf("no NCCL for ranks on GPUs: %s does not open (Debian and NVIDIA: libnccl2; PyPI: nvidia-nccl-cu12 or -cu13; HAUL_NCCL=path names the file): %w", strings.Join(names, ", "), err)
	}
	c := &nccl{file: file}
	for _, f := range []struct {
		name string
		fn   any
	}{{"ncclGetUniqueId", &c.getUniqueID}, {"ncclCommInitRank", &c.commInitRank}, {"ncclCommAbort", &c.commAbort}, {"ncclAllReduce", &c.allReduce}, {"ncclAllGather", &c.allGather},
		{"ncclGetErrorString", &c.getError}, {"ncclGetVersion", &c.getVersion}, {"ncclCommGetAsyncError", &c.getAsyncError}} {
		symbol, err := purego.Dlsym(lib, f.name)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s", file, f.name)
		}
		purego.RegisterFunc(f.fn, symbol)
	}
	return c, c.check("ncclGetVersion", c.getVersion(&c.version))
}

func (c *nccl) check(call string, code int32) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s (NCCL_DEBUG=WARN says more)", call, c.getError(code))
}

func (c *nccl) name() string {
	return fmt.Sprintf("NCCL %d.%d.%d", c.version/10000, c.version/100%100, c.version%100)
}

// start creates the communicator: rank 0 chooses its id, and all ranks join. It must run inside
// Context.Do.
func (c *nccl) start(w *World, ctx *cu.Context) error {
	var id uniqueID
	if w.Rank == 0 {
		if err := c.check("ncclGetUniqueId", c.getUniqueID(unsafe.Pointer(&id))); err != nil {
			return err
		}
	}
	b, err := w.Broadcast(id.b[:])
	if err != nil {
		return err
	}
	copy(id.b[:], b)
	before := readSignals()
	defer before.restore()
	c.ctx = ctx
	return c.check("ncclCommInitRank", c.commInitRank(&c.comm, int32(w.Size), id, int32(w.Rank)))
}

// InGraph reports whether GPUs exchange gradients inside the step's graph, by NCCL. If false,
// gradients pass through the host by MPI.
func (w *World) InGraph() bool { return w.gpu != nil }

// Record adds the sum over all GPUs to a step's graph, so that a step with communication is still
// one launch. NCCL chooses the order of the sum: its bits depend on the number of GPUs.
func (w *World) Record(g *cu.Graph, s cu.Stream, grads uint64, n int, wait []cu.Node) ([]cu.Node, error) {
	return w.capture(g, s, wait, func(c *nccl) error {
		return c.check("ncclAllReduce", c.allReduce(grads, grads, uintptr(n), ncclFloat32, ncclSum, c.comm, uintptr(s)))
	})
}

// RecordGather adds a gather to a step's graph: every GPU receives the gradients of all GPUs at
// `all`, in the order of the ranks, and can add them up in a fixed order.
func (w *World) RecordGather(g *cu.Graph, s cu.Stream, all, own uint64, n int, wait []cu.Node) ([]cu.Node, error) {
	w.fixed = true
	return w.capture(g, s, wait, func(c *nccl) error {
		return c.check("ncclAllGather", c.allGather(own, all, uintptr(n), ncclFloat32, c.comm, uintptr(s)))
	})
}

// capture records a call of the library into a graph. The first capture creates the communicator.
func (w *World) capture(g *cu.Graph, s cu.Stream, wait []cu.Node, call func(*nccl) error) ([]cu.Node, error) {
	c, ok := w.gpu.(*nccl)
	if !ok {
		return nil, errors.New("this run was not opened for GPUs")
	}
	if c.comm == 0 {
		if err := c.start(w, g.Context()); err != nil {
			return nil, err
		}
	}
	// A first call outside of the graph: it opens connections, which cannot be captured.
	if err := call(c); err != nil {
		return nil, err
	}
	if err := g.Context().Wait(s); err != nil {
		return nil, err
	}
	return g.Capture(s, wait, func() error { return call(c) })
}

// closeNCCL ends the communicator. The graphs that used it must be destroyed before.
func (w *World) closeNCCL() error {
	c, ok := w.gpu.(*nccl)
	if !ok || c.comm == 0 {
		return nil
	}
	comm := c.comm
	c.comm = 0
	return c.ctx.Do(func() error { return c.check("ncclCommAbort", c.commAbort(comm)) })
}
