// Package cu calls the CUDA driver for the GPU backend (internal/kernel/cuda). It loads
// libcuda.so.1 at run time through purego, without cgo or the CUDA toolkit. It covers devices,
// contexts, memory, streams, modules, graphs and errors, and does not depend on any kernel.
//
// The result of every driver call passes through check. A result that is ignored would appear later
// as the failure of another call, because the driver's errors are sticky.
package cu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// library is the file that the driver package installs; libcuda.so belongs to the toolkit.
const library = "libcuda.so.1"

// ErrNoDriver is the error on a machine without a CUDA driver.
var ErrNoDriver = errors.New("no CUDA driver")

// Symbols returns the address of a driver function by its name.
type Symbols func(name string) (uintptr, error)

// Driver is the loaded driver library. Its methods may be called from any goroutine.
type Driver struct {
	symbol             Symbols
	cuInit             func(flags uint32) Result
	cuDriverGetVersion func(version *int32) Result
	cuDeviceGetCount   func(count *int32) Result
	cuDeviceGet        func(device *int32, ordinal int32) Result
	cuDeviceGetName    func(name *byte, length int32, device int32) Result
	cuDeviceTotalMem   func(bytes *uint64, device int32) Result
	cuDeviceGetAttr    func(value *int32, attribute int32, device int32) Result
	cuGetErrorName     func(code Result, name *uintptr) Result
	cuGetErrorString   func(code Result, text *uintptr) Result
}

// Open loads and initializes the driver once per process. Later calls return the same result. The
// error is one line: the library is missing, or the driver refused to initialize.
func Open() (*Driver, error) { return (*installed.Load())() }

// installed is the implementation of Open.
var installed atomic.Pointer[func() (*Driver, error)]

func init() {
	once := sync.OnceValues(open)
	installed.Store(&once)
}

// Replace makes Open return a driver with other functions, which are called like those of the
// library, until restore is called. Tests use a driver that interprets kernels.
func Replace(symbols Symbols) (restore func()) {
	once := sync.OnceValues(func() (*Driver, error) { return initialised(symbols) })
	before := installed.Swap(&once)
	return func() { installed.Store(before) }
}

func open() (*Driver, error) {
	handle, err := dlopen(library)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	return initialised(func(name string) (uintptr, error) { return dlsym(handle, name) })
}

// initialised returns an initialized driver with these functions.
func initialised(symbols Symbols) (*Driver, error) {
	d := &Driver{symbol: symbols}
	// The _v2 name has 64-bit sizes; the other name is the 32-bit function for old programs.
	for _, s := range []struct {
		name string
		fn   any
	}{
		{"cuInit", &d.cuInit},
		{"cuDriverGetVersion", &d.cuDriverGetVersion},
		{"cuDeviceGetCount", &d.cuDeviceGetCount},
		{"cuDeviceGet", &d.cuDeviceGet},
		{"cuDeviceGetName", &d.cuDeviceGetName},
		{"cuDeviceTotalMem_v2", &d.cuDeviceTotalMem},
		{"cuDeviceGetAttribute", &d.cuDeviceGetAttr},
		{"cuGetErrorName", &d.cuGetErrorName},
		{"cuGetErrorString", &d.cuGetErrorString},
	} {
		symbol, err := symbols(s.name)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: the driver is too old or damaged", library, s.name)
		}
		purego.RegisterFunc(s.fn, symbol)
	}
	if err := d.check("cuInit", d.cuInit(0)); err != nil {
		return nil, err
	}
	return d, nil
}

// Version returns the newest CUDA version that the driver supports.
func (d *Driver) Version() (major, minor int, err error) {
	var v int32
	if err := d.check("cuDriverGetVersion", d.cuDriverGetVersion(&v)); err != nil {
		return 0, 0, err
	}
	return int(v / 1000), int(v % 1000 / 10), nil
}
