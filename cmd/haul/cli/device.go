package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"haul/internal/device"
	"haul/internal/kernel"
)

// DeviceFlags say where a verb computes.
type DeviceFlags struct {
	Name      string
	Precision string
	prefer    string // of a GPU, by the settings: no flag
	Before    string // of a GPU, by the run that is resumed: no flag
	Workers   int
	named     func() bool // somebody named the workers
}

func (f *DeviceFlags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.Name, "device", "auto", "where to compute: cpu, cuda:K, or auto, which times each and takes the fastest")
	cmd.Flags().StringVar(&f.Precision, "precision", "", "precision of matrix products: fp32, bf16, tf32 (on a GPU), or auto for the fastest (default: fp32 on a CPU, tf32 or what the settings say on a GPU)")
	cmd.Flags().IntVar(&f.Workers, "workers", device.PerformanceCores(), "CPU cores to use; results do not depend on it")
	f.named = func() bool { return cmd.Flags().Changed("workers") }
}

// Check refuses what can be told from the flags alone, before any file is read.
func (f *DeviceFlags) Check(a *App) (err error) {
	if f.Workers, err = a.Cores(f.Workers); err != nil {
		return err
	}
	switch f.Precision {
	case "", "fp32", "tf32", "bf16", device.Any:
	default:
		return Usagef("unknown precision %q: use fp32, bf16, tf32 or auto", f.Precision)
	}
	return KnownDevice(f.Name, f.Precision)
}

// KnownDevice refuses what names no device, and what no CPU computes in.
func KnownDevice(name, precision string) error {
	at, err := device.ParseName(name)
	if at.CPU && precision == "tf32" {
		return Usagef("--precision tf32 is for GPUs; a CPU computes in fp32 or bf16")
	}
	return AsUsage(err)
}

// openBy is open, with a word where the processor has no instructions for the precision that was
// asked for.
func (a *App) openBy(f *DeviceFlags, trial func(kernel.Device) (float64, error)) (kernel.Device, error) {
	dev, err := a.open(f, trial)
	if d, ok := dev.(interface{ Emulates() bool }); ok && err == nil && d.Emulates() {
		fmt.Fprintln(a.Stderr, "bf16: this processor has no instructions for it: products are made in fp32 of rounded numbers, slower than with --precision fp32")
	}
	return dev, err
}

// open checks the flags and opens the device. auto goes by the trial, and says so where there was a
// choice.
func (a *App) open(f *DeviceFlags, trial func(kernel.Device) (float64, error)) (kernel.Device, error) {
	if err := f.Check(a); err != nil {
		return nil, err
	}
	o := device.Options{Workers: f.Workers, Precision: f.Precision, Prefer: f.prefer, Spread: f.named != nil && !f.named(),
		Note: func(text string) { fmt.Fprintln(a.Stderr, text) }}
	if f.Name == "auto" || f.Precision == device.Any {
		dev, table, err := device.Auto(f.Name, o, trial)
		if len(table) > 1 {
			fmt.Fprintf(a.Stderr, "auto: %s\n", candidates(table))
		}
		return dev, err
	}
	dev, err := device.Open(f.Name, o)
	// a card's name may be right and the card absent
	if err != nil && !device.OnGPU(f.Name) {
		err = AsUsage(err)
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
			s = fmt.Sprintf("%s cannot run this (%s)", name, OneLine(c.Problem))
		}
		if c.Picked {
			s += " (picked)"
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}
