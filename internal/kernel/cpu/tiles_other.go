//go:build !amd64

package cpu

// vectorTiles: no assembly for this architecture.
func vectorTiles() []*tileSet { return nil }
