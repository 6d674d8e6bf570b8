package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/cpu"

	"haul/internal/cu"
	"haul/internal/device"
)

type cpuReport struct {
	Model        string          `json:"model"`
	Arch         string          `json:"arch"`
	Cores        int             `json:"cores"`
	Fast         int             `json:"performance_cores"` // all of them where they are of one kind
	Instructions []string        `json:"instruction_sets"`
	Kernels      []string        `json:"kernels"`           // that products may use, fastest first
	Library      *device.Library `json:"library,omitempty"` // the system's matrix products, and whether they are used
}

type gpuReport struct {
	Device     string `json:"device"` // cuda:0, as --device names it
	Name       string `json:"name"`
	Memory     uint64 `json:"memory_bytes"`
	Capability string `json:"compute_capability"`
	// by --prepare
	Prepared *device.Prepared `json:"prepared,omitempty"`
}

type cudaReport struct {
	Driver  bool        `json:"driver"`
	Reason  string      `json:"reason,omitempty"` // why there is none
	Version string      `json:"cuda_version,omitempty"`
	Devices []gpuReport `json:"devices"`
}

type devicesReport struct {
	CPU  cpuReport  `json:"cpu"`
	CUDA cudaReport `json:"cuda"`
}

func (a *app) newDevices() *cobra.Command {
	var asJSON, prepare bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the processors and GPUs of this machine",
		Long: `The list has the processor with its instruction sets, and the GPUs that the CUDA driver shows. --device cpu or --device cuda:K chooses
one of them for train, eval, solve --checkpoint, profile, bench step and lab run. --device auto, the default, times the job on each
device and takes the fastest.

GPU kernels are compiled by the driver when a command first needs them, and kept in the driver's cache (~/.nv/ComputeCache, or
CUDA_CACHE_PATH). --prepare compiles all of them now, for every GPU: in a container image, or before a job that is timed.

HAUL_SET=NAME forces one of the instruction sets of the list.

On macOS, matrix products of Accelerate are checked against float64 sums and timed against Haul's own. The list says what became of
them: used, wrong, slow or missing. HAUL_BLAS=PATH tries another library that has sgemm_, on Linux too; HAUL_BLAS=off tries none. Each
haul devices checks again; other commands use its last result.`,
		Example: "  haul devices\n  haul devices --json\n  haul devices --prepare",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			r := devicesReport{CPU: probeCPU(), CUDA: probeCUDA()}
			if prepare {
				if err := a.prepareCards(&r.CUDA); err != nil {
					return err
				}
			}
			if asJSON {
				return a.emit(r)
			}
			return a.table(func(w io.Writer) { r.print(w) })
		},
	}
	cmd.Flags().BoolVar(&prepare, "prepare", false, "compile all kernels for every GPU of this machine, and keep them")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// prepareCards compiles the kernels of every card.
func (a *app) prepareCards(r *cudaReport) error {
	if !r.Driver {
		return fmt.Errorf("--prepare needs a graphics card: %s", r.Reason)
	}
	screen := a.newScreen(true)
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
	if l := r.CPU.Library; l != nil {
		fmt.Fprintf(w, "%s\t%s\n", l.Name, libraryWord(l))
	}
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

// libraryWord is the verdict on the system's library, and what it rests on.
func libraryWord(l *device.Library) string {
	switch {
	case l.Reason != "":
		return fmt.Sprintf("%s: %s; %s is used", l.Verdict, oneLine(l.Reason), l.Beside)
	case l.Verdict == "used":
		return fmt.Sprintf("used: %.2f times as fast as %s", l.Speed, l.Beside)
	case l.Speed > 0:
		return fmt.Sprintf("%s: %.2f times as fast as %s, which is used", l.Verdict, l.Speed, l.Beside)
	}
	return fmt.Sprintf("%s: %s is used", l.Verdict, l.Beside)
}

func probeCPU() cpuReport {
	r := cpuReport{Model: cpuModel(), Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Fast: min(device.PerformanceCores(), runtime.NumCPU()), Instructions: []string{},
		Library: device.RaceLibrary(), Kernels: device.Sets("bf16")}
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"SSE4.2", cpu.X86.HasSSE42}, {"AVX", cpu.X86.HasAVX}, {"AVX2", cpu.X86.HasAVX2}, {"FMA", cpu.X86.HasFMA},
		{"AVX512F", cpu.X86.HasAVX512F}, {"AVX512BW", cpu.X86.HasAVX512BW}, {"AVX512DQ", cpu.X86.HasAVX512DQ},
		{"AVX512VL", cpu.X86.HasAVX512VL}, {"AVX512_BF16", cpu.X86.HasAVX512BF16},
		{"AMX_TILE", cpu.X86.HasAMXTile}, {"AMX_BF16", cpu.X86.HasAMXBF16},
		{"ASIMD", cpu.ARM64.HasASIMD}, {"SVE", cpu.ARM64.HasSVE}, {"SVE2", cpu.ARM64.HasSVE2}, {"I8MM", cpu.ARM64.HasI8MM},
	} {
		if f.has {
			r.Instructions = append(r.Instructions, f.name)
		}
	}
	return r
}

const unnamed = "unnamed processor"

// cpuModel is the name the kernel gives the processor; where it gives none, the answer says so.
func cpuModel() string {
	if name := systemModel(); name != "" {
		return name
	}
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return unnamed
	}
	defer f.Close()
	return modelIn(f)
}

// armParts names Arm's own cores by the part number that arm64's kernel gives in place of a name.
var armParts = map[string]string{"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2", "0xd8e": "Neoverse N3", "0xd84": "Neoverse V3",
	"0xd07": "Cortex-A57", "0xd08": "Cortex-A72", "0xd0b": "Cortex-A76"}

// modelIn reads Linux's /proc/cpuinfo.
func modelIn(cpuinfo io.Reader) string {
	var maker, part string
	for lines := bufio.NewScanner(cpuinfo); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name":
			return value
		case "CPU implementer":
			maker = value
		case "CPU part":
			part = value
		}
	}
	if name, ok := armParts[part]; ok && maker == "0x41" {
		return name
	}
	if part != "" {
		return "arm64 processor, implementer " + maker + ", part " + part
	}
	return unnamed
}

func probeCUDA() cudaReport {
	r := cudaReport{Devices: []gpuReport{}}
	driver, err := cu.Open()
	if err != nil {
		r.Reason = oneLine(err.Error())
		return r
	}
	major, minor, err := driver.Version()
	if err != nil {
		r.Reason = oneLine(err.Error())
		return r
	}
	devices, err := driver.Devices()
	if err != nil {
		r.Reason = oneLine(err.Error())
		return r
	}
	r.Driver, r.Version = true, fmt.Sprintf("%d.%d", major, minor)
	for _, d := range devices {
		r.Devices = append(r.Devices, gpuReport{Device: fmt.Sprintf("cuda:%d", d.Ordinal), Name: d.Name,
			Memory: d.MemoryBytes, Capability: fmt.Sprintf("%d.%d", d.Major, d.Minor)})
	}
	return r
}
