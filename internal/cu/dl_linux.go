package cu

import (
	"errors"
	"runtime"

	"github.com/ebitengine/purego"
)

// dlopen opens a library. The goroutine stays on one thread, because dlerror describes the last
// failure of the calling thread.
func dlopen(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil && err.Error() == "" {
		err = errors.New(name + " cannot be opened")
	}
	return handle, err
}

func dlsym(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
