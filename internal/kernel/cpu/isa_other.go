//go:build !amd64 && !arm64

package cpu

// vectorSets: no assembly for this architecture.
func vectorSets() []*primitives { return nil }
