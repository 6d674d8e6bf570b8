//go:build !linux && !darwin

package cpu

import (
	"fmt"
	"runtime"
	"unsafe"
)

func openFortran(path string) (uintptr, error) {
	return 0, fmt.Errorf("%s: libraries are opened on Linux and macOS only, this is %s", path, runtime.GOOS)
}

func callFortran(uintptr, *[13]unsafe.Pointer) { panic("cpu: no library is open") }
