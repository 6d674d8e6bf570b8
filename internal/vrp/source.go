package vrp

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"haul/internal/rng"
)

// What a reader could break: the draw order below is part of every stored result, and a GPU kernel
// repeats it with one thread per node. Node j of an instance spends Philox block draw=j:
//
//	word 0 → x, word 1 → y, word 2 → demand (unread at the depot), word 3 unread but for
//	node 1, where it is the limit of a route's length, or of a mix the attributes
//
// so an instance is a function of (seed, purpose, index) alone, whatever the batch or the worker.

// Distribution names how coordinates are drawn.
type Distribution string

// The distributions on offer.
const (
	Grid    Distribution = "grid"    // integers 0..CoordRange, divided by CoordRange
	Uniform Distribution = "uniform" // the unit square (Kool et al.)
)

// uniformScale turns the unit square into the integers of a written uniform instance.
const uniformScale = 1_000_000

func (d Distribution) check() error {
	if d != Grid && d != Uniform {
		return fmt.Errorf("unknown distribution %q: use %s or %s", string(d), Grid, Uniform)
	}
	return nil
}

// Source makes instances. The zero Purpose stands for rng.Instances.
type Source struct {
	Seed                 uint64
	Purpose              rng.Purpose
	Distribution         Distribution
	N                    int
	Capacity             int32
	DemandMin, DemandMax int32
	CoordRange           int32 // grid only
	// where the limit of a route's length ends, in sides of the unit square; 0: none
	MaxLength float32 `json:",omitempty"`
	Mix       Mix     `json:",omitempty"` // of attributes; 0: none has any
	// one vehicle serves all in one tour, the travelling salesman problem: every demand is 1 and the
	// capacity N, whatever is asked for above
	Single bool `json:",omitempty"`
	// the text of a problem file that draws the instances, and its settings; then only the seed, the
	// purpose, places and N are asked
	File         string `json:",omitempty"`
	FileSettings string `json:",omitempty"`
}

// Plain says whether the capacity is all that limits a route of the source's instances, or an
// optimum that knows nothing else is theirs too. That of a single tour is: by Euclid's distances
// two routes of a vehicle that carries all are never shorter than one.
func (s Source) Plain() bool { return s.MaxLength == 0 && s.Mix == 0 }

// Check says in one line what makes the source unusable, or nil.
func (s Source) Check() error {
	if err := s.Distribution.check(); err != nil {
		return err
	}
	switch {
	case s.N < 1:
		return fmt.Errorf("customers is %d: at least 1 is needed", s.N)
	case s.Capacity < 1:
		return fmt.Errorf("capacity is %d: at least 1 is needed", s.Capacity)
	case s.DemandMin < 1:
		return fmt.Errorf("demand range %d,%d starts below 1: every customer needs a demand of at least 1", s.DemandMin, s.DemandMax)
	case s.DemandMax < s.DemandMin:
		return fmt.Errorf("demand range %d,%d is reversed: write the smaller demand first", s.DemandMin, s.DemandMax)
	case s.DemandMax > s.Capacity:
		return fmt.Errorf("demand range %d,%d passes capacity %d: no vehicle could serve such a customer", s.DemandMin, s.DemandMax, s.Capacity)
	case !(s.MaxLength >= 0 && s.MaxLength <= math.MaxFloat32):
		return fmt.Errorf("the limit of a route's length ends at %g: expected 0 (none) or more", s.MaxLength)
	case s.Single && (s.MaxLength > 0 || s.Mix != 0):
		return fmt.Errorf("a single tour has no limit of length and no attributes: every customer is in it")
	case s.Distribution == Grid && s.CoordRange < 1:
		return fmt.Errorf("coordinate range is %d: at least 1 is needed", s.CoordRange)
	}
	return nil
}

// Fill writes instances first, first+1, ... into the batch's slots in order. The source must pass
// Check, and the batch must have its N.
func (s Source) Fill(b *Batch, first uint64) {
	if b.N != s.N {
		panic("vrp: Fill: batch and source differ in N")
	}
	b.Capacity, b.Single = s.Capacity, s.Single
	if s.Single {
		b.Capacity = int32(s.N)
	}
	if further := s.further(); b.Further != further {
		nodes := b.B * (s.N + 1 + further)
		b.X, b.Y, b.Demand = make([]float32, nodes), make([]float32, nodes), make([]int32, nodes)
		b.Further, b.Varied = further, nil
	}
	nodes := b.Nodes()
	for i := range b.B {
		lo, hi := i*nodes, (i+1)*nodes
		s.draw(b.X[lo:hi], b.Y[lo:hi], b.Demand[lo:hi], first+uint64(i))
		if s.MaxLength > 0 {
			b.limit(i, s.drawLimit(b.X[lo:hi], b.Y[lo:hi], first+uint64(i)))
		}
		if s.Mix != 0 {
			s.vary(b, i, first+uint64(i))
		}
	}
}

// further is how many depots an instance has beyond the first, or has room for.
func (s Source) further() int {
	if s.Mix.Several() {
		return mixDepots - 1
	}
	return 0
}

// drawLimit is uniform between twice the way to the farthest customer and MaxLength where that is
// more: RouteFinder's (https://arxiv.org/abs/2406.15007).
func (s Source) drawLimit(x, y []float32, index uint64) float32 {
	return limitBetween(x, y, rng.At(s.Seed, index, 1, s.purpose())[3], s.MaxLength)
}

