//go:build !amd64 && !arm64

package isa

// vectorTiles: no assembly for this architecture.
func vectorTiles() []*TileSet { return nil }
