package vrp

// Batch is B instances of N customers, one array a field: node j of instance i sits at
// i*(N+1)+j. Generators fill it, batched costs read it; nothing in it points anywhere else.
type Batch struct {
	B, N     int
	Capacity int32
	X, Y     []float32 // unit square
	Demand   []int32   // 0 at the depot
}

// NewBatch allocates a batch of b instances with n customers each.
func NewBatch(b, n int, capacity int32) *Batch {
	nodes := b * (n + 1)
	return &Batch{B: b, N: n, Capacity: capacity,
		X: make([]float32, nodes), Y: make([]float32, nodes), Demand: make([]int32, nodes)}
}

// Problem copies instance i out of the batch as a Problem with exact (unrounded) distances.
func (b *Batch) Problem(i int) *Problem {
	n := b.N + 1
	p := &Problem{Capacity: b.Capacity, Metric: Exact, X: make([]float64, n), Y: make([]float64, n), Demand: make([]int32, n)}
	for j := range n {
		p.X[j], p.Y[j], p.Demand[j] = float64(b.X[i*n+j]), float64(b.Y[i*n+j]), b.Demand[i*n+j]
	}
	return p
}
