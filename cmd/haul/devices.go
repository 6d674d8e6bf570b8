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
)

type cpuReport struct {
	Model        string   `json:"model"`
	Arch         string   `json:"arch"`
	Cores        int      `json:"cores"`
	Instructions []string `json:"instruction_sets"`
}

type gpuReport struct {
	Device     string `json:"device"` // cuda:0, as --device names it
	Name       string `json:"name"`
	Memory     uint64 `json:"memory_bytes"`
	Capability string `json:"compute_capability"`
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices",
		Short: "List the processors and graphics cards found here",
		Long: `List the processor with its instruction sets, and the graphics cards that the CUDA driver shows.

train, eval, solve --checkpoint, profile, bench step and lab run compute on either: --device cpu or --device cuda:K, as named here.
--device auto, which is the default, times the job itself on each and takes the fastest.`,
		Example: "  haul devices\n  haul devices --json",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			r := devicesReport{CPU: probeCPU(), CUDA: probeCUDA()}
			if asJSON {
				return a.emit(r)
			}
			return a.table(func(w io.Writer) { r.print(w) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (r devicesReport) print(w io.Writer) {
	fmt.Fprintf(w, "cpu\t%s, %d cores, %s\n", r.CPU.Model, r.CPU.Cores, r.CPU.Arch)
	fmt.Fprintf(w, "\t%s\n", strings.Join(r.CPU.Instructions, " "))
	if !r.CUDA.Driver {
		fmt.Fprintf(w, "cuda\tnone: %s\n", r.CUDA.Reason)
		return
	}
	fmt.Fprintf(w, "cuda\tdriver for CUDA %s, devices: %d\n", r.CUDA.Version, len(r.CUDA.Devices))
	for _, d := range r.CUDA.Devices {
		fmt.Fprintf(w, "%s\t%s, %.1f GiB, compute capability %s\n", d.Device, d.Name, float64(d.Memory)/(1<<30), d.Capability)
	}
}

func probeCPU() cpuReport {
	r := cpuReport{Model: cpuModel(), Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Instructions: []string{}}
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"SSE4.2", cpu.X86.HasSSE42}, {"AVX", cpu.X86.HasAVX}, {"AVX2", cpu.X86.HasAVX2}, {"FMA", cpu.X86.HasFMA},
		{"AVX512F", cpu.X86.HasAVX512F}, {"AVX512BW", cpu.X86.HasAVX512BW}, {"AVX512DQ", cpu.X86.HasAVX512DQ},
		{"AVX512VL", cpu.X86.HasAVX512VL}, {"AVX512_BF16", cpu.X86.HasAVX512BF16},
		{"AMX_TILE", cpu.X86.HasAMXTile}, {"AMX_BF16", cpu.X86.HasAMXBF16},
		{"ASIMD", cpu.ARM64.HasASIMD}, {"SVE", cpu.ARM64.HasSVE}, {"SVE2", cpu.ARM64.HasSVE2},
	} {
		if f.has {
			r.Instructions = append(r.Instructions, f.name)
		}
	}
	return r
}

// cpuModel reads the name the kernel gives the processor; where it gives none, the answer says so.
func cpuModel() string {
	const unknown = "unnamed processor"
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return unknown
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return unknown
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
