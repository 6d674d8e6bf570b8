//go:build linux || darwin

package cpu

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// openFortran opens a library and returns the address of its sgemm_, told to stay on the thread
// that calls it: the workers are the threads.
func openFortran(path string) (uintptr, error) {
	runtime.LockOSThread() // the loader's words for a failure belong to the thread that failed
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, fmt.Errorf("%s cannot be opened", path)
	}
	sgemm, err := purego.Dlsym(handle, "sgemm_")
	if err != nil {
		return 0, fmt.Errorf("%s has no sgemm_", path)
	}
	for _, threads := range []string{"BLASSetThreading", "openblas_set_num_threads", "MKL_Set_Num_Threads"} {
		if f, err := purego.Dlsym(handle, threads); err == nil {
			purego.SyscallN(f, 1) // Accelerate's 1 is its word for a single thread
		}
	}
	return sgemm, nil
}

// callFortran calls a function whose arguments are addresses.
func callFortran(f uintptr, a *[13]unsafe.Pointer) {
	purego.SyscallN(f, uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]), uintptr(a[6]),
		uintptr(a[7]), uintptr(a[8]), uintptr(a[9]), uintptr(a[10]), uintptr(a[11]), uintptr(a[12]))
}
