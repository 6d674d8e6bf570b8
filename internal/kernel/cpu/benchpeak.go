package cpu

// PeakMeter measures the multiply-add peak of a number of workers, a short slice at a time, so that
// whatever is measured beside it meets the same machine. Its threads sleep between slices.
type PeakMeter struct {
	pool  *benchPool
	spin  func(w, n int) float64
	spins int
}

// peakOf is the loop of nothing but what products are made of.
func peakOf(p *primitives, t *tileSet) func(rounds int) (flop float64) {
	if t != nil && t.peak != nil {
		return t.peak
	}
	return p.peak
}

// NewPeakMeter starts the workers; set "" is the fastest instruction set.
func NewPeakMeter(precision, set string, workers int) (*PeakMeter, error) {
	prims, tiles, err := pickFor(precision, set)
	if err != nil {
		return nil, err
	}
	top := peakOf(prims, tiles)
	m := &PeakMeter{pool: newBenchPool(workers), spin: func(_, n int) float64 { return top(n) }}
	m.spins = m.pool.fill(m.spin)
	return m, nil
}

// Rate is the peak of all workers together over one slice, in operations a second.
func (m *PeakMeter) Rate() float64 { return m.pool.rate(m.spin, m.spins) }

// Close ends the workers.
func (m *PeakMeter) Close() { m.pool.close() }
