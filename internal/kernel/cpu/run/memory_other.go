//go:build !linux

package run

// hugePages: only Linux is asked for large pages.
func hugePages([]float32) {}
