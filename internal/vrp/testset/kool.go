package testset

import (
	"fmt"
	"math"

	"haul/internal/rng"
	"haul/internal/vrp"
)

// What a reader could break: the order of draws. The sets of Kool et al. (2019) are what NumPy
// draws after one seed: the depots of all instances, then all customers, then all demands; so no
// instance can be drawn without those before it.

// KoolInstances is how many instances a set of theirs has.
const KoolInstances = 10_000

// The two sets, by their seeds.
const (
	Test       = "test"
	Validation = "validation"
)

var koolSeed = map[string]uint32{Test: 1234, Validation: 4321}

// KoolSeed is the seed of a split.
func KoolSeed(split string) uint64 { return uint64(koolSeed[split]) }

// KoolCapacity is what a vehicle carries there, by the number of customers; 0 where they have no
// such set. Those of 200, 500 and 1,000 customers are not theirs: later papers draw them by the
// same program.
func KoolCapacity(customers int) int32 {
	return map[int]int32{10: 20, 20: 30, 50: 40, 100: 50, 200: 80, 500: 100, 1000: 200}[customers]
}

// hgsMean is the mean cost of HGS-CVRP on the test sets, as later papers state it.
var hgsMean = map[int]float64{20: 6.130, 50: 10.366, 100: 15.563}

// Kool is the set of Kool et al. for 10, 20, 50 or 100 customers, digit for digit: coordinates
// uniform in the unit square, demands 1 to 9. 200, 500 and 1,000 customers are drawn likewise.
func Kool(customers int, split string) (*Set, error) {
	capacity := KoolCapacity(customers)
	if capacity == 0 {
		return nil, fmt.Errorf("the test sets of Kool et al. have 10, 20, 50 or 100 customers, and their generator draws 200, 500 and 1000, not %d", customers)
	}
	seed, ok := koolSeed[split]
	if !ok {
		return nil, fmt.Errorf("unknown split %q: use %s or %s", split, Test, Validation)
	}
	s := &Set{Name: fmt.Sprintf("kool-%d-%s", customers, split), Problems: make([]*vrp.Problem, KoolInstances)}
	if split == Test {
		s.Published = hgsMean[customers]
	}
	draw := rng.NewMT19937(seed)
	for i := range s.Problems {
		p := &vrp.Problem{Name: fmt.Sprintf("%s-%d", s.Name, i), Capacity: capacity, Metric: vrp.Exact,
			X: make([]float64, customers+1), Y: make([]float64, customers+1), Demand: make([]int32, customers+1)}
		p.X[0], p.Y[0] = draw.Float64(), draw.Float64()
		s.Problems[i] = p
	}
	for _, p := range s.Problems {
		for j := range customers {
			p.X[j+1], p.Y[j+1] = draw.Float64(), draw.Float64()
		}
	}
	for _, p := range s.Problems {
		for j := range customers {
			p.Demand[j+1] = int32(draw.Integer(1, 10))
		}
	}
	return s, nil
}

// fileScale turns the unit square into the whole numbers of a .vrp file.
const fileScale = 1_000_000

// FileProblem is a problem of the unit square as a .vrp file states it: coordinates times a
// million, rounded. Its comment says so, by which a reader finds the way back. Any other problem is
// returned as it is.
func FileProblem(p *vrp.Problem) *vrp.Problem {
	if p.Metric != vrp.Exact || !inUnitSquare(p) {
		return p
	}
	q := *p
	q.X, q.Y, q.Metric = make([]float64, len(p.X)), make([]float64, len(p.Y)), vrp.Rounded
	for j := range p.X {
		q.X[j], q.Y[j] = math.Round(p.X[j]*fileScale), math.Round(p.Y[j]*fileScale)
	}
	q.Comment = fmt.Sprintf("haul scale=%d", fileScale)
	return &q
}

func inUnitSquare(p *vrp.Problem) bool {
	for j := range p.X {
		if !(p.X[j] >= 0 && p.X[j] <= 1 && p.Y[j] >= 0 && p.Y[j] <= 1) {
			return false
		}
	}
	return true
}
