package run

import (
	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
)

// roofRounds slices of each side are run; a roof is the best of them, since whatever else the
// machine does only takes away.
const roofRounds = 24

// Roof alternates the multiply-add loop with sums of vectors that together fill the working set, on
// every worker at once.
func (d *Device) Roof(workingSet int) (kernel.Roof, error) {
	pool := NewBenchPool(d.Workers)
	defer pool.Close()
	top := isa.PeakOf(d.Prims, d.Tiles)
	n := max(1024, workingSet/8)
	x, y := make([][]float32, d.Workers), make([][]float32, d.Workers)
	for w := range x {
		x[w], y[w] = Aligned(n), Aligned(n)
	}
	peak := func(_, rounds int) float64 { return top(rounds) }
	move := func(w, rounds int) float64 {
		for range rounds {
			d.Prims.Add(y[w], x[w])
		}
		return 12 * float64(n) * float64(rounds) // two reads and a write an element
	}
	spins, passes := pool.Fill(peak), pool.Fill(move)
	var roof kernel.Roof
	for range roofRounds {
		roof.FLOPs = max(roof.FLOPs, pool.Rate(peak, spins))
		roof.Bytes = max(roof.Bytes, pool.Rate(move, passes))
	}
	return roof, nil
}
