package cu

import (
	"runtime"
	"unsafe"
)

// Graph is a set of kernel launches with dependencies, which are submitted together.
type Graph struct {
	c      *Context
	handle uintptr
	flags  uint64
}

// Node is a launch of a graph.
type Node uintptr

// Exec is an instantiated graph, which can be launched any number of times.
type Exec struct {
	c      *Context
	handle uintptr
}

// nodeParams is CUDA_KERNEL_NODE_PARAMS in its first version.
type nodeParams struct {
	function               uintptr
	gridX, gridY, gridZ    uint32
	blockX, blockY, blockZ uint32
	shared                 uint32
	params, extra          unsafe.Pointer
}

// NewGraph creates an empty graph. It must run inside Do.
func (c *Context) NewGraph() (*Graph, error) {
	g := &Graph{c: c}
	return g, c.check("cuGraphCreate", c.c.GraphCreate(&g.handle, 0))
}

// Add adds a launch that runs after deps. The driver copies the arguments. It must run inside Do.
func (g *Graph) Add(f Function, geo Geometry, a *Args, deps []Node) (Node, error) {
	p := nodeParams{function: f.handle,
		gridX: uint32(geo.Grid[0]), gridY: uint32(geo.Grid[1]), gridZ: uint32(geo.Grid[2]),
		blockX: uint32(geo.Block[0]), blockY: uint32(geo.Block[1]), blockZ: uint32(geo.Block[2]),
		shared: uint32(geo.Shared), params: unsafe.Pointer(unsafe.SliceData(a.ptrs))}
	var node uintptr
	r := g.c.c.GraphAddKernel(&node, g.handle, (*uintptr)(unsafe.Pointer(unsafe.SliceData(deps))), uintptr(len(deps)), unsafe.Pointer(&p))
	runtime.KeepAlive(a)
	runtime.KeepAlive(deps)
	return Node(node), g.c.check("cuGraphAddKernelNode "+f.name, r)
}

// Instantiate returns the graph as an Exec and frees the graph. It must run inside Do.
func (g *Graph) Instantiate() (*Exec, error) {
	e := &Exec{c: g.c}
	if err := g.c.check("cuGraphInstantiate", g.c.c.GraphInstantiate(&e.handle, g.handle, g.flags)); err != nil {
		return nil, err
	}
	return e, g.c.check("cuGraphDestroy", g.c.c.GraphDestroy(g.handle))
}

// Launch queues one run of the whole graph. It must run inside Do.
func (e *Exec) Launch(s Stream) error {
	return e.c.check("cuGraphLaunch", e.c.step(e.c.s.GraphLaunch, e.handle, uintptr(s), 0, 0))
}

// Close destroys the graph. It must run inside Do.
func (e *Exec) Close() error {
	return e.c.check("cuGraphExecDestroy", e.c.c.GraphExecDestroy(e.handle))
}

// CU_LAUNCH_ATTRIBUTE_PRIORITY, and CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY. Without the flag
// a graph's kernels have the priority of their stream.
const (
	attributePriority = 8
	usePriorities     = 8
)

// Urgent gives a kernel a higher priority: if blocks of several kernels could start, its blocks
// start first. `first` gives it an even higher one. CUDA 11.7 or newer. It must run inside Do.
func (g *Graph) Urgent(n Node, first bool) error {
	var least, greatest int32
	if err := g.c.check("cuCtxGetStreamPriorityRange", g.c.c.Priorities(&least, &greatest)); err != nil {
		return err
	}
	if !first {
		greatest = min(greatest+1, least) // lower numbers have a higher priority
	}
	value := [16]int32{greatest} // the union has 64 bytes; a priority is the first four
	g.flags = usePriorities
	return g.c.check("cuGraphKernelNodeSetAttribute", g.c.c.GraphAttribute(uintptr(n), attributePriority, unsafe.Pointer(&value)))
}
