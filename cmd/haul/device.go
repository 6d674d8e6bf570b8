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
	cmd.Flags().StringVar(&f.precision, "precision", "fp32", "arithmetic: fp32")
	cmd.Flags().IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "cores to use; results do not depend on it")
}

// open checks the flags and opens the device.
func (f *deviceFlags) open() (kernel.Device, error) {
	if f.workers < 1 {
		return nil, usagef("--workers is %d: at least 1 is needed", f.workers)
	}
	if f.precision != "fp32" {
		return nil, usagef("unknown precision %q: the processor computes in fp32", f.precision)
	}
	name := f.name
	if name == "auto" {
		name = "cpu" // the one candidate
	}
	dev, err := device.Open(name, device.Options{Workers: f.workers})
	if err != nil && !strings.HasPrefix(f.name, "cuda") { // a card's name may be right and the card absent
		err = asUsage(err)
	}
	return dev, err
}
