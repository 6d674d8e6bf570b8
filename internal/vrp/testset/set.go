// Package testset holds sets of CVRP instances on which people compare solvers: the public ones,
// generated again from their seed, and the file formats of such sets.
//
// What a reader could break: an instance is what its file says. Coordinates keep every digit,
// and demands that were divided by the capacity become integers again only if that is exact
// within the file's own precision.
package testset

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"haul/internal/vrp"
)

// Set is instances, with the costs that someone found for them where they are known.
type Set struct {
	Name      string
	Problems  []*vrp.Problem
	Reference []float64 // by instance; nil where there is none
	Method    string    // what the reference is: hgs, reference, the name of its file
	array     string    // what an .npz of costs of several sets calls this one's
	whole     int       // how many instances it had before it was cut; 0: it was not
	Published float64   // the mean cost that papers state for the set by HGS; 0 where there is none
	rounded   bool      // to thousandths, by Round
	Note      string    // what was taken from elsewhere than the file's arrays, for the user; "": nothing
}

// Round makes of RouteFinder's problems those that its references solve: all distances, windows,
// services and limits are rounded to thousandths, and so are the references, which are sums of
// such. Windows and limits are kept strictly in those numbers. The problems are copies.
func (s *Set) Round() {
	nearest := func(x float64) float64 { return math.Round(1000*x) / 1000 }
	problems := make([]*vrp.Problem, len(s.Problems))
	for i, from := range s.Problems {
		p := *from
		p.Metric = vrp.Thousandths
		p.Windows, p.Service = slices.Clone(p.Windows), slices.Clone(p.Service)
		for v, windows := range p.Windows {
			p.Windows[v] = slices.Clone(windows)
			for j, w := range windows {
				p.Windows[v][j] = vrp.Window{From: nearest(w.From), To: nearest(w.To)}
			}
		}
		for v := range p.Service {
			p.Service[v] = nearest(p.Service[v])
		}
		p.Fleet = slices.Clone(p.Fleet)
		for k := range p.Fleet {
			if t := &p.Fleet[k]; !math.IsInf(t.MaxDistance, 1) {
				t.MaxDistance = nearest(t.MaxDistance)
			}
		}
		problems[i] = &p
	}
	s.Problems, s.Published = problems, 0
	s.Reference = slices.Clone(s.Reference)
	for i := range s.Reference {
		s.Reference[i] = nearest(s.Reference[i])
	}
	s.rounded = true
}

// Rounded is whether Round has been called.
func (s *Set) Rounded() bool { return s.rounded }

// Cut keeps count instances from the first on, or as many as there are.
func (s *Set) Cut(first, count int) {
	s.whole = max(s.whole, len(s.Problems))
	to := min(first+count, len(s.Problems))
	if to-first < len(s.Problems) {
		s.Published = 0 // is about all of them
	}
	s.Problems = s.Problems[first:to]
	if s.Reference != nil {
		s.Reference = s.Reference[first:to]
	}
}

// Customers is the number in every instance, 0 where they differ.
func (s *Set) Customers() int {
	for _, p := range s.Problems {
		if p.N() != s.Problems[0].N() {
			return 0
		}
	}
	return s.Problems[0].N()
}

// Capacity is that of every instance, 0 where they differ.
func (s *Set) Capacity() int32 {
	for _, p := range s.Problems {
		if p.Capacity != s.Problems[0].Capacity {
			return 0
		}
	}
	return s.Problems[0].Capacity
}

// Limits of a file.
const (
	maxFile    = 512 << 20 // bytes
	maxNumbers = 1 << 25   // in all arrays together: 10,000 instances of 1,000 customers
)

// raw is one instance as a file states it.
type raw struct {
	depot    [2]float64
	locs     []float64 // x and y by turns
	demand   []float64
	capacity float64 // 0: not stated
	limited
}

