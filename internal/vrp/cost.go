package vrp

import "math"

// What a reader could break: Costs must not allocate and must not build a distance matrix. At
// N=10 a batch of 128 takes a few microseconds, less than any call that would hand the work
// elsewhere. Products are rounded by explicit conversions, so that no compiler fuses them and
// every architecture prints the same cost.

// CPC is the cost per customer, the metric of every report.
func CPC(cost float64, n int) float64 { return cost / float64(n) }

// RouteCost is the length of one visit sequence, leg by leg: the plain loop that Costs is measured
// against and compared with.
func RouteCost(x, y []float32, tour []int32) float32 {
	var sum float32
	for t := 1; t < len(tour); t++ {
		a, b := tour[t-1], tour[t]
		sum += leg(x[a]-x[b], y[a]-y[b])
	}
	return sum
}

// Costs writes the length of each instance's visit sequence to out. tours holds B rows of stride
// visits; a row starts and ends at the depot and is padded with it, which costs nothing.
//
//	for i := range B { out[i] = RouteCost(X[i], Y[i], tours[i]) }
func (b *Batch) Costs(out []float32, tours []int32, stride int) {
	if stride < 1 || len(out) < b.B || len(tours) < b.B*stride {
		panic("vrp: Costs: out or tours is smaller than the batch")
	}
	nodes := b.Nodes()
	xs, ys := b.X, b.Y
	out = out[:b.B]
	for i := range out {
		x := xs[:nodes]
		y := ys[:len(x)] // one length for both: one bounds check a node
		xs, ys = xs[nodes:], ys[nodes:]
		out[i] = rowCost(x, y, tours[i*stride:i*stride+stride])
	}
}

// rowCost keeps the last node's coordinates in registers and adds even and odd legs apart: a leg
// waits for no other leg's sum. An unsigned index needs no sign extension.
func rowCost(x, y []float32, tour []int32) float32 {
	y = y[:len(x)]
	var even, odd float32
	v := uint32(tour[0])
	px, py := x[v], y[v]
	t := 2
	for ; t < len(tour); t += 2 {
		v, w := uint32(tour[t-1]), uint32(tour[t])
		qx, qy := x[v], y[v]
		even += leg(px-qx, py-qy)
		px, py = x[w], y[w]
		odd += leg(qx-px, qy-py)
	}
	if t == len(tour) {
		v := uint32(tour[t-1])
		even += leg(px-x[v], py-y[v])
	}
	return even + odd
}

func leg(dx, dy float32) float32 {
	return float32(math.Sqrt(float64(float32(dx*dx) + float32(dy*dy))))
}

// Cost is what a visit sequence of instance i costs, leg by leg as RouteCost adds them: nothing for
// the way home of an open route.
func (b *Batch) Cost(i int, tour []int32) (sum float32) {
	n := b.Nodes()
	x, y := b.X[i*n:][:n], b.Y[i*n:][:n]
	if b.Further > 0 {
		p := b.Problem(i)
		return float32(p.Cost(p.FromVisits(tour)))
	}
	if b.Varied == nil || b.Varied.Attributes[i]&OpenRoutes == 0 {
		return RouteCost(x, y, tour)
	}
	for t := 1; t < len(tour); t++ {
		if a, to := tour[t-1], tour[t]; to != 0 {
			sum += leg(x[a]-x[to], y[a]-y[to])
		}
	}
	return sum
}
