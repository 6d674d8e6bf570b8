package isa

import "syscall"

// allowTiles asks the kernel, once per process and before the first tile instruction, to keep the
// tile registers of its threads.
func allowTiles() bool {
	const requestPermission, tileData = 0x1023, 18
	_, _, errno := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return errno == 0
}
