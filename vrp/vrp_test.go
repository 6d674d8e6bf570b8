package vrp

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"
)

func points(n int) [][2]float64 {
	out := make([][2]float64, n+1)
	for i := range out {
		out[i] = [2]float64{math.Cos(float64(i * i)), math.Sin(float64(3 * i))}
	}
	return out
}

func ones(n int) []int {
	out := make([]int, n+1)
	for i := 1; i <= n; i++ {
		out[i] = 1
	}
	return out
}

func TestBadProblemsAreRefused(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name     string
		coords   [][2]float64
		demands  []int
		capacity int
		limits   Limits
		want     string
	}{
		{"no customer", points(0), ones(0), 3, Limits{}, "at least one customer"},
		{"a demand short", points(3), ones(2), 3, Limits{}, "3 demands for 4 points"},
		{"no capacity", points(3), ones(3), 0, Limits{}, "capacity is 0"},
		{"a huge capacity", points(3), ones(3), math.MaxInt32 + 1, Limits{}, "capacity is 2147483648"},
		{"a demand below 0", points(2), []int{0, -1, 1}, 3, Limits{}, "demand 1 is -1"},
		{"a demanding depot", points(2), []int{1, 1, 1}, 3, Limits{}, "the depot, point 0, has demand 1"},
		{"too large for a vehicle", points(2), []int{0, 4, 1}, 3, Limits{}, "customer 1"},
		{"no number", [][2]float64{{0, 0}, {nan, 1}}, ones(1), 3, Limits{}, "finite coordinates"},
		{"no end", [][2]float64{{0, 0}, {math.Inf(1), math.Inf(-1)}}, ones(1), 3, Limits{}, "finite coordinates"},
		{"vehicles below 0", points(2), ones(2), 3, Limits{Vehicles: -1}, "-1 vehicles"},
		{"service times short", points(2), ones(2), 3, Limits{Service: []float64{0}}, "1 service times for 3 points"},
		{"a duration that is no number", points(2), ones(2), 3, Limits{MaxDuration: nan}, "NaN"},
		{"service below 0", points(1), ones(1), 3, Limits{Service: []float64{0, -1}}, "service time 1 is -1"},
	} {
		if _, err := NewLimited(c.coords, c.demands, c.capacity, c.limits); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a line with %q", c.name, err, c.want)
		}
	}
}

// Every method's routes are valid, and none beats the optimum.
func TestMethodsAgree(t *testing.T) {
	p, err := New(points(9), ones(9), 3)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	best, err := Exact(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	for name, solve := range map[string]func() (*Solution, error){
		"search":  func() (*Solution, error) { return Search(ctx, p, SearchOptions{Iterations: 3000}) },
		"savings": func() (*Solution, error) { return Savings(ctx, p) },
	} {
		s, err := solve()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := p.Validate(s.Routes); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if cost, err := p.Cost(s.Routes); err != nil || cost != s.Cost {
			t.Errorf("%s: its routes cost %v (%v), it says %v", name, cost, err, s.Cost)
		}
		if s.Cost < best.Cost-1e-9 || name == "search" && s.Cost > best.Cost+1e-6 {
			t.Errorf("%s: %v, the optimum is %v", name, s.Cost, best.Cost)
		}
		if text := s.String(); !strings.Contains(text, "Route #1:") || !strings.Contains(text, "Cost") {
			t.Errorf("%s prints as %q", name, text)
		}
	}
}

// What a method does not know it refuses, instead of passing it over.
func TestLimitsAreKeptOrRefused(t *testing.T) {
	ctx := context.Background()
	p, err := NewLimited(points(9), ones(9), 9, Limits{MaxDuration: 6})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Savings(ctx, p); err == nil || !strings.Contains(err.Error(), "duration") {
		t.Errorf("savings: %v, want a refusal of the duration", err)
	}
	s, err := Search(ctx, p, SearchOptions{Iterations: 2000})
	if err != nil {
		t.Fatal(err)
	}
	if best, err := Exact(ctx, p); err != nil || best.Cost > s.Cost+1e-9 {
		t.Errorf("exact: %v, %v; the search has %v", best, err, s.Cost)
	}
	if len(s.Routes) < 2 {
		t.Errorf("one route of %v where none may be longer than 6", s.Cost)
	}
	large, err := New(points(MaxExact+1), ones(MaxExact+1), 9)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Exact(ctx, large); err == nil || !strings.Contains(err.Error(), "use search") {
		t.Errorf("%d customers: %v, want a line that names Search", MaxExact+1, err)
	}
}

func TestSearchBudgets(t *testing.T) {
	ctx := context.Background()
	p, err := New(points(9), ones(9), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []SearchOptions{{}, {Time: time.Second, Iterations: 1}, {Time: -1}, {Iterations: -1}} {
		if _, err := Search(ctx, p, o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	var told []float64
	s, err := Search(ctx, p, SearchOptions{Iterations: 3000, Progress: func(cost float64) { told = append(told, cost) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(told); i++ {
		if told[i] >= told[i-1] {
			t.Errorf("progress told %v after %v", told[i], told[i-1])
		}
	}
	if len(told) > 0 && math.Abs(told[len(told)-1]-s.Cost) > 1e-9 {
		t.Errorf("progress ended at %v, the result costs %v", told[len(told)-1], s.Cost)
	}
}

func TestRoutesOfStrangersAreRefused(t *testing.T) {
	p, err := New(points(3), ones(3), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, routes := range [][][]int{{{0, 1, 2, 3}}, {{1, 2, 4}}, {{1, 2}}, {{1, 2, 3, 3}}, {{-1}}} {
		if err := p.Validate(routes); err == nil {
			t.Errorf("%v is called valid", routes)
		}
	}
	if _, err := p.Cost([][]int{{7}}); err == nil {
		t.Error("a route to a customer that is not there has a cost")
	}
}
