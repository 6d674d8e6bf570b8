package vrp

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValidateTour(t *testing.T) {
	demand := []int32{0, 10, 10, 10, 5}
	for _, c := range []struct {
		name string
		tour []int32
		rule Rule   // 0: valid
		want string // words in the message
	}{
		{"one route a vehicle load", []int32{0, 1, 2, 0, 3, 4, 0}, 0, ""},
		{"padding", []int32{0, 1, 2, 0, 3, 4, 0, 0, 0}, 0, ""},
		{"an empty route", []int32{0, 0, 1, 2, 0, 3, 4, 0}, 0, ""},
		{"empty", nil, StartsAtDepot, "empty"},
		{"starts at a customer", []int32{1, 2, 0, 3, 4, 0}, StartsAtDepot, "starts at node 1"},
		{"ends at a customer", []int32{0, 1, 2, 0, 3, 4}, EndsAtDepot, "ends at customer 4 (position 5)"},
		{"twice", []int32{0, 1, 2, 0, 3, 1, 0, 4, 0}, VisitedOnce, "customer 1 visited twice: positions 1 and 5"},
		{"over capacity", []int32{0, 1, 0, 2, 3, 4, 0}, WithinCapacity, "route 2 carries 25, capacity 20 (at customer 4)"},
		{"over capacity past an empty route", []int32{0, 0, 0, 1, 2, 3, 0}, WithinCapacity, "route 1 carries 30, capacity 20 (at customer 3)"},
		{"missing", []int32{0, 1, 2, 0, 4, 0}, VisitedAtAll, "customer 3 is never visited"},
		{"unknown node", []int32{0, 1, 5, 0}, KnownNode, "node 5 at position 2 does not exist: nodes are 0 to 4"},
		{"negative node", []int32{0, -1, 0}, KnownNode, "node -1 at position 1"},
		{"the first of several", []int32{0, 1, 1, 9}, VisitedOnce, "positions 1 and 2"},
	} {
		checkViolation(t, c.name, validateTour(c.tour, demand, 20), c.rule, c.want)
	}
}

func TestValidateSolution(t *testing.T) {
	p := &Problem{Capacity: 20, Demand: []int32{0, 10, 10, 10, 5}}
	for _, c := range []struct {
		name   string
		routes [][]int32
		rule   Rule
		want   string
	}{
		{"valid", [][]int32{{1, 2}, {3, 4}}, 0, ""},
		{"an empty route", [][]int32{{1, 2}, {}, {3, 4}}, 0, ""},
		{"the depot inside", [][]int32{{1, 2}, {3, 0, 4}}, RouteOfCustomers, "route 2 lists the depot as stop 2"},
		{"twice", [][]int32{{1, 2}, {3, 2}}, VisitedOnce, "customer 2 visited twice: positions 2 and 5"},
		{"over capacity", [][]int32{{4}, {1, 2, 3}}, WithinCapacity, "route 2 carries 30, capacity 20 (at customer 3)"},
		{"nothing", nil, VisitedAtAll, "customer 1 is never visited"},
		{"unknown node", [][]int32{{7}}, KnownNode, "node 7"},
	} {
		checkViolation(t, c.name, Validate(p, Solution{Routes: c.routes}), c.rule, c.want)
	}
}

func checkViolation(t *testing.T, name string, err error, rule Rule, want string) {
	t.Helper()
	if rule == 0 {
		if err != nil {
			t.Errorf("%s: refused: %v", name, err)
		}
		return
	}
	var v *Violation
	if !errors.As(err, &v) || v.Rule != rule || !strings.Contains(v.Error(), want) {
		t.Errorf("%s: error %v, want rule %d with %q", name, err, rule, want)
	}
}

// TestLoadsDoNotOverflow holds demands whose sum passes 32 bits.
func TestLoadsDoNotOverflow(t *testing.T) {
	const most = 1<<31 - 1
	checkViolation(t, "overflow", validateTour([]int32{0, 1, 2, 0}, []int32{0, most, most}, most), WithinCapacity, "carries 4294967294")
}

