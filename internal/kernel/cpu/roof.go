package cpu

import "haul/internal/kernel"

// roofRounds slices of each side are run; a roof is the best of them, since whatever else the
// machine does only takes away.
const roofRounds = 24

// Roof alternates the multiply-add loop with sums of vectors that together fill the working set, on
// every worker at once.
func (d *Device) Roof(workingSet int) (kernel.Roof, error) {
	pool := newBenchPool(d.workers)
	defer pool.close()
	top := peakOf(d.prims, d.tiles)
	n := max(1024, workingSet/8)
	x, y := make([][]float32, d.workers), make([][]float32, d.workers)
	for w := range x {
		x[w], y[w] = aligned(n), aligned(n)
	}
	peak := func(_, rounds int) float64 { return top(rounds) }
	move := func(w, rounds int) float64 {
		for range rounds {
			d.prims.add(y[w], x[w])
		}
		return 12 * float64(n) * float64(rounds) // two reads and a write an element
	}
	spins, passes := pool.fill(peak), pool.fill(move)
	var roof kernel.Roof
	for range roofRounds {
		roof.FLOPs = max(roof.FLOPs, pool.rate(peak, spins))
		roof.Bytes = max(roof.Bytes, pool.rate(move, passes))
	}
	return roof, nil
}