// build makes problems of what a file states. Demands are whole numbers, or fractions of the
// capacity.
func build(all []raw) ([]*vrp.Problem, error) {
	if len(all) == 0 {
		return nil, errors.New("no instances")
	}
	divided, whole := false, true
	for i := range all {
		r := &all[i]
		if len(r.demand) == 0 {
			return nil, fmt.Errorf("instance %d: no customers", i)
		}
		if err := r.finite(); err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		for _, d := range r.demand {
			if d != math.Trunc(d) {
				divided = true
			}
			whole = whole && d <= 1
		}
	}
	if divided && !whole {
		return nil, errors.New("its demands are neither whole numbers nor fractions of the capacity: some are not whole, and some are past 1")
	}
	if divided {
		if err := undivide(all); err != nil {
			return nil, err
		}
	}
	out := make([]*vrp.Problem, len(all))
	for i := range all {
		p, err := all[i].problem(i)
		if err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		out[i] = p
	}
	return out, nil
}

func (r *raw) finite() error {
	for j, d := range r.demand {
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return fmt.Errorf("the demand of customer %d is %g", j+1, d)
		}
	}
	if math.IsNaN(r.capacity) || math.IsInf(r.capacity, 0) {
		return fmt.Errorf("the capacity is %g", r.capacity)
	}
	return nil
}

func (r *raw) problem(i int) (*vrp.Problem, error) {
	n := len(r.demand)
	if len(r.locs) != 2*n {
		return nil, fmt.Errorf("%d demands and %d coordinates", n, len(r.locs))
	}
	if r.capacity == 0 {
		return nil, errors.New("no capacity is stated, and its demands are whole numbers")
	}
	p := &vrp.Problem{Name: fmt.Sprintf("instance-%d", i), Metric: vrp.Exact, X: make([]float64, n+1), Y: make([]float64, n+1), Demand: make([]int32, n+1)}
	p.X[0], p.Y[0] = r.depot[0], r.depot[1]
	if r.capacity != math.Trunc(r.capacity) || math.Abs(r.capacity) > math.MaxInt32 {
		return nil, fmt.Errorf("the capacity is %g: a whole number is needed", r.capacity)
	}
	p.Capacity = int32(r.capacity)
	for j, d := range r.demand {
		if math.Abs(d) > math.MaxInt32 {
			return nil, fmt.Errorf("the demand of customer %d is %g", j+1, d)
		}
		p.X[j+1], p.Y[j+1], p.Demand[j+1] = r.locs[2*j], r.locs[2*j+1], int32(d)
	}
	if err := r.limited.put(p); err != nil {
		return nil, err
	}
	return p, p.Check()
}

// maxShare bounds the capacities that divided demands are tried with where none is stated.
const maxShare = 10_000

// rounding is how far float32 may have moved a fraction of the capacity: half a unit in its last
// place, and as much again for a capacity that was rounded before.
const rounding = 1.0 / (1 << 23)

// undivide turns demands that are fractions of the capacity into whole numbers: times the capacity
// that is stated, or the smallest number that makes all of them whole.
func undivide(all []raw) error {
	stated := true
	for i := range all {
		r := &all[i]
		stated = stated && r.capacity > 1 && fits(r, r.capacity)
	}
	if !stated {
		share := common(all)
		if share == 0 {
			return fmt.Errorf("its demands are fractions of no capacity up to %d", maxShare)
		}
		for i := range all {
			all[i].capacity = share
		}
	}
	for i := range all {
		r := &all[i]
		for j, d := range r.demand {
			r.demand[j] = math.Round(d * r.capacity)
		}
	}
	return nil
}

// fits says whether the demands are whole numbers by that capacity.
func fits(r *raw, capacity float64) bool {
	if capacity != math.Trunc(capacity) {
		return false
	}
	for _, d := range r.demand {
		x := d * capacity
		if math.Abs(x-math.Round(x)) > rounding*capacity {
			return false
		}
	}
	return true
}

// common is the smallest capacity that all demands are fractions of, 0 where there is none.
func common(all []raw) float64 {
search:
	for share := 2.0; share <= maxShare; share++ {
		for i := range all {
			if !fits(&all[i], share) {
				continue search
			}
		}
		return share
	}
	return 0
}
