//go:build unix

package cutest

import "syscall"

// reserve returns zeroed memory outside of Go's heap.
func reserve(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func release(b []byte) { _ = syscall.Munmap(b) }
