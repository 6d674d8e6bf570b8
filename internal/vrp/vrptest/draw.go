// Package vrptest draws routing problems for tests. Every problem that it draws passes
// vrp.Problem.Check; it need not have a solution.
package vrptest

import (
	"math"
	"math/rand/v2"
	"slices"

	"haul/internal/vrp"
)

// Draw returns a problem of 2 to 8 customers. At least 5 % of the problems have each optional part.
func Draw(r *rand.Rand) *vrp.Problem {
	d := drawer{r, &vrp.Problem{Name: "drawn", Metric: vrp.Metric(r.IntN(int(vrp.Att) + 1))}, 0}
	d.places()
	d.times()
	d.choice()
	d.amounts()
	d.distances()
	d.vehicles()
	d.p.Objective = vrp.Objective(r.IntN(3))
	return d.p
}

// drawer is the source, the problem so far and its number of places.
type drawer struct {
	*rand.Rand
	p *vrp.Problem
	n int
}

// some reports true in two of five cases.
func (d *drawer) some() bool { return d.IntN(5) < 2 }

// time is a multiple of 1/8 below 1000.
func (d *drawer) time() float64 { return float64(d.IntN(8000)) / 8 }

// numbers has one number per place, 0 at depots unless they may have one.
func (d *drawer) numbers(depots bool) []float64 {
	out := make([]float64, d.n)
	for v := range out {
		if depots || v >= d.p.DepotCount() {
			out[v] = d.time()
		}
	}
	return out
}

// ints has one number below most per place, 0 at depots.
func (d *drawer) ints(most int32) []int32 {
	out := make([]int32, d.n)
	for v := d.p.DepotCount(); v < d.n; v++ {
		out[v] = d.Int32N(most)
	}
	return out
}

// customer is one of them, counted from 0 behind the depots.
func (d *drawer) customer(i int) int32 { return int32(d.p.DepotCount() + i) }

func (d *drawer) places() {
	p := d.p
	if d.some() {
		p.Depots = 1 + d.IntN(3)
	}
	d.n = p.DepotCount() + 2 + d.IntN(7)
	if p.Metric != vrp.Explicit || d.some() {
		for range d.n {
			p.X, p.Y = append(p.X, 180-float64(d.IntN(361))), append(p.Y, float64(d.IntN(720))/4-90)
		}
	}
	if p.Metric == vrp.GreatCircle || d.some() {
		p.Speed = float64(1+d.IntN(40)) / 2
	}
	if d.some() {
		p.IDs = slices.Clone([]string{"depot", "north", "south east", "ÿ", `"q"`, "-", "<&>", "8", "9", "tab", "k"}[:d.n])
	}
	if d.some() {
		p.Names = make([]string, d.n)
		p.Names[d.n-1] = "Müller \\ Söhne"
	}
}

func (d *drawer) span() vrp.Window {
	from := float64(d.IntN(100))
	if d.some() {
		return vrp.Window{From: from, To: math.Inf(1)}
	}
	return vrp.Window{From: from, To: from + d.time()}
}

// windows are up to three, in order and apart.
func (d *drawer) windows() (out []vrp.Window) {
	at := d.time()
	for range d.IntN(4) {
		w := vrp.Window{From: at, To: at + d.time()}
		out, at = append(out, w), w.To+1
	}
	if len(out) > 0 && d.some() {
		out[len(out)-1].To = math.Inf(1)
	}
	return out
}

func (d *drawer) times() {
	p := d.p
	for _, list := range []struct {
		to     *[]float64
		depots bool
	}{{&p.Service, true}, {&p.Setup, false}, {&p.Release, false}, {&p.Late, false}} {
		if d.some() {
			*list.to = d.numbers(list.depots)
		}
	}
	if d.some() {
		for range d.n {
			p.Windows = append(p.Windows, d.windows())
		}
	}
	if d.some() {
		p.Clock = 1 / float64(1+d.IntN(60))
	}
}

// choice draws who may be left out, groups, skills and priorities.
func (d *drawer) choice() {
	p, last := d.p, d.n-1
	if d.some() {
		p.Optional = make([]bool, d.n)
		p.Optional[last] = true
		if d.some() {
			p.Prize = d.numbers(false)
		}
	}
	if d.some() {
		p.Needs = make([][]int32, d.n)
		p.Needs[last] = []int32{1, 2}
		if d.some() {
			p.SkillWords = []string{"frost", "lift\t2"}
		}
	}
	if d.some() {
		p.Priority = make([]int, d.n)
		p.Priority[last] = d.IntN(101)
	}
	if d.some() {
		p.Groups = []vrp.Group{{Name: "either", Members: []int32{d.customer(0)}, Required: d.some()}}
	}
}

