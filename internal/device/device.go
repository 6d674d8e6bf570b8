// Package device opens the backends by name. It is the one place that imports them, so that
// everything above speaks to kernel.Device alone.
package device

import (
	"cmp"
	"errors"
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
	"haul/internal/kernel/cuda"
)

// Options say how to open a device. The zero value picks everything.
type Options struct {
	Workers int    // cores of the CPU; 0: all, or the fast ones of two kinds. Results do not depend on it
	Spread  bool   // nobody named Workers: Auto may try all cores where they are of two kinds
	Set     string // instruction set of the CPU: avx512, avx2, sse, neon, go; "": the fastest
	// matrix products: fp32, bf16, on a GPU also tf32; "": what Prefer says on a GPU, fp32 on a CPU.
	// Any is for Auto alone
	Precision string
	Prefer    string // of a GPU, where nobody asked; "": tf32. A CPU passes it over
	// told once when a GPU's kernels are about to be compiled, and once where a setting leaves them
	// slow; may be nil
	Note func(string)
}

// Any is the precision of somebody who lets Auto choose that too.
const Any = "auto"

// Open opens a device by the name a user gives: cpu or cuda:K. Choosing between them is Auto's
// work.
func Open(name string, o Options) (kernel.Device, error) {
	at, err := ParseName(name)
	switch {
	case err != nil:
		return nil, err
	case at.Auto:
		return nil, fmt.Errorf("unknown device %q: use cpu, cuda:K or auto", name)
	case !at.CPU:
		dev, err := cuda.Open(cuda.Options{Ordinal: at.Card, Precision: cuda.Precision(cmp.Or(o.Precision, o.Prefer)), Note: o.Note})
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", name, err)
		}
		return dev, nil
	case o.Workers < 0:
		return nil, fmt.Errorf("workers is %d: at least 1 is needed, or 0 for all cores", o.Workers)
	case o.Precision == "tf32":
		return nil, errors.New("device cpu: precision tf32 is for GPUs; a CPU computes in fp32 or bf16")
	}
	dev, err := cpu.Open(cpu.Options{Set: o.Set, Workers: o.Workers, Precision: o.Precision})
	if err != nil {
		return nil, fmt.Errorf("device %s: %w", name, err)
	}
	return dev, nil
}

// Prepared is what Prepare found and did.
type Prepared = cuda.Prepared

// Prepare compiles every kernel for a graphics card ahead of its first use. progress may be nil.
func Prepare(card int, progress func(done, all int)) (Prepared, error) {
	dev, err := cuda.Open(cuda.Options{Ordinal: card})
	if err != nil {
		return Prepared{}, err
	}
	out, err := dev.Prepare(progress)
	return out, errors.Join(err, dev.Close())
}