func limitBetween(x, y []float32, word uint32, longest float32) float32 {
	far := float32(0)
	for j := range x {
		far = max(far, leg(x[j]-x[0], y[j]-y[0]))
	}
	low := 2 * far
	return low + float32(rng.Float(word)*(max(longest, low)-low))
}

func (s Source) draw(x, y []float32, demand []int32, index uint64) {
	purpose := s.purpose()
	demands := uint32(s.DemandMax-s.DemandMin) + 1
	for j := range x {
		w := rng.At(s.Seed, index, uint32(j), purpose)
		if s.Distribution == Grid {
			x[j] = float32(s.gridPoint(w[0])) / float32(s.CoordRange)
			y[j] = float32(s.gridPoint(w[1])) / float32(s.CoordRange)
		} else {
			x[j], y[j] = rng.Float(w[0]), rng.Float(w[1])
		}
		demand[j] = s.DemandMin + int32(rng.Below(w[2], demands))
		if s.Single {
			demand[j] = 1
		}
	}
	demand[0] = 0
}

func (s Source) gridPoint(word uint32) uint32 { return rng.Below(word, uint32(s.CoordRange)+1) }

func (s Source) purpose() rng.Purpose {
	if s.Purpose == 0 {
		return rng.Instances
	}
	return s.Purpose
}

// FileProblem is instance index as a CVRPLIB file states it: integer coordinates (a grid's own; a
// uniform instance's times 10^6, rounded) and therefore EUC_2D's rounded distances. The comment
// holds what brings the unit square back.
func (s Source) FileProblem(index uint64) *Problem {
	b := NewBatch(1, s.N, s.Capacity)
	s.Fill(b, index)
	p := b.Problem(0)
	scale := uniformScale
	if s.Distribution == Grid {
		scale = int(s.CoordRange)
	}
	for j := range p.X {
		if s.Distribution == Grid {
			// Drawn afresh: float32 quotients of a range past 2^24 would not round back.
			w := rng.At(s.Seed, index, uint32(j), s.purpose())
			p.X[j], p.Y[j] = float64(s.gridPoint(w[0])), float64(s.gridPoint(w[1]))
		} else {
			p.X[j], p.Y[j] = math.Round(p.X[j]*uniformScale), math.Round(p.Y[j]*uniformScale)
		}
	}
	p.Metric = Rounded
	p.Name = fmt.Sprintf("haul-%s-n%d-s%d-i%d", s.Distribution, s.N, s.Seed, index)
	p.Comment = fmt.Sprintf("haul seed=%d index=%d scale=%d", s.Seed, index, scale)
	return p
}

// Scale is the factor by which a written file scaled the unit square, read back from the comment:
// "haul ... scale=1000000".
func (p *Problem) Scale() (int, bool) {
	text, ok := strings.CutPrefix(p.Comment, "haul ")
	if !ok {
		return 0, false
	}
	for _, field := range strings.Fields(text) {
		if number, ok := strings.CutPrefix(field, "scale="); ok {
			scale, err := strconv.Atoi(number)
			return scale, err == nil && scale > 0
		}
	}
	return 0, false
}

// vary draws what instance `index` of the mix has beside places and demands into slot i.
func (s Source) vary(b *Batch, i int, index uint64) {
	if b.Varied == nil {
		b.Varied = newVaried(b.B, len(b.X))
	}
	v, n := b.Varied, b.Nodes()
	lo := i * n
	second := func(j int) [4]uint32 { return rng.At(s.Seed, index, mixSecondBlock+uint32(j), s.purpose()) }
	a := s.Mix.draw(rng.At(s.Seed, index, 1, s.purpose())[3])
	v.Attributes[i], v.Limit[i] = a, float32(math.Inf(1))
	x, y := b.X[lo:][:n], b.Y[lo:][:n]
	for j := b.N + 1; j < n; j++ {
		b.Demand[lo+j] = 0
		if a&SeveralDepots == 0 {
			x[j], y[j] = x[0], y[0]
		}
	}
	if a&LimitedLength != 0 {
		v.Limit[i] = limitBetween(x, y, second(0)[0], MixLongest)
	}
	end := float32(math.Inf(1))
	if a&TimeWindows != 0 {
		end = mixEnd
	}
	for j := range x {
		v.Pickup[lo+j], v.Early[lo+j], v.Late[lo+j], v.Service[lo+j] = 0, 0, float32(math.Inf(1)), 0
		if j == 0 || j > b.N {
			v.Late[lo+j] = end
			continue
		}
		u := second(j)
		if a&WithBackhauls != 0 && rng.Float(u[3]) < mixPickups {
			v.Pickup[lo+j], b.Demand[lo+j] = b.Demand[lo+j], 0
		}
		if a&TimeWindows != 0 {
			way := leg(x[j]-x[0], y[j]-y[0])
			service, width := 0.15+float32(0.03*rng.Float(u[0])), 0.18+float32(0.02*rng.Float(u[1]))
			early := way + float32((mixEnd-service-width-2*way)*rng.Float(u[2]))
			v.Early[lo+j], v.Late[lo+j], v.Service[lo+j] = early, early+width, service
		}
	}
}
