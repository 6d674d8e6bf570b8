//go:build !linux

package cu

import (
	"fmt"
	"runtime"
)

func dlopen(string) (uintptr, error) {
	return 0, fmt.Errorf("%s is looked for on Linux only, this is %s", library, runtime.GOOS)
}

func dlsym(uintptr, string) (uintptr, error) {
	return 0, fmt.Errorf("no dynamic library on %s", runtime.GOOS)
}
