package run

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"haul/internal/kernel"
	"haul/internal/plan"
)

// bounded is a device that has separate memory.
type bounded interface {
	AvailableMemory() (bytes int64, known bool)
}

// Compile compiles a program, or returns an error before it allocates if the program cannot fit
// into memory. The error advises key: a setting that determines the program's size, a flag with a
// value that makes it smaller, or "" if only the model's size matters.
func Compile(key string, p *plan.Plan, dev kernel.Device, sets ...kernel.Store) (kernel.Runner, error) {
	return CompileWithHost(key, 0, p, dev, sets...)
}

// CompileWithHost is Compile for a caller that will also hold `host` bytes of host memory. They
// count against the program's memory unless the device has separate memory.
func CompileWithHost(key string, host int64, p *plan.Plan, dev kernel.Device, sets ...kernel.Store) (kernel.Runner, error) {
	prog := p.Program()
	need := LeastMemory(dev, prog)
	if _, apart := dev.(bounded); apart {
		if err := FitsHost(key, "the host", prog.Name, prog.Total(), host); err != nil {
			return nil, err
		}
	} else {
		need = Sum(need, host)
	}
	if err := Fits(key, dev, prog.Name, prog.Total(), need); err != nil {
		return nil, err
	}
	return p.Compile(dev, sets...)
}

// NewStore allocates a weight set, or returns an error if it cannot fit into memory.
func NewStore(dev kernel.Device, l *kernel.Layout, train bool) (kernel.Store, error) {
	copies := 1
	if train {
		copies = 4 // weights, gradient, two moments
	}
	bytes := Product(4, int64(copies), int64(l.Len))
	if d, ok := dev.(kernel.Sizer); ok {
		bytes = d.StoreMemory(l, train)
	}
	if err := Fits("", dev, "the model", 0, bytes); err != nil {
		return nil, err
	}
	return dev.NewStore(l, train)
}

// LeastMemory returns the bytes that a device needs for a program: batch and data tensors,
// activations of the shards that it processes concurrently, and tables of pairs of nodes.
func LeastMemory(dev kernel.Device, prog *kernel.Program) int64 {
	arenas, kept := 1, prog.Shards()
	if d, ok := dev.(kernel.Sizer); ok {
		arenas, kept = min(d.Arenas(), prog.Shards()), d.Kept(prog)
	}
	n := Product(4, int64(prog.ShardLen), int64(arenas))
	for _, t := range prog.Tensors {
		switch t.Space {
		case kernel.Batch:
			n = Sum(n, Product(4, int64(t.Len()), int64(kept)))
		case kernel.Data:
			n = Sum(n, Product(4, int64(t.Len())))
		}
	}
	var all, largest int64
	for _, op := range prog.PerShard {
		if t, ok := op.(kernel.Tabled); ok {
			all, largest = Sum(all, t.TableBytes()), max(largest, t.TableBytes())
		}
	}
	if _, separate := dev.(bounded); separate {
		return Sum(n, Product(all, int64(prog.Batch)))
	}
	return Sum(n, Product(largest, int64(arenas)))
}

// Product multiplies sizes. It returns MaxInt64 instead of an overflow.
func Product(factors ...int64) int64 {
	n := int64(1)
	for _, f := range factors {
		if f != 0 && n > math.MaxInt64/f {
			return math.MaxInt64
		}
		n *= f
	}
	return n
}

// Sum adds sizes. It returns MaxInt64 instead of an overflow.
func Sum(sizes ...int64) int64 {
	n := int64(0)
	for _, s := range sizes {
		if n > math.MaxInt64-s {
			return math.MaxInt64
		}
		n += s
	}
	return n
}

// Fits returns a one-line error if the device has less memory available than `bytes`. The error
// advises a value of the key that fits, given its present value n. Unknown memory always fits.
func Fits(key string, dev kernel.Device, what string, n int, bytes int64) error {
	if d, ok := dev.(bounded); ok {
		available, known := d.AvailableMemory()
		return within(key, dev.Name(), what, n, bytes, available, known)
	}
	return FitsHost(key, dev.Name(), what, n, bytes)
}

// FitsCompiled is Fits for programs that are compiled. On a GPU it returns nil, because compiling
// has allocated their memory. On the host that memory is reserved, but still free until it is
// written.
func FitsCompiled(key string, dev kernel.Device, what string, n int, bytes int64) error {
	if _, ok := dev.(bounded); ok {
		return nil
	}
	return Fits(key, dev, what, n, bytes)
}

// FitsHost is Fits for data in host memory, for programs on any device.
func FitsHost(key, where, what string, n int, bytes int64) error {
	available, known := AvailableMemory()
	return within(key, where, what, n, bytes, available, known)
}

func within(key, where, what string, n int, bytes, available int64, known bool) error {
	if !known || bytes <= available {
		return nil
	}
	advice := "lower the model's size"
	switch most := int64(float64(n) * 0.9 * float64(available) / float64(bytes)); {
	case key == "":
	case strings.Contains(key, " "): // a flag and its value
		advice = "use " + key
	case most > 0:
		advice = fmt.Sprintf("%s %d would fit", key, most)
	case n > 1:
		advice = "lower " + key
	}
	return &shortage{what: what, where: where, advice: advice, bytes: bytes, available: available}
}

// room returns a one-line error if the host has less memory available than `bytes`, for data whose
// size no setting changes.
func room(what string, bytes int64) error {
	if available, known := AvailableMemory(); known && bytes > available {
		return fmt.Errorf("%s take %s of memory, %s is available", what, mebibytes(bytes), mebibytes(available))
	}
	return nil
}

// FitsDisk returns a one-line error if a folder's disk has less space than `bytes`. Unknown space
// always fits.
func FitsDisk(path string, bytes int64) error {
	free, known := freeDisk(filepath.Dir(path))
	return fitsIn(path, bytes, free, known)
}

func fitsIn(path string, bytes, free int64, known bool) error {
	if known && bytes > free {
		return fmt.Errorf("%s takes %s, its disk has %s free", path, mebibytes(bytes), mebibytes(free))
	}
	return nil
}

// mebibytes formats a size: bytes below 10 KiB, KiB below 10 MiB, else MiB.
func mebibytes(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	case n >= 10<<10:
		return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}
