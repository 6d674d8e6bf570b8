//go:build !linux

package comm

import (
	"errors"

	"haul/internal/cu"
)

func openNCCL() (carrier, error) { return nil, errors.New("NCCL is looked for on Linux only") }

// Record returns an error.
func (w *World) Record(*cu.Graph, cu.Stream, uint64, int, []cu.Node) ([]cu.Node, error) {
	return nil, errors.New("NCCL is looked for on Linux only")
}

// InGraph returns false: gradients pass through the host.
func (w *World) InGraph() bool { return false }

// RecordGather returns an error.
func (w *World) RecordGather(*cu.Graph, cu.Stream, uint64, uint64, int, []cu.Node) ([]cu.Node, error) {
	return nil, errors.New("NCCL is looked for on Linux only")
}

func (w *World) closeNCCL() error { return nil }
