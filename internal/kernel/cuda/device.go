// Package cuda runs Haul's ops on NVIDIA GPUs through the driver alone: kernels are PTX made
// from the .cu files of each family of ops, embedded, and a whole step is one graph. A family has a
// folder: its launchers in Go, its sources in src/, their PTX in ptx/.
//
// What a reader could break: a graph's nodes may run at the same time unless the tensors that
// their ops name (kernel.Op.Args) say otherwise, so an op that touches memory it does not
// name is a race. Sums that end in a weight's gradient are made in lanes and added in lane order:
// no atomics on floats, so that two runs give the same bits.
package cuda

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"haul/internal/cu"
	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
)

// The oldest compute capability that the kernels are built for.
const minMajor, minMinor = 8, 0

// Precision is what matrix products multiply in; sums are always fp32.
type Precision = bind.Precision

// The precisions.
const (
	FP32 = bind.FP32
	TF32 = bind.TF32
	BF16 = bind.BF16
)

// Options say how to open a GPU.
type Options struct {
	Ordinal   int
	Precision bind.Precision // "" is TF32
	// told once when kernels are about to be compiled for the card, and once where a setting leaves
	// them slow; may be nil
	Note func(string)
}

// Device is one GPU. All driver calls run on its context's thread.
type Device struct {
	ctx       *cu.Context
	precision bind.Precision
	modules   map[string]cu.Module   // by "module.kernel"
	declared  map[string]declaration // likewise
	compiler  compiler
	note      func(string) // of compiling; nil once told
	remark    func(string) // of a slow way; nil once told
	functions map[string]function
	sms       int
	maxShared int
	overlaps  bool // a kernel is launched before those it depends on have ended
	memory    int
	stream    cu.Stream
	described descriptions
	counters  kernel.Counters
	loadTime  time.Duration
}

// Open takes the GPU. Kernels are loaded as programs need them.
func Open(o Options) (*Device, error) {
	switch o.Precision {
	case "":
		o.Precision = bind.TF32
	case bind.FP32, bind.TF32, bind.BF16:
	default:
		return nil, fmt.Errorf("unknown precision %q: want fp32, tf32 or bf16", o.Precision)
	}
	driver, err := cu.Open()
	if err != nil {
		return nil, err
	}
	ctx, err := driver.NewContext(o.Ordinal)
	if err != nil {
		return nil, err
	}
	if err := serves(ctx.Device); err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	d := &Device{ctx: ctx, precision: o.Precision, note: o.Note, remark: o.Note, compiler: newCompiler(driver, ctx), overlaps: ctx.Device.Major >= overlapMajor && driver.Overlaps(), modules: map[string]cu.Module{}, declared: map[string]declaration{}, functions: map[string]function{}}
	if err := ctx.Do(d.start); err != nil {
		return nil, errors.Join(err, ctx.Close())
	}
	return d, nil
}

// serves refuses a card that the kernels are not built for.
func serves(c cu.Device) error {
	if c.Major > minMajor || c.Major == minMajor && c.Minor >= minMinor {
		return nil
	}
	return fmt.Errorf("%s is too old: compute capability %d.%d, %d.%d or newer is needed", c.Name, c.Major, c.Minor, minMajor, minMinor)
}

// isHopper reports whether kernels for sm_90a run on the card: on no newer one either.
func isHopper(c cu.Device) bool { return c.Major == 9 && c.Minor == 0 }

// start reads the card's limits. Runs on the context's thread.
func (d *Device) start() error {
	var err error
	if d.sms, err = d.ctx.Attribute(cu.AttrMultiprocessors); err != nil {
		return err
	}
	if d.maxShared, err = d.ctx.Attribute(cu.AttrMaxSharedOptin); err != nil {
		return err
	}
	_, total, err := d.ctx.MemInfo()
	if err != nil {
		return err
	}
	d.memory = int(total)
	d.stream, err = d.ctx.NewStream()
	return err
}

// Name says what runs: "cuda:0 (NVIDIA H200, tf32)".
func (d *Device) Name() string {
	return fmt.Sprintf("cuda:%d (%s, %s)", d.ctx.Ordinal, d.ctx.Name, d.precision)
}

