package cpu

import (
	"haul/internal/kernel/cpu/isa"
	"haul/internal/kernel/cpu/run"
)

// PeakMeter measures the multiply-add peak of a number of workers, a short slice at a time, so that
// whatever is measured beside it meets the same machine. Its threads sleep between slices.
type PeakMeter struct {
	pool  *run.BenchPool
	spin  func(w, n int) float64
	spins int
}

// NewPeakMeter starts the workers; set "" is the fastest instruction set.
func NewPeakMeter(precision, set string, workers int) (*PeakMeter, error) {
	prims, tiles, err := isa.PickFor(precision, set)
	if err != nil {
		return nil, err
	}
	top := isa.PeakOf(prims, tiles)
	m := &PeakMeter{pool: run.NewBenchPool(workers), spin: func(_, n int) float64 { return top(n) }}
	m.spins = m.pool.Fill(m.spin)
	return m, nil
}

// Rate is the peak of all workers together over one slice, in operations a second.
func (m *PeakMeter) Rate() float64 { return m.pool.Rate(m.spin, m.spins) }

// Close ends the workers.
func (m *PeakMeter) Close() { m.pool.Close() }
