package cu

import (
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Context is one GPU in use. The driver binds a context to an OS thread, so all calls run on one
// locked goroutine: callers pass functions to Do and never call the driver themselves.
type Context struct {
	Device
	driver  *Driver
	c       calls
	s       stepCalls
	l       *libraryCalls // nil: the driver has no such calls
	words   [4]uintptr
	handle  int32
	primary uintptr // the primary context, current on the threads that make calls
	// by Module: its library, if it was loaded as one
	libraries sync.Map
	work      chan task
	done      chan struct{}
}

type task struct {
	f   func() error
	err chan error
}

// NewContext opens the GPU with the given ordinal.
func (d *Driver) NewContext(ordinal int) (*Context, error) {
	devices, err := d.Devices()
	if err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= len(devices) {
		return nil, fmt.Errorf("no GPU %d: the driver shows %d", ordinal, len(devices))
	}
	c := &Context{Device: devices[ordinal], driver: d, work: make(chan task), done: make(chan struct{})}
	if err := errors.Join(d.bind(&c.c), d.bind(&c.s)); err != nil {
		return nil, err
	}
	if l := (libraryCalls{}); d.bind(&l) == nil {
		c.l = &l
	}
	go c.loop()
	err = c.Do(func() error {
		if err := d.check("cuDeviceGet", d.cuDeviceGet(&c.handle, int32(ordinal))); err != nil {
			return err
		}
		if err := d.check("cuDevicePrimaryCtxRetain", c.c.PrimaryCtxRetain(&c.primary, c.handle)); err != nil {
			return err
		}
		return d.check("cuCtxSetCurrent", c.c.CtxSetCurrent(c.primary))
	})
	if err != nil {
		close(c.work)
		return nil, err
	}
	return c, nil
}

// bind looks up every field of calls or stepCalls by its tag.
func (d *Driver) bind(into any) error {
	v := reflect.ValueOf(into).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Tag.Get("sym")
		symbol, err := d.symbol(name)
		if err != nil {
			return fmt.Errorf("%s has no %s: the driver is too old (CUDA 11.4 or newer is needed)", library, name)
		}
		if v.Field(i).Kind() == reflect.Uintptr {
			v.Field(i).SetUint(uint64(symbol))
			continue
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), symbol)
	}
	return nil
}

// loop runs tasks on a locked thread until Close.
func (c *Context) loop() {
	runtime.LockOSThread()
	defer close(c.done)
	for t := range c.work {
		t.err <- t.f()
	}
	c.c.CtxSetCurrent(0)
}

// Do runs f on the context's thread and waits for it.
func (c *Context) Do(f func() error) error {
	t := task{f: f, err: errs.Get().(chan error)}
	c.work <- t
	err := <-t.err
	errs.Put(t.err)
	return err
}

// Close releases the context. Memory and modules must be freed before.
func (c *Context) Close() error {
	err := c.Do(func() error { return c.check("cuDevicePrimaryCtxRelease", c.c.PrimaryCtxRelease(c.handle)) })
	close(c.work)
	<-c.done
	return err
}

func (c *Context) check(call string, r Result) error { return c.driver.check(call, r) }

// Attribute returns a CUdevice_attribute by its number.
func (c *Context) Attribute(number int) (int, error) {
	var v int32
	err := c.check("cuDeviceGetAttribute", c.driver.cuDeviceGetAttr(&v, int32(number), c.handle))
	return int(v), err
}

// Attributes by which backends choose kernels (CUdevice_attribute).
const (
	AttrMultiprocessors = 16
	AttrMaxSharedOptin  = 97 // bytes of shared memory that a block can opt in to
	AttrClockKHz        = 13
)

// The calls below must run inside Do.

// Alloc allocates device memory.
func (c *Context) Alloc(bytes int) (uint64, error) {
	var p uint64
	err := c.check("cuMemAlloc", c.c.MemAlloc(&p, uintptr(max(bytes, 4))))
	return p, err
}

// Free frees device memory.
func (c *Context) Free(p uint64) error { return c.check("cuMemFree", c.c.MemFree(p)) }

// MemInfo returns the GPU's free and total memory in bytes.
func (c *Context) MemInfo() (free, total uint64, err error) {
	err = c.check("cuMemGetInfo", c.c.MemGetInfo(&free, &total))
	return free, total, err
}

// HostAlloc allocates page-locked host memory, which the GPU reads without an intermediate copy.
func (c *Context) HostAlloc(bytes int) ([]byte, error) {
	var p unsafe.Pointer
	if err := c.check("cuMemHostAlloc", c.c.MemHostAlloc(&p, uintptr(bytes), 0)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

// FreeHost frees page-locked memory.
func (c *Context) FreeHost(b []byte) error {
	return c.check("cuMemFreeHost", c.c.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b))))
}

// CopyIn queues a copy to the device. src must not change until the stream has executed the copy.
func (c *Context) CopyIn(dst uint64, src unsafe.Pointer, bytes int, s Stream) error {
	return c.check("cuMemcpyHtoD", c.c.CopyIn(dst, src, uintptr(bytes), uintptr(s)))
}

// CopyOut queues a copy from the device.
func (c *Context) CopyOut(dst unsafe.Pointer, src uint64, bytes int, s Stream) error {
	return c.check("cuMemcpyDtoH", c.c.CopyOut(dst, src, uintptr(bytes), uintptr(s)))
}

// CopyWithin queues a copy from device memory to device memory.
func (c *Context) CopyWithin(dst, src uint64, bytes int, s Stream) error {
	return c.check("cuMemcpyDtoD", c.step(c.s.CopyWithin, uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s)))
}

// CopyLocked queues a copy of page-locked memory (HostAlloc) to the device. src must not change
// until the stream has executed the copy.
func (c *Context) CopyLocked(dst uint64, src []byte, s Stream) error {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(src)))
	return c.check("cuMemcpyHtoD", c.step(c.s.CopyLocked, uintptr(dst), from, uintptr(len(src)), uintptr(s)))
}

// CopyBack queues a copy from the device to page-locked memory (HostAlloc).
func (c *Context) CopyBack(dst []byte, src uint64, s Stream) error {
	to := uintptr(unsafe.Pointer(unsafe.SliceData(dst)))
	return c.check("cuMemcpyDtoH", c.step(c.s.CopyBack, to, uintptr(src), uintptr(len(dst)), uintptr(s)))
}

// Fill queues a fill of count 32-bit words.
func (c *Context) Fill(dst uint64, value uint32, count int, s Stream) error {
	return c.check("cuMemsetD32", c.c.Memset32(dst, value, uintptr(count), uintptr(s)))
}