// Precision is what matrix products are made in.
func (d *Device) Precision() string { return string(d.precision) }

// LoadTime is how long loading, and on a first start compiling, the kernels has taken so far.
func (d *Device) LoadTime() time.Duration { return d.loadTime }

// AvailableMemory is what the card has free.
func (d *Device) AvailableMemory() (int64, bool) {
	var free uint64
	err := d.ctx.Do(func() (err error) { free, _, err = d.ctx.MemInfo(); return err })
	return int64(free), err == nil
}

// ShardSize: the whole batch is one shard.
func (d *Device) ShardSize(int) int { return kernel.WholeBatch }

// Counters counts what the device was asked to do.
func (d *Device) Counters() *kernel.Counters { return &d.counters }

// Close unloads the kernels and gives the card back.
func (d *Device) Close() error {
	err := d.ctx.Do(func() error {
		var errs []error
		for _, m := range d.modules {
			errs = append(errs, d.ctx.Unload(m))
		}
		for _, m := range d.described.rooms {
			errs = append(errs, d.ctx.Free(m.at))
		}
		return errors.Join(append(errs, d.ctx.FreeStream(d.stream))...)
	})
	return errors.Join(err, d.ctx.Close())
}

// function finds a kernel and raises its limit of dynamic shared memory to the most any launch asks
// for. On the context's thread.
func (d *Device) function(l bind.Launch) (cu.Function, error) {
	key := l.Key()
	if f, ok := d.functions[key]; ok && l.Shared <= f.shared {
		return f.Function, nil
	}
	if err := d.fetch([]bind.Launch{l}); err != nil {
		return cu.Function{}, err
	}
	f, err := d.ctx.Function(d.modules[key], l.Kernel, l.Shared)
	if err == nil {
		d.functions[key] = function{f, l.Shared}
	}
	return f, err
}

// function is a kernel with the dynamic shared memory it may use.
type function struct {
	cu.Function
	shared int
}

// copyIn moves host memory to the device and waits, so that the source may be reused.
func (d *Device) copyIn(tag string, dst uint64, src unsafe.Pointer, bytes int) error {
	d.counters.Copied(tag, false, bytes)
	d.counters.Waits++
	return d.ctx.Do(func() error {
		if err := d.ctx.CopyIn(dst, src, bytes, d.stream); err != nil {
			return err
		}
		return d.ctx.Wait(d.stream)
	})
}

// copyOut moves device memory to the host and waits for it.
func (d *Device) copyOut(tag string, dst unsafe.Pointer, src uint64, bytes int) error {
	d.counters.Copied(tag, true, bytes)
	d.counters.Waits++
	return d.ctx.Do(func() error {
		if err := d.ctx.CopyOut(dst, src, bytes, d.stream); err != nil {
			return err
		}
		return d.ctx.Wait(d.stream)
	})
}

// memory is a block of device memory.
type memory struct {
	d     *Device
	at    uint64
	bytes int
}

// alloc reserves zeroed memory.
func (d *Device) alloc(bytes int) (memory, error) {
	m := memory{d: d, bytes: bytes}
	d.counters.Allocations++
	err := d.ctx.Do(func() error {
		var err error
		if m.at, err = d.ctx.Alloc(bytes); err != nil {
			return err
		}
		return d.ctx.Fill(m.at, 0, (bytes+3)/4, d.stream)
	})
	if err != nil {
		err = fmt.Errorf("reserve %.1f MiB on %s: %w", float64(bytes)/(1<<20), d.ctx.Name, err)
		if e := new(cu.Error); errors.As(err, &e) && e.Code == outOfMemory {
			err = noRoom{err}
		}
		return m, err
	}
	return m, nil
}

// outOfMemory is CUDA_ERROR_OUT_OF_MEMORY.
const outOfMemory cu.Result = 2

// noRoom is an error for want of memory.
type noRoom struct{ error }

func (e noRoom) Unwrap() error { return e.error }

// Is makes it a want of memory.
func (e noRoom) Is(target error) bool { return target == kernel.ErrMemory }

func (m memory) free() error {
	if m.at == 0 {
		return nil
	}
	return m.d.ctx.Do(func() error { return m.d.ctx.Free(m.at) })
}
