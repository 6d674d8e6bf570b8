package lab

import (
	_ "embed"
	"errors"
	"fmt"
	"unsafe"

	"haul/internal/cu"
)

// packed is the PTX of src/lab.cu, as scripts/ptx generates it.
//
//go:embed ptx/lab.ptx.zst
var packed []byte

// gpu is a GPU with the lab's kernels loaded. Each experiment opens and closes one, so that a
// fault, after which a context cannot be used, affects only the experiment that caused it.
//
// All methods except open, close and do must run inside do, on the context's thread.
type gpu struct {
	ctx       *cu.Context
	module    cu.Module
	functions map[string]cu.Function
	stream    cu.Stream
	streams   []cu.Stream // streams besides the default one
	memory    []uint64
	locked    [][]byte
	graphs    []*cu.Exec
}

// withCard opens the GPU, runs f and closes the GPU.
func (e *env) withGPU(f func(c *gpu) error) (err error) {
	driver, err := cu.Open()
	if err != nil {
		return err
	}
	ctx, err := driver.NewContext(e.gpu)
	if err != nil {
		return err
	}
	c := &gpu{ctx: ctx, functions: map[string]cu.Function{}}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.do(c.load); err != nil {
		return err
	}
	return f(c)
}

// do runs f on the context's thread. It turns a panic, which would end the process, into an error.
func (c *gpu) do(f func() error) error { return c.ctx.Do(func() error { return guard(f) }) }

func (c *gpu) load() (err error) {
	ptx, err := cu.Inflate(packed)
	if err != nil {
		return err
	}
	if c.module, err = c.ctx.Load("lab", ptx); err != nil {
		return err
	}
	c.stream, err = c.ctx.NewStream()
	return err
}

// close waits for queued work and frees streams, graphs, memory and the GPU.
func (c *gpu) close() error {
	err := c.do(func() error {
		var errs []error
		for _, s := range append(c.streams, c.stream) {
			if s != 0 {
				errs = append(errs, c.ctx.Wait(s))
			}
		}
		for _, g := range c.graphs {
			errs = append(errs, g.Close())
		}
		for _, s := range append(c.streams, c.stream) {
			if s != 0 {
				errs = append(errs, c.ctx.FreeStream(s))
			}
		}
		for _, p := range c.memory {
			errs = append(errs, c.ctx.Free(p))
		}
		for _, b := range c.locked {
			errs = append(errs, c.ctx.FreeHost(b))
		}
		if c.module != 0 {
			errs = append(errs, c.ctx.Unload(c.module))
		}
		return errors.Join(errs...)
	})
	return errors.Join(err, c.ctx.Close())
}

// alloc allocates device memory for n elements of four bytes.
func (c *gpu) alloc(n int) (uint64, error) {
	p, err := c.ctx.Alloc(4 * n)
	if err == nil {
		c.memory = append(c.memory, p)
	}
	return p, err
}

// pinned allocates n page-locked floats.
func (c *gpu) pinned(n int) ([]float32, error) {
	b, err := c.ctx.HostAlloc(4 * n)
	if err != nil {
		return nil, err
	}
	c.locked = append(c.locked, b)
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}

// newStream creates another stream.
func (c *gpu) newStream() (cu.Stream, error) {
	s, err := c.ctx.NewStream()
	if err == nil {
		c.streams = append(c.streams, s)
	}
	return s, err
}

// word is the element type of device buffers.
type word interface{ ~float32 | ~int32 }

// in queues a copy to the device; host must not change until the stream has executed it.
func in[T word](c *gpu, dst uint64, host []T, s cu.Stream) error {
	return c.ctx.CopyIn(dst, unsafe.Pointer(unsafe.SliceData(host)), 4*len(host), s)
}

// out queues a copy from the device.
func out[T word](c *gpu, host []T, src uint64, s cu.Stream) error {
	return c.ctx.CopyOut(unsafe.Pointer(unsafe.SliceData(host)), src, 4*len(host), s)
}

// upload allocates memory, fills it and waits.
func upload[T word](c *gpu, host []T) (uint64, error) {
	p, err := c.alloc(len(host))
	if err != nil {
		return 0, err
	}
	if err := in(c, p, host, c.stream); err != nil {
		return 0, err
	}
	return p, c.ctx.Wait(c.stream)
}

// call is a kernel with its packed arguments. It can be launched any number of times.
type call struct {
	c        *gpu
	function cu.Function
	geometry cu.Geometry
	args     *cu.Args
}

// blockSize is the number of threads per block of kernels that process an array.
const blockSize = 256

// prepare looks up the kernel and packs the arguments.
func (c *gpu) prepare(kernel string, grid, block int, args ...any) (*call, error) {
	f, ok := c.functions[kernel]
	if !ok {
		var err error
		if f, err = c.ctx.Function(c.module, kernel, 0); err != nil {
			return nil, err
		}
		c.functions[kernel] = f
	}
	packed, err := cu.PackArgs(args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kernel, err)
	}
	return &call{c, f, cu.Geometry{Grid: [3]int{grid, 1, 1}, Block: [3]int{block, 1, 1}}, packed}, nil
}

// launch queues the kernel.
func (l *call) launch(s cu.Stream) error { return l.c.ctx.Launch(l.function, l.geometry, s, l.args) }

// launchAll queues calls in order.
func launchAll(s cu.Stream, calls []*call) error {
	for _, l := range calls {
		if err := l.launch(s); err != nil {
			return err
		}
	}
	return nil
}

// chain records calls as a graph in which each call waits for the previous one.
func (c *gpu) chain(calls []*call) (*cu.Exec, error) {
	g, err := c.ctx.NewGraph()
	if err != nil {
		return nil, err
	}
	var after []cu.Node
	for _, l := range calls {
		n, err := g.Add(l.function, l.geometry, l.args, after)
		if err != nil {
			return nil, err
		}
		after = []cu.Node{n}
	}
	exec, err := g.Instantiate()
	if err == nil {
		c.graphs = append(c.graphs, exec)
	}
	return exec, err
}

// timed returns a contender that calls f n times and then waits once for the stream.
func (c *gpu) timed(f func() error) contender {
	return func(n int) error {
		return c.do(func() error {
			for range n {
				if err := f(); err != nil {
					return err
				}
			}
			return c.ctx.Wait(c.stream)
		})
	}
}

// waited is timed for work after which the host waits each time, as a training step waits for its
// costs.
func (c *gpu) waited(f func() error) contender {
	return c.timed(func() error {
		if err := f(); err != nil {
			return err
		}
		return c.ctx.Wait(c.stream)
	})
}

// setup collects the allocations of an experiment. After the first error, which it keeps, its
// methods do nothing.
type setup struct {
	c   *gpu
	err error
}

func (s *setup) alloc(n int) uint64 {
	if s.err != nil {
		return 0
	}
	var p uint64
	p, s.err = s.c.alloc(n)
	return p
}

// flat prepares a kernel with one thread for each of n elements.
func (s *setup) flat(kernel string, n int, args ...any) *call {
	return s.prepare(kernel, (n+blockSize-1)/blockSize, blockSize, args...)
}

func (s *setup) prepare(kernel string, grid, block int, args ...any) *call {
	if s.err != nil {
		return nil
	}
	var l *call
	l, s.err = s.c.prepare(kernel, grid, block, args...)
	return l
}

// put uploads in a setup.
func put[T word](s *setup, host []T) uint64 {
	if s.err != nil {
		return 0
	}
	var p uint64
	p, s.err = upload(s.c, host)
	return p
}
