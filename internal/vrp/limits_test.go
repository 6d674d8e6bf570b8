package vrp

import (
	"math"
	"math/big"
	"testing"
)

// oneWay is a problem of a depot and two customers whose legs are short in one direction.
func oneWay() *Problem {
	return &Problem{Capacity: 2, Demand: []int32{0, 1, 1}, Metric: Explicit, MaxDuration: 6,
		Weights: []float64{
			0, 1, 9,
			9, 0, 2,
			3, 9, 0,
		}}
}

// A route's duration is that of its legs as they are driven: there and not back.
func TestDurationsHaveADirection(t *testing.T) {
	p := oneWay()
	for _, c := range []struct {
		route []int32
		limit float64
		ok    bool
	}{{[]int32{1, 2}, 6, true}, {[]int32{1, 2}, 5.9, false}, {[]int32{2, 1}, 26.9, false}, {[]int32{2, 1}, 27, true}} {
		p.MaxDuration = c.limit
		if err := Validate(p, Solution{Routes: [][]int32{c.route}}); (err == nil) != c.ok {
			t.Errorf("%v within %v: %v", c.route, c.limit, err)
		}
		if err := validateLimits(p, Solution{Routes: [][]int32{c.route}}); (err == nil) != c.ok {
			t.Errorf("%v within %v, by the limits alone: %v", c.route, c.limit, err)
		}
	}
}

// The legs of the longest route and of the longest partition stay below infinity, and have as many
// bits as that leaves.
func TestExactHasRoomForItsLegs(t *testing.T) {
	sum := func(bits uint) *big.Int {
		return new(big.Int).Mul(big.NewInt(2*MaxExactN), new(big.Int).Lsh(big.NewInt(1), bits))
	}
	if sum(distBits).Cmp(big.NewInt(infinite)) >= 0 {
		t.Errorf("%d legs of %d bits pass infinity", 2*MaxExactN, distBits)
	}
	if sum(distBits+1).Cmp(big.NewInt(infinite)) < 0 {
		t.Errorf("%d legs could have more than %d bits", 2*MaxExactN, distBits)
	}
}

// What a table says of the way from a node to itself changes nothing.
func TestTheDiagonalIsNotRead(t *testing.T) {
	p := oneWay()
	p.MaxDuration = 0
	e, err := NewExact(2)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := e.Solve(p)
	for i := range 3 {
		p.Weights[i*3+i] = 1e18
	}
	// next to 1e18 in the same number of bits, legs of 1 to 9 are all the same
	for i, d := range []float64{1e-9, 2e-9} {
		p.Weights[i*3+i+1] += d
	}
	if got, s := e.Solve(p); math.Abs(got-want) > 1e-6 || len(s.Routes) != 1 || s.Routes[0][0] != 1 {
		t.Errorf("%v costs %v, want %v", s.Routes, got, want)
	}
}