func (d *drawer) amounts() {
	p := d.p
	p.Demand = d.ints(9)
	if d.some() {
		p.Dimensions = []vrp.Dimension{{Name: "pallets", Delivery: d.ints(3)}}
		if d.some() {
			p.Dimensions = append(p.Dimensions, vrp.Dimension{Pickup: d.ints(4)})
		}
	}
	if d.some() {
		p.Backhauls = vrp.BackhaulRule(d.IntN(3))
	}
	if d.some() {
		p.Pickup = d.ints(9)
		if p.Backhauls != vrp.Mixed {
			clear(p.Demand)
		}
	}
	if p.Backhauls != vrp.Mixed && p.Dimensions != nil {
		p.Backhauls = vrp.Mixed
	}
	if d.some() {
		p.Fractions = make([]int32, 1+len(p.Dimensions))
		for i := range p.Fractions {
			p.Fractions[i] = []int32{1, 10, 1000}[d.IntN(3)]
		}
	}
	if first := d.n - p.DepotCount() - 2; first > 0 && d.some() { // the last two are no member of the group
		if p.Optional != nil {
			p.Optional[d.n-2] = true
		}
		p.Shipments, p.LIFO = []vrp.Shipment{{Pickup: int32(d.n - 2), Delivery: int32(d.n - 1), Amount: []int32{d.Int32N(9)}}}, d.some()
		if d.some() {
			p.Shipments[0].Amount = nil
		}
	}
}

func (d *drawer) matrix() []float64 {
	m := make([]float64, d.n*d.n)
	for i := range m {
		if i%(d.n+1) != 0 {
			m[i] = d.time()
		}
	}
	return m
}

func (d *drawer) distances() {
	p := d.p
	if p.Metric == vrp.Explicit {
		p.Weights = d.matrix()
	}
	if d.some() {
		p.Profiles = []vrp.Profile{{Name: "car", Distance: d.matrix()}, {Distance: d.matrix(), Duration: d.matrix()}}
		if p.Metric == vrp.Explicit {
			p.Weights = p.Profiles[0].Distance // [0] replaces it
		}
	}
}

func (d *drawer) vehicles() {
	p := d.p
	if p.DepotCount() == 1 && d.some() {
		p.Capacity = int32(9 + d.IntN(30))
		if d.some() {
			p.Vehicles = 1 + d.IntN(4)
		}
		if p.Open = d.some(); d.some() {
			p.MaxDuration = 1e9
		}
		return
	}
	for i := range 1 + d.IntN(3) {
		t := vrp.NewVehicleType(int32(20 + i))
		t.Start, t.End = d.IntN(p.DepotCount()+1)-1, d.IntN(p.DepotCount()+1)-1
		if d.some() {
			t.Name, t.Count = "van "+string(rune('a'+i)), 1+d.IntN(3)
			for k := range t.Count {
				t.Numbers = append(t.Numbers, int32(10*i+k))
			}
		}
		if d.some() {
			t.Shift = d.span()
			t.LatestStart = t.Shift.From + 7
		}
		if d.some() {
			t.MaxDuration, t.MaxDistance, t.MaxStops = d.time(), d.time(), d.IntN(9)
		}
		if d.some() {
			t.FixedCost, t.DistanceCost, t.DurationCost = d.time(), float64(d.IntN(3)), d.time()
		}
		if p.Profiles != nil {
			t.Profile = d.IntN(len(p.Profiles))
		}
		if d.some() {
			t.Skills, t.Allowed = []int32{1, 2}, []int32{d.customer(0), d.customer(1)}
		}
		if d.some() {
			t.Reloads, t.MaxReloads = []int{d.IntN(p.DepotCount())}, d.IntN(3)
		}
		if d.some() {
			t.Capacity, t.InitialLoad = append(t.Capacity, make([]int32, len(p.Dimensions))...), []int32{3}
		}
		if d.some() {
			t.Breaks = []vrp.Break{{Windows: []vrp.Window{d.span()}, Duration: 3, MaxLoad: []int32{4}}, {Windows: []vrp.Window{}, Duration: 1}}
		}
		p.Fleet = append(p.Fleet, t)
	}
}
