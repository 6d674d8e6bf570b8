// Package devices is the verb haul devices.
package devices

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/device"
)

type devicesReport struct {
	CPU  cli.CPUReport  `json:"cpu"`
	CUDA cli.CUDAReport `json:"cuda"`
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var asJSON, prepare bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the processors and GPUs of this machine",
		Long: `The list has the processor with its instruction sets, and the GPUs that the CUDA driver shows. --device cpu or --device cuda:K chooses
one of them for train, eval, solve --checkpoint, profile, bench step and lab run. --device auto, the default, times the job on each
device and takes the fastest.

GPU kernels are compiled by the driver when a command first needs them, and kept in the driver's cache (~/.nv/ComputeCache, or
CUDA_CACHE_PATH). --prepare compiles all of them now, for every GPU: in a container image, or before a job that is timed.

HAUL_SET=NAME forces one of the instruction sets of the list.`,
		Example: "  haul devices\n  haul devices --json\n  haul devices --prepare",
		Args:    cli.AtMost(0),
		RunE: func(*cobra.Command, []string) error {
			r := devicesReport{CPU: cli.ProbeCPU(), CUDA: cli.ProbeCUDA()}
			if prepare {
				if err := a.prepareCards(&r.CUDA); err != nil {
					return err
				}
			}
			if asJSON {
				return a.Emit(r)
			}
			return a.Table(func(w io.Writer) { r.print(w) })
		},
	}
	cmd.Flags().BoolVar(&prepare, "prepare", false, "compile all kernels for every GPU of this machine, and keep them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// prepareCards compiles the kernels of every card.
func (a *app) prepareCards(r *cli.CUDAReport) error {
	if !r.Driver {
		return fmt.Errorf("--prepare needs a graphics card: %s", r.Reason)
	}
	screen := a.NewScreen(true)
	for i := range r.Devices {
		d := &r.Devices[i]
		done, err := device.Prepare(i, screen.Progress("compiling kernels for "+d.Name))
		screen.Leave()
		if err != nil {
			return fmt.Errorf("prepare %s: %w", d.Device, err)
		}
		d.Prepared = &done
	}
	return nil
}

func (r devicesReport) print(w io.Writer) {
	kinds := ""
	if r.CPU.Fast < r.CPU.Cores {
		kinds = fmt.Sprintf(" (%d for performance)", r.CPU.Fast)
	}
	fmt.Fprintf(w, "cpu\t%s, %d cores%s, %s\n", r.CPU.Model, r.CPU.Cores, kinds, r.CPU.Arch)
	fmt.Fprintf(w, "\t%s\n", strings.Join(r.CPU.Instructions, " "))
	fmt.Fprintf(w, "kernels\t%s\n", strings.Join(r.CPU.Kernels, " "))
	if !r.CUDA.Driver {
		fmt.Fprintf(w, "cuda\tnone: %s\n", r.CUDA.Reason)
		return
	}
	fmt.Fprintf(w, "cuda\tdriver for CUDA %s, devices: %d\n", r.CUDA.Version, len(r.CUDA.Devices))
	for _, d := range r.CUDA.Devices {
		fmt.Fprintf(w, "%s\t%s, %.1f GiB, compute capability %s\n", d.Device, d.Name, float64(d.Memory)/(1<<30), d.Capability)
		if p := d.Prepared; p != nil {
			fmt.Fprintf(w, "\t%d kernels are compiled, in %s\n", p.Kernels, p.Folder)
		}
	}
}
