//go:build !linux

package comm

import (
	"errors"

	"haul/internal/cu"
)

func openNCCL() (carrier, error) { return nil, errors.New("NCCL is looked for on Linux only") }

// Record has nothing to record.
func (w *World) Record(*cu.Graph, cu.Stream, uint64, int, []cu.Node) ([]cu.Node, error) {
	return nil, errors.New("NCCL is looked for on Linux only")
}

// InGraph tells that gradients cross through the host.
func (w *World) InGraph() bool { return false }

// RecordGather has nothing to record.
func (w *World) RecordGather(*cu.Graph, cu.Stream, uint64, uint64, int, []cu.Node) ([]cu.Node, error) {
	return nil, errors.New("NCCL is looked for on Linux only")
}

func (w *World) closeCards() error { return nil }
