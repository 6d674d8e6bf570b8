//go:build unix

package isatest

import (
	"syscall"
	"testing"
	"unsafe"
)

// Guarded returns n floats that end exactly at a page with no access, or, with front, that start
// right after one; a read or write beyond that edge ends the process with a fault at its address.
// The memory goes back when the test ends.
func Guarded(t testing.TB, n int, front bool) []float32 {
	t.Helper()
	page := syscall.Getpagesize()
	bytes := (n*4 + page - 1) / page * page
	mem, err := syscall.Mmap(-1, 0, bytes+2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatalf("map %d bytes: %v", bytes+2*page, err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(mem) })
	for _, edge := range [][]byte{mem[:page], mem[page+bytes:]} {
		if err := syscall.Mprotect(edge, syscall.PROT_NONE); err != nil {
			t.Fatalf("protect a guard page: %v", err)
		}
	}
	if n == 0 {
		return nil
	}
	start := page
	if !front {
		start += bytes - n*4
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&mem[start])), n)
}
