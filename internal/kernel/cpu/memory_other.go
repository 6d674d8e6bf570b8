//go:build !linux

package cpu

// hugePages: only Linux is asked for large pages.
func hugePages([]float32) {}
