package cu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// overlapCalls holds the function for programmatic edges: CUDA 12.3 or newer.
type overlapCalls struct {
	Add uintptr `sym:"cuGraphAddDependencies_v2"`
}

// edge is CUgraphEdgeData.
type edge struct {
	fromPort, toPort, kind uint8
	_                      [5]uint8
}

// CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC and CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC.
const programmatic = 1

// Overlaps reports whether the driver supports programmatic edges, with which a kernel starts
// before its predecessors end and waits for them itself.
func (d *Driver) Overlaps() bool { return d.bind(&overlapCalls{}) == nil }

// AddOverlapping adds a launch whose blocks may start as soon as every block of the kernels in
// `before` has permitted it or has ended. The kernel must wait for their end (griddepcontrol.wait)
// before it accesses memory. It starts after the nodes in `after` have ended. It must run inside
// Do.
func (g *Graph) AddOverlapping(f Function, geo Geometry, a *Args, before, after []Node) (Node, error) {
	node, err := g.Add(f, geo, a, after)
	if err != nil || len(before) == 0 {
		return node, err
	}
	var c overlapCalls
	if err := g.c.driver.bind(&c); err != nil {
		return node, fmt.Errorf("kernels that overlap take a driver for CUDA 12.3 or newer: %w", err)
	}
	to, edges := make([]Node, len(before)), make([]edge, len(before))
	for i := range before {
		to[i], edges[i] = node, edge{fromPort: programmatic, kind: programmatic}
	}
	r, _, _ := purego.SyscallN(c.Add, g.handle, uintptr(unsafe.Pointer(unsafe.SliceData(before))),
		uintptr(unsafe.Pointer(unsafe.SliceData(to))),
		uintptr(unsafe.Pointer(unsafe.SliceData(edges))), uintptr(len(before)))
	runtime.KeepAlive(before)
	runtime.KeepAlive(to)
	runtime.KeepAlive(edges)
	return node, g.c.check("cuGraphAddDependencies "+f.name, Result(r))
}
