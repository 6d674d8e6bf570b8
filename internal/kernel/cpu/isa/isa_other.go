//go:build !amd64 && !arm64

package isa

// vectorSets: no assembly for this architecture.
func vectorSets() []*Primitives { return nil }
