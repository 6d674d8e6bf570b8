package vrp

// Batch is B instances of N customers, with one array per field: node j of instance i is at
// i*Nodes()+j. Generators fill it and batched costs read it; nothing in it points elsewhere.
type Batch struct {
	B, N     int
	Capacity int32
	X, Y     []float32 // unit square
	Demand   []int32   // 0 at the depot
	Limit    []float32 // of a route's length, by instance; nil: none
	Single   bool      // one vehicle serves all
	Further  int       // depots beyond the first, behind the customers (depots.go)

	Varied *Varied // of a mix; nil: all are alike
}

// NewBatch allocates a batch of b instances with n customers each.
func NewBatch(b, n int, capacity int32) *Batch {
	nodes := b * (n + 1)
	return &Batch{B: b, N: n, Capacity: capacity,
		X: make([]float32, nodes), Y: make([]float32, nodes), Demand: make([]int32, nodes)}
}

// Nodes is how many an instance has.
func (b *Batch) Nodes() int { return b.N + 1 + b.Further }

// Validate checks a visit sequence of instance i, as validateTour does.
func (b *Batch) Validate(i int, tour []int32) error {
	n := b.Nodes()
	if b.Further > 0 {
		if len(tour) == 0 || tour[0] != 0 || tour[len(tour)-1] != 0 {
			return violation(StartsAtDepot, 0, 0, "the visits must start and end at the first depot")
		}
		for at, v := range tour {
			if v < 0 || int(v) >= n {
				return violation(KnownNode, v, at, "node %d at position %d does not exist: nodes are 0 to %d", v, at, n-1)
			}
		}
		p := b.Problem(i)
		lenient(p)
		return Validate(p, p.FromVisits(tour))
	}
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
	at := b.order(i)
	n := len(at)
	p := &Problem{Capacity: b.Capacity, Metric: Exact, X: make([]float64, n), Y: make([]float64, n), Demand: make([]int32, n)}
	for j := range at {
		at[j] += i * b.Nodes()
		p.X[j], p.Y[j], p.Demand[j] = float64(b.X[at[j]]), float64(b.Y[at[j]]), b.Demand[at[j]]
	}
	if b.Limit != nil {
		p.MaxDuration = float64(b.Limit[i])
	}
	if b.Single {
		p.Vehicles = 1
	}
	if b.Varied != nil {
		b.Varied.problem(p, i, at)
	}
	return p
}

// order is the batch's node of each place of instance i.
func (b *Batch) order(i int) []int {
	out := []int{0}
	if b.Further > 0 && b.Varied.Attributes[i]&SeveralDepots != 0 {
		for d := range b.Further {
			out = append(out, b.N+1+d)
		}
	}
	for c := range b.N {
		out = append(out, 1+c)
	}
	return out
}
