//go:build amd64 && !linux

package isa

// allowTiles: how other systems grant the tile registers is not known here.
func allowTiles() bool { return false }
