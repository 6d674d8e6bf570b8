package rule

import (
	"testing"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/trace"
)

// The possible bandwidth depends on the kind of the GPU's links.
func TestLinks(t *testing.T) {
	for _, c := range []struct {
		gpu  trace.GPUModel
		want string
	}{
		{trace.GPUModel{Name: "NVIDIA H100 80GB HBM3", Major: 9, Minor: 0, Processors: 132}, "NVLink 4"}, {trace.GPUModel{Name: "NVIDIA H100 PCIe", Major: 9, Minor: 0, Processors: 114}, "PCIe"},
		{trace.GPUModel{Name: "NVIDIA A100-SXM4-80GB", Major: 8, Minor: 0, Processors: 108}, "NVLink 3"}, {trace.GPUModel{Name: "NVIDIA A100-PCIE-40GB", Major: 8, Minor: 0, Processors: 108}, "PCIe"},
		{trace.GPUModel{Name: "NVIDIA B200", Major: 10, Minor: 0, Processors: 148}, "NVLink 5"}, {trace.GPUModel{Name: "NVIDIA GeForce RTX 5090", Major: 12, Minor: 0, Processors: 170}, "PCIe"},
		{trace.GPUModel{Name: "NVIDIA A10", Major: 8, Minor: 6, Processors: 72}, "PCIe"}, {trace.GPUModel{Name: "Tesla V100-PCIE-16GB", Major: 7, Minor: 0, Processors: 80}, "PCIe"},
		{trace.GPUModel{Name: "AMD Instinct MI300X", Processors: 304}, "MI300X over Infinity Fabric"}, {trace.GPUModel{Name: "AMD Instinct MI250X", Processors: 220}, "MI200 over Infinity Fabric"},
	} {
		a := &analysis.Analysis{Trace: &trace.Trace{GPUModels: []trace.GPUModel{c.gpu}}}
		if _, name := link2link(a); name != c.want {
			t.Errorf("%s: %s, want %s", c.gpu.Name, name, c.want)
		}
	}
}