// TestValidatorAcceptsFeasibleAndRefusesSpoiled takes feasible tours and breaks one rule in each.
func TestValidatorAcceptsFeasibleAndRefusesSpoiled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 30).Draw(t, "n")
		src := gridSource(rapid.Uint64().Draw(t, "seed"), n)
		b := NewBatch(1, n, 0)
		src.Fill(b, 0)
		tour, _ := randomTours(b)
		p := b.Problem(0)
		if err := validateTour(tour, b.Demand, b.Capacity); err != nil {
			t.Fatalf("feasible tour %v refused: %v", tour, err)
		}
		if err := Validate(p, FromTour(tour)); err != nil {
			t.Fatalf("feasible routes %v refused: %v", FromTour(tour), err)
		}

		spoiled := append([]int32(nil), tour...)
		var stops []int
		for at, v := range tour {
			if v != 0 {
				stops = append(stops, at)
			}
		}
		at := rapid.SampledFrom(stops).Draw(t, "at")
		capacity := b.Capacity
		var rules []Rule
		switch rapid.IntRange(0, 4).Draw(t, "rule") {
		case 0: // another customer takes this one's place; capacity may break before the second visit
			spoiled[at] = spoiled[at]%int32(n) + 1
			rules = []Rule{VisitedOnce, WithinCapacity}
		case 1: // dropped: its place becomes a depot visit, so loads only shrink
			spoiled[at] = 0
			rules = []Rule{VisitedAtAll}
		case 2:
			spoiled[at] = int32(n) + 1
			rules = []Rule{KnownNode}
		case 3: // a vehicle just too small for this customer
			capacity = b.Demand[tour[at]] - 1
			rules = []Rule{WithinCapacity}
		case 4:
			spoiled = spoiled[:at+1]
			rules = []Rule{EndsAtDepot}
		}
		var v *Violation
		if err := validateTour(spoiled, b.Demand, capacity); !errors.As(err, &v) {
			t.Fatalf("spoiled tour %v accepted", spoiled)
		}
		for _, r := range rules {
			if v.Rule == r {
				return
			}
		}
		t.Fatalf("spoiled tour %v: %v (rule %d), want one of %v", spoiled, v, v.Rule, rules)
	})
}

// One unit over the capacity is over it: a comparison off by one passed every other test.
func TestValidatorKnowsCapacityPlusOne(t *testing.T) {
	demand := []int32{0, 10, 10, 1}
	checkViolation(t, "full to the brim", validateTour([]int32{0, 1, 2, 0, 3, 0}, demand, 20), 0, "")
	checkViolation(t, "one over", validateTour([]int32{0, 1, 2, 3, 0}, demand, 20), WithinCapacity, "carries 21, capacity 20")
	p := &Problem{Capacity: 20, Demand: demand}
	checkViolation(t, "one over, as routes", Validate(p, Solution{Routes: [][]int32{{1, 3, 2}}}), WithinCapacity, "carries 21, capacity 20")
}

func TestValidatorJudgesDurations(t *testing.T) {
	p := &Problem{Capacity: 20, Demand: []int32{0, 1, 1}, X: []float64{0, 3, 6}, Y: []float64{0, 4, 8}, Metric: Exact}
	both := Solution{Routes: [][]int32{{1, 2}}} // 5 + 5 + 10
	for _, c := range []struct {
		name    string
		limit   float64
		service []float64
		open    bool
		rule    Rule
	}{
		{"none", 0, nil, false, 0},
		{"just kept", 20, nil, false, 0},
		{"passed", 19.99, nil, false, WithinDuration},
		{"with services", 22, []float64{0, 1, 2}, false, WithinDuration},
		{"kept with services", 23, []float64{0, 1, 2}, false, 0},
		{"open", 10, nil, true, 0},
		{"open and passed", 9.99, nil, true, WithinDuration},
	} {
		p.MaxDuration, p.Service, p.Open = c.limit, c.service, c.open
		checkViolation(t, c.name, Validate(p, both), c.rule, "route 1 takes")
	}
	p.Open = true
	if got := p.Cost(both); got != 10 {
		t.Errorf("open routes cost %g", got)
	}
}
