// Package cu is the CUDA driver, reached through purego: no cgo, no toolkit, only libcuda.so.1.
// It knows devices, contexts, memory, streams, modules, graphs and the driver's errors, and no
// kernel.
//
// Every driver call returns a result code and every code passes through check. A call whose result
// is dropped would surface as another call's failure later, because the driver's errors are sticky.
package cu

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// library is the name the driver package installs; the bare libcuda.so belongs to the toolkit.
const library = "libcuda.so.1"

// ErrNoDriver is that this machine has no CUDA driver.
var ErrNoDriver = errors.New("no CUDA driver")

// Symbols gives the address of one of the driver's entry points by its name.
type Symbols func(name string) (uintptr, error)

// Driver is the loaded driver library. All its methods are safe to call from any goroutine.
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

// Open loads and initialises the driver once per process; later calls return the same outcome.
// The error says in one line why there is none: no library, or the driver's own refusal.
func Open() (*Driver, error) { return (*installed.Load())() }

// installed is what Open does.
var installed atomic.Pointer[func() (*Driver, error)]

func init() {
	once := sync.OnceValues(open)
	installed.Store(&once)
}

// Replace has Open give the driver of other entry points, of which each is called as the library's
// own is, until restore is called. Tests have one that interprets kernels.
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

// initialised is the driver of those entry points, ready to use.
func initialised(symbols Symbols) (*Driver, error) {
	d := &Driver{symbol: symbols}
	// The _v2 name carries 64-bit sizes; the bare one is the 32-bit entry kept for old programs.
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

// Version is the newest CUDA the driver speaks, as major and minor.
func (d *Driver) Version() (major, minor int, err error) {
	var v int32
	if err := d.check("cuDriverGetVersion", d.cuDriverGetVersion(&v)); err != nil {
		return 0, 0, err
	}
	return int(v / 1000), int(v % 1000 / 10), nil
}
