//go:build !amd64 && !arm64

package cpu

// vectorTiles: no assembly for this architecture.
func vectorTiles() []*tileSet { return nil }
