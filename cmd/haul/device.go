package main

import (
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/device"
	"haul/internal/kernel"
)

// deviceFlags say where a verb computes.
type deviceFlags struct {
	name      string
	precision string
	workers   int
}

func (f *deviceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "device", "auto", "cpu, cuda:K, or auto: the fastest here")
	cmd.Flags().StringVar(&f.precision, "precision", "", "matrix products: fp32, tf32 or bf16 on a GPU (tf32 when not given); fp32 on the CPU")
	cmd.Flags().IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "cores to use; results do not depend on it")
}

// open checks the flags and opens the device.
func (f *deviceFlags) open() (kernel.Device, error) {
	if f.workers < 1 {
		return nil, usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	switch f.precision {
	case "", "fp32", "tf32", "bf16":
	default:
		return nil, usagef("unknown precision %q: use fp32, tf32 or bf16", f.precision)
	}
	name := f.name
	if name == "auto" {
		name = "cpu" // the one candidate
	}
	dev, err := device.Open(name, device.Options{Workers: f.workers, Precision: f.precision})
	if err != nil && !strings.HasPrefix(f.name, "cuda") { // a card's name may be right and the card absent
		err = asUsage(err)
	}
	return dev, err
}

// arithmetic is what matrix products are made in.
func (f *deviceFlags) arithmetic() string {
	switch {
	case f.precision != "":
		return f.precision
	case strings.HasPrefix(f.name, "cuda"):
		return "tf32"
	}
	return "fp32"
}
