package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"

	"haul/internal/cu"
	"haul/internal/device"
)

type CPUReport struct {
	Model        string   `json:"model"`
	Arch         string   `json:"arch"`
	Cores        int      `json:"cores"`
	Fast         int      `json:"performance_cores"` // all of them where they are of one kind
	Instructions []string `json:"instruction_sets"`
	Kernels      []string `json:"kernels"` // that products may use, fastest first
}

type gpuReport struct {
	Device     string `json:"device"` // cuda:0, as --device names it
	Name       string `json:"name"`
	Memory     uint64 `json:"memory_bytes"`
	Capability string `json:"compute_capability"`
	// by --prepare
	Prepared *device.Prepared `json:"prepared,omitempty"`
}

type CUDAReport struct {
	Driver  bool        `json:"driver"`
	Reason  string      `json:"reason,omitempty"` // why there is none
	Version string      `json:"cuda_version,omitempty"`
	Devices []gpuReport `json:"devices"`
}

func ProbeCPU() CPUReport {
	r := CPUReport{Model: CPUModel(), Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Fast: min(device.PerformanceCores(), runtime.NumCPU()), Instructions: []string{}, Kernels: device.Sets("bf16")}
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

// CPUModel is the name the kernel gives the processor; where it gives none, the answer says so.
func CPUModel() string {
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

func ProbeCUDA() CUDAReport {
	r := CUDAReport{Devices: []gpuReport{}}
	driver, err := cu.Open()
	if err != nil {
		r.Reason = OneLine(err.Error())
		return r
	}
	major, minor, err := driver.Version()
	if err != nil {
		r.Reason = OneLine(err.Error())
		return r
	}
	devices, err := driver.Devices()
	if err != nil {
		r.Reason = OneLine(err.Error())
		return r
	}
	r.Driver, r.Version = true, fmt.Sprintf("%d.%d", major, minor)
	for _, d := range devices {
		r.Devices = append(r.Devices, gpuReport{Device: fmt.Sprintf("cuda:%d", d.Ordinal), Name: d.Name,
			Memory: d.MemoryBytes, Capability: fmt.Sprintf("%d.%d", d.Major, d.Minor)})
	}
	return r
}
