package device

import (
	"context"

	"haul/internal/kernel/cpu"
)

// ProductReport holds a training step's matrix products as shares of the multiply-add peak.
type ProductReport = cpu.ProductReport

// BenchProducts times the matrix products of the shipped tiny_1's training step on the CPU.
func BenchProducts(ctx context.Context, o Options, rounds int, progress func(done, total int)) (ProductReport, error) {
	return cpu.BenchProducts(ctx, o.Precision, o.Set, o.Workers, rounds, cpu.TinyProducts, progress)
}

// Sets names the CPU's instruction sets for products in that precision, fastest first.
func Sets(precision string) []string {
	if precision == "bf16" {
		return cpu.TileSets()
	}
	return cpu.Sets()
}

// PerformanceCores is how many workers the fast cores of this processor serve.
func PerformanceCores() int { return cpu.PerformanceCores() }

// PeakMeter measures the CPU's multiply-add peak.
type PeakMeter = cpu.PeakMeter

// NewPeakMeter prepares to measure the peak of that many workers of the CPU.
func NewPeakMeter(o Options) (*PeakMeter, error) {
	return cpu.NewPeakMeter(o.Precision, o.Set, o.Workers)
}
