package vrp

import (
	"fmt"
	"math/bits"
	"strings"
)

// Attributes are an instance's constraints beyond capacities, as a set of bits. What a reader
// could break: kernel.Attributes has the same bits, and every checkpoint stores the attributes
// that it was trained on.
type Attributes uint8

// The attributes.
const (
	OpenRoutes     Attributes = 1 << iota // a route ends at its last customer
	WithBackhauls                         // some customers have goods picked up, after all deliveries of their route
	MixedBackhauls                        // with WithBackhauls: in any order
	LimitedLength                         // a route has a limit of length
	TimeWindows                           // customers have windows of time, and service takes time
	SeveralDepots                         // a vehicle returns to the one of three depots that it left
)

// attributeNames are the parts of a variant's name, in its order.
var attributeNames = []struct {
	has  Attributes
	name string
}{{MixedBackhauls, "m"}, {WithBackhauls, "b"}, {LimitedLength, "l"}, {TimeWindows, "tw"}}

// severalName goes before the name of a variant with several depots.
const severalName = "md"

// String is the name that RouteFinder has for problems with these attributes: cvrp, ovrpmbltw,
// mdvrptw.
func (a Attributes) String() string {
	name := ""
	if a&SeveralDepots != 0 {
		name, a = severalName, a&^SeveralDepots
	}
	switch {
	case a == 0:
		return name + "cvrp"
	case a&OpenRoutes != 0:
		name += "o"
	}
	name += "vrp"
	for _, part := range attributeNames {
		if a&part.has != 0 {
			name += part.name
		}
	}
	return name
}

// variants are the sets of attributes that there are.
func variants() (out []Attributes) {
	for a := Attributes(0); a < SeveralDepots<<1; a++ {
		if a&MixedBackhauls == 0 || a&WithBackhauls != 0 {
			out = append(out, a)
		}
	}
	return out
}

// Mix is the attributes that instances may have: bit a stands for the set a. Each is as likely as
// any other.
type Mix uint64

// ParseMix reads names of variants, apart by commas; "all" stands for every one with one depot, and
// "mdall" for every one with several.
func ParseMix(text string) (Mix, error) {
	var m Mix
	for name := range strings.SplitSeq(text, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		found := false
		for _, a := range variants() {
			if name == a.String() || name == "all" && a&SeveralDepots == 0 || name == severalName+"all" && a&SeveralDepots != 0 {
				m |= 1 << a
				found = true
			}
		}
		if !found {
			return 0, fmt.Errorf("there is no variant %q to be drawn: cvrp is one, and vrp with b or mb, l and tw behind it, o before it and md before that", name)
		}
	}
	return m, nil
}

// Several says whether instances may have several depots.
func (m Mix) Several() bool { return m>>SeveralDepots != 0 }

// Has says whether instances with these attributes are among those of the mix.
func (m Mix) Has(a Attributes) bool { return m>>a&1 != 0 }

// Names are the variants of the mix.
func (m Mix) Names() (names []string) {
	for _, a := range variants() {
		if m.Has(a) {
			names = append(names, a.String())
		}
	}
	return names
}

// draw picks the attributes of an instance by a word of its own.
func (m Mix) draw(word uint32) Attributes {
	for range uint64(word) * uint64(bits.OnesCount64(uint64(m))) >> 32 {
		m &= m - 1
	}
	return Attributes(bits.TrailingZeros64(uint64(m)))
}

// How RouteFinder draws (https://arxiv.org/abs/2406.15007).
const (
	mixEnd         = 4.6     // vehicles are back by then
	mixPickups     = 0.2     // share of customers
	mixSecondBlock = 1 << 20 // where the second Philox blocks of nodes begin
)

// mixDepots is how many an instance with SeveralDepots has; others of its mix have room for them.
const mixDepots = 3

// MixLongest is where the limits of a route's length end that a mix draws.
const MixLongest = 2.8

// Varied is what instances of a mix have each: by instance, and by node.
type Varied struct {
	Attributes           []Attributes
	Limit                []float32 // +Inf: none
	Pickup               []int32
	Early, Late, Service []float32
}

func newVaried(b, nodes int) *Varied {
	return &Varied{Attributes: make([]Attributes, b), Limit: make([]float32, b), Pickup: make([]int32, nodes),
		Early: make([]float32, nodes), Late: make([]float32, nodes), Service: make([]float32, nodes)}
}

// problem adds to a problem what instance i has beside places and demands. at is the index of each
// place in the slices by node.
func (v *Varied) problem(p *Problem, i int, at []int) {
	n, a := len(p.X), v.Attributes[i]
	if a&SeveralDepots != 0 {
		p.Depots = mixDepots
	}
	if a&WithBackhauls != 0 {
		p.Pickup = make([]int32, n)
		for j, k := range at {
			p.Pickup[j] = v.Pickup[k]
		}
		if a&MixedBackhauls == 0 {
			p.Backhauls = BackhaulsLast
		}
	}
	if a&TimeWindows != 0 {
		p.Windows, p.Service = make([][]Window, n), make([]float64, n)
		for j, k := range at {
			p.Windows[j] = []Window{{From: float64(v.Early[k]), To: float64(v.Late[k])}}
			p.Service[j] = float64(v.Service[k])
		}
	}
	if a&(LimitedLength|SeveralDepots) == 0 {
		p.Open = a&OpenRoutes != 0
		return
	}
	capacity := p.Capacity
	p.Capacity = 0
	for d := range p.DepotCount() {
		t := NewVehicleType(capacity)
		t.Start, t.End = d, d
		if a&OpenRoutes != 0 {
			t.End = None
		}
		if a&LimitedLength != 0 {
			t.MaxDistance = float64(v.Limit[i])
		}
		p.Fleet = append(p.Fleet, t)
	}
}

// lenient forgives the rounding of sums in float32, of lengths and of times.
func lenient(p *Problem) {
	p.MaxDuration *= 1 + limitSlack
	for i := range p.Fleet {
		p.Fleet[i].MaxDistance *= 1 + limitSlack
	}
	for _, w := range p.Windows {
		for k := range w {
			w[k].To += mixEnd * limitSlack
		}
	}
}

// limitSlack forgives the rounding of a route's length where it is summed in float32: a hundred
// legs and the way home are good to about 6e-6 of their sum.
const limitSlack = 1e-5
