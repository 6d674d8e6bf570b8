// Package device opens the backends by name. It is the one place that imports them, so that
// everything above speaks to kernel.Device alone.
package device

import (
	"fmt"
	"strconv"
	"strings"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu"
)

// Options say how to open a device. The zero value picks everything.
type Options struct {
	Workers int    // cores of the CPU; 0: all. Results do not depend on it
	Set     string // instruction set of the CPU: avx512, avx2, go; "": the fastest
}

// Open opens a device by the name a user gives: cpu, cuda:K or auto.
func Open(name string, o Options) (kernel.Device, error) {
	switch kind, index, indexed := strings.Cut(name, ":"); {
	case name == "cpu", name == "auto": // auto has one candidate
		if o.Workers < 0 {
			return nil, fmt.Errorf("workers is %d: at least 1 is needed, or 0 for all cores", o.Workers)
		}
		dev, err := cpu.Open(cpu.Options{Set: o.Set, Workers: o.Workers})
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", name, err)
		}
		return dev, nil
	case kind == "cuda":
		if k, err := strconv.Atoi(index); indexed && (err != nil || k < 0) {
			return nil, fmt.Errorf("device %s: the card is a number, as in cuda:0", name)
		}
		return nil, fmt.Errorf("device %s: this build has no CUDA kernels; use cpu", name)
	}
	return nil, fmt.Errorf("unknown device %q: use cpu, cuda:K or auto", name)
}
