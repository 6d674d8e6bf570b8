package cu

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"
)

// Module is a loaded image of kernels.
type Module uintptr

// Function is a kernel.
type Function struct {
	handle uintptr
	name   string
}

// The driver's constants (CUjit_option, CUfunction_attribute).
const (
	jitErrorLog        = 5
	jitErrorLogSize    = 6
	attrMaxDynamicSize = 8
	attrRegisters      = 4
	attrLocalBytes     = 3
)

// libraryCalls holds the functions that load code without a context: CUDA 12.0 or newer. The driver
// compiles modules of a context one at a time, but libraries concurrently.
type libraryCalls struct {
	Load   func(lib *uintptr, code unsafe.Pointer, keys *int32, values *uintptr, n uint32, options *int32, given *uintptr, m uint32) Result `sym:"cuLibraryLoadData"`
	Module func(m *uintptr, lib uintptr) Result                                                                                             `sym:"cuLibraryGetModule"`
	Unload func(lib uintptr) Result                                                                                                         `sym:"cuLibraryUnload"`
}

// LoadAside is Load on another thread, so that several modules are compiled concurrently.
func (c *Context) LoadAside(name string, code []byte) (Module, error) {
	var m Module
	err := c.aside(func() (err error) { m, err = c.Load(name, code); return err })
	return m, err
}

// UnloadAside is Unload on another thread.
func (c *Context) UnloadAside(m Module) error {
	return c.aside(func() error { return c.Unload(m) })
}

// aside runs f on a thread on which it makes the context current.
func (c *Context) aside(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.check("cuCtxSetCurrent", c.c.CtxSetCurrent(c.primary)); err != nil {
		return err
	}
	defer c.c.CtxSetCurrent(0)
	return f()
}

// Load compiles the whole PTX for this GPU with the driver's full optimization. The driver's linker
// (cuLinkAddData) is not used: it would keep calls between files possible, and therefore ignore
// setmaxnreg and serialize wgmma. The driver caches the compiled code (Cache). It must run inside
// Do.
func (c *Context) Load(name string, code []byte) (Module, error) {
	image := append(append([]byte(nil), code...), 0)
	if m, ok := c.loadLibrary(image); ok {
		return m, nil
	}
	log := make([]byte, 8192)
	keys := [2]int32{jitErrorLog, jitErrorLogSize}
	values := [2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	var m uintptr
	err := c.check("cuModuleLoadDataEx", c.c.ModuleLoad(&m, unsafe.Pointer(&image[0]), 2, &keys[0], &values[0]))
	runtime.KeepAlive(image)
	runtime.KeepAlive(log)
	if err != nil {
		text := strings.TrimSpace(string(log[:max(0, strings.IndexByte(string(log), 0))]))
		return 0, fmt.Errorf("load kernels %s: %w %s", name, err, text)
	}
	return Module(m), nil
}

// loadLibrary loads an image as a library. If it returns false, because that failed or the driver
// has no libraries, the caller loads the image as a module, which also reports errors in it.
func (c *Context) loadLibrary(image []byte) (Module, bool) {
	if c.l == nil {
		return 0, false
	}
	var lib, m uintptr
	r := c.l.Load(&lib, unsafe.Pointer(&image[0]), nil, nil, 0, nil, nil, 0)
	runtime.KeepAlive(image)
	if r != 0 {
		return 0, false
	}
	if c.l.Module(&m, lib) != 0 {
		c.l.Unload(lib)
		return 0, false
	}
	c.libraries.Store(Module(m), lib)
	return Module(m), true
}

// Cache returns the folder in which the driver caches compiled code, "" if caching is turned off
// (CUDA_CACHE_DISABLE).
func Cache() string {
	if off := os.Getenv("CUDA_CACHE_DISABLE"); off != "" && off != "0" {
		return ""
	}
	if path := os.Getenv("CUDA_CACHE_PATH"); path != "" {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".nv", "ComputeCache")
}

// Unload unloads the module. It must run inside Do.
func (c *Context) Unload(m Module) error {
	if lib, ok := c.libraries.LoadAndDelete(m); ok {
		return c.check("cuLibraryUnload", c.l.Unload(lib.(uintptr)))
	}
	return c.check("cuModuleUnload", c.c.ModuleUnload(uintptr(m)))
}

// Function returns a kernel by name and permits it `shared` bytes of dynamic shared memory. It must
// run inside Do.
func (c *Context) Function(m Module, name string, shared int) (Function, error) {
	text := append([]byte(name), 0)
	f := Function{name: name}
	if err := c.check("cuModuleGetFunction "+name, c.c.ModuleFunction(&f.handle, uintptr(m), &text[0])); err != nil {
		return f, err
	}
	if shared > 48<<10 {
		if err := c.check("cuFuncSetAttribute "+name, c.c.FuncSetAttr(f.handle, attrMaxDynamicSize, int32(shared))); err != nil {
			return f, err
		}
	}
	return f, nil
}

// Resources returns the registers and the bytes of local memory (spills) per thread of the kernel.
// It must run inside Do.
func (c *Context) Resources(f Function) (registers, local int, err error) {
	var r, l int32
	if err := c.check("cuFuncGetAttribute", c.c.FuncGetAttr(&r, attrRegisters, f.handle)); err != nil {
		return 0, 0, err
	}
	err = c.check("cuFuncGetAttribute", c.c.FuncGetAttr(&l, attrLocalBytes, f.handle))
	return int(r), int(l), err
}

// Geometry holds the numbers of blocks and threads of a launch, and its dynamic shared memory in
// bytes.
type Geometry struct {
	Grid, Block [3]int
	Shared      int
}

// Args holds packed kernel arguments, each at its natural alignment, with a pointer to each.
type Args struct {
	buf  []byte
	ptrs []unsafe.Pointer
}

// PackArgs packs uint64, int64, float64, uint32, int32 and float32 values.
func PackArgs(values ...any) (*Args, error) {
	a := &Args{buf: make([]byte, 8*len(values)+8)}
	for i, v := range values {
		b := a.buf[8*i:]
		switch x := v.(type) {
		case uint64:
			binary.NativeEndian.PutUint64(b, x)
		case int64:
			binary.NativeEndian.PutUint64(b, uint64(x))
		case float64:
			binary.NativeEndian.PutUint64(b, math.Float64bits(x))
		case uint32:
			binary.NativeEndian.PutUint32(b, x)
		case int32:
			binary.NativeEndian.PutUint32(b, uint32(x))
		case float32:
			binary.NativeEndian.PutUint32(b, math.Float32bits(x))
		default:
			return nil, fmt.Errorf("kernel argument %d has type %T", i, v)
		}
		a.ptrs = append(a.ptrs, unsafe.Pointer(&b[0]))
	}
	return a, nil
}

// Launch queues one run of the kernel. It must run inside Do.
func (c *Context) Launch(f Function, g Geometry, s Stream, a *Args) error {
	r := c.c.Launch(f.handle, uint32(g.Grid[0]), uint32(g.Grid[1]), uint32(g.Grid[2]),
		uint32(g.Block[0]), uint32(g.Block[1]), uint32(g.Block[2]), uint32(g.Shared), uintptr(s),
		unsafe.Pointer(unsafe.SliceData(a.ptrs)), nil)
	runtime.KeepAlive(a)
	return c.check("cuLaunchKernel "+f.name, r)
}
