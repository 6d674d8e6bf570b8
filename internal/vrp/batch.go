package vrp

// Batch is B instances of N customers, one array a field: node j of instance i sits at
// i*(N+1)+j. Generators fill it, batched costs read it; nothing in it points anywhere else.
type Batch struct {
	B, N     int
	Capacity int32
	X, Y     []float32 // unit square
	Demand   []int32   // 0 at the depot
	Limit    []float32 // of a route's length, by instance; nil: none
	Single   bool      // one vehicle serves all

	Varied *Varied // of a mix; nil: all are alike
}

// NewBatch allocates a batch of b instances with n customers each.
func NewBatch(b, n int, capacity int32) *Batch {
	nodes := b * (n + 1)
	return &Batch{B: b, N: n, Capacity: capacity,
		X: make([]float32, nodes), Y: make([]float32, nodes), Demand: make([]int32, nodes)}
}

// Validate checks a visit sequence of instance i, as validateTour does.
func (b *Batch) Validate(i int, tour []int32) error {
	n := b.N + 1
	if err := validateTour(tour, b.Demand[i*n:][:n], b.Capacity); err != nil || b.Limit == nil && b.Varied == nil && !b.Single {
		return err
	}
	p := b.Problem(i)
	lenient(p)
	return Validate(p, FromTour(tour))
}

func (b *Batch) limit(i int, length float32) {
	if b.Limit == nil {
		b.Limit = make([]float32, b.B)
	}
	b.Limit[i] = length
}

// Problem copies instance i out of the batch as a Problem with exact (unrounded) distances.
func (b *Batch) Problem(i int) *Problem {
	n := b.N + 1
	p := &Problem{Capacity: b.Capacity, Metric: Exact, X: make([]float64, n), Y: make([]float64, n), Demand: make([]int32, n)}
	for j := range n {
		p.X[j], p.Y[j], p.Demand[j] = float64(b.X[i*n+j]), float64(b.Y[i*n+j]), b.Demand[i*n+j]
	}
	if b.Limit != nil {
		p.MaxDuration = float64(b.Limit[i])
	}
	if b.Single {
		p.Vehicles = 1
	}
	if b.Varied != nil {
		b.Varied.problem(p, i)
	}
	return p
}
