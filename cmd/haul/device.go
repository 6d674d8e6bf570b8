package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/device"
	"haul/internal/kernel"
)

// deviceFlags say where a verb computes.
type deviceFlags struct {
	name      string
	precision string
	prefer    string // of a GPU, by the settings: no flag
	before    string // of a GPU, by the run that is resumed: no flag
	workers   int
	named     func() bool // somebody named the workers
}

func (f *deviceFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.name, "device", "auto", "where to compute: cpu, cuda:K, or auto, which times each and takes the fastest")
	cmd.Flags().StringVar(&f.precision, "precision", "", "precision of matrix products: fp32, bf16, tf32 (on a GPU), or auto for the fastest (default: fp32 on a CPU, tf32 or what the settings say on a GPU)")
	cmd.Flags().IntVar(&f.workers, "workers", device.PerformanceCores(), "CPU cores to use; results do not depend on it")
	f.named = func() bool { return cmd.Flags().Changed("workers") }
}

// check refuses what can be told from the flags alone, before any file is read.
func (f *deviceFlags) check(a *app) (err error) {
	if f.workers, err = a.cores(f.workers); err != nil {
		return err
	}
	switch f.precision {
	case "", "fp32", "tf32", "bf16", device.Any:
	default:
		return usagef("unknown precision %q: use fp32, bf16, tf32 or auto", f.precision)
	}
	return knownDevice(f.name, f.precision)
}

// knownDevice refuses what names no device, and what no CPU computes in.
func knownDevice(name, precision string) error {
	at, err := device.ParseName(name)
	if at.CPU && precision == "tf32" {
		return usagef("--precision tf32 is for GPUs; a CPU computes in fp32 or bf16")
	}
	return asUsage(err)
}

// openBy is open, with a word where the processor has no instructions for the precision that was
// asked for.
func (a *app) openBy(f *deviceFlags, trial func(kernel.Device) (float64, error)) (kernel.Device, error) {
	dev, err := a.open(f, trial)
	if d, ok := dev.(interface{ Emulates() bool }); ok && err == nil && d.Emulates() {
		fmt.Fprintln(a.stderr, "bf16: this processor has no instructions for it: products are made in fp32 of rounded numbers, slower than with --precision fp32")
	}
	return dev, err
}

// open checks the flags and opens the device. auto goes by the trial, and says so where there was a
// choice.
func (a *app) open(f *deviceFlags, trial func(kernel.Device) (float64, error)) (kernel.Device, error) {
	if err := f.check(a); err != nil {
		return nil, err
	}
	o := device.Options{Workers: f.workers, Precision: f.precision, Prefer: f.prefer, Spread: f.named != nil && !f.named(),
		Note: func(text string) { fmt.Fprintln(a.stderr, text) }}
	if f.name == "auto" || f.precision == device.Any {
		dev, table, err := device.Auto(f.name, o, trial)
		if len(table) > 1 {
			fmt.Fprintf(a.stderr, "auto: %s\n", candidates(table))
		}
		return dev, err
	}
	dev, err := device.Open(f.name, o)
	// a card's name may be right and the card absent
	if err != nil && !device.OnGPU(f.name) {
		err = asUsage(err)
	}
	return dev, err
}

// candidates is what auto measured, in a line.
func candidates(table []device.Candidate) string {
	var all []string
	for _, c := range table {
		name := c.Name
		if c.Precision != "" {
			name += " in " + c.Precision
		}
		s := fmt.Sprintf("%s %.3g ms per step", name, 1e3*c.Seconds)
		if c.Problem != "" {
			s = fmt.Sprintf("%s cannot run this (%s)", name, oneLine(c.Problem))
		}
		if c.Picked {
			s += " (picked)"
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}
