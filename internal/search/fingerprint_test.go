package search

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"haul/internal/vrp"
	"haul/internal/vrp/testset"
)

// A fingerprint is a hash of everything that a search with a budget of iterations returns: routes
// with their vehicle types, cost, required customers left out, proof, number of iterations and the
// final state of the random streams. Code that moves leaves every fingerprint unchanged. A change
// of the search's meaning changes some, raises referenceVersion or generalVersion, and names the
// rule that changed:
//
//	go test ./internal/search -run TestFingerprints -update
//
// The hashes hold for amd64: Go's Log, Exp and Hypot differ in the last bit between architectures.

var update = flag.Bool("update", false, "write testdata/fingerprints.txt anew")

const (
	fingerprintFile  = "testdata/fingerprints.txt"
	fingerprintSeeds = 3
)

// fingerprintCase is a problem and the options of its searches.
type fingerprintCase struct {
	name       string
	iterations int
	problem    func() *vrp.Problem
	options    func(p *vrp.Problem, o *Options) // nil: none
}

// standIns have the features of the public sets, by name.
var standIns = []struct {
	name                  string
	customers, iterations int
	features              string
}{
	{"solomon", 100, 1500, "windows service exact"},
	{"solomon-fewest", 60, 1500, "windows service exact fewest"},
	{"homberger", 200, 600, "windows service counted"},
	{"homberger-savings", 2010, 60, "windows service exact"},
	{"pcvrptw", 60, 800, "windows service optional counted"},
	{"pcvrp", 80, 1500, "optional"},
	{"mdvrptw", 72, 1000, "depots windows service max-duration"},
	{"mdvrp", 75, 1500, "depots max-duration service"},
	{"vrpb", 70, 1500, "linehaul-first"},
	{"vrpmb", 70, 1500, "mixed-backhauls"},
	{"vrpspd", 90, 1500, "mixed-backhauls exact"},
	{"hfvrp", 60, 1500, "types"},
	{"fsm-large", 180, 600, "types exact"},
	{"hvrptw", 60, 800, "types windows service counted"},
	{"mtvrptwr", 40, 300, "reloads windows service release"},
	{"gvrp", 90, 1500, "groups"},
	{"gvrptw", 90, 300, "groups windows"},
	{"gvrp-large", 400, 150, "groups"},
	{"li-lim", 60, 1500, "shipments windows service"},
	{"li-lim-all", 50, 120, "lifo windows"},
	{"cvrp-mixed", 160, 1000, "mixed-backhauls counted"},
	{"op", 60, 1500, "optional max-distance"},
	{"site-dependent", 60, 1500, "skills service max-duration"},
	{"two-dimensional", 60, 1500, "dimension"},
	{"breaks", 50, 400, "breaks windows service"},
	{"time-dependent-cost", 50, 500, "duration-cost windows service"},
	{"multi-window", 50, 400, "several-windows service"},
	{"asymmetric", 60, 1500, "profiles"},
	{"asymmetric-large", 320, 150, "profiles"},
	{"skills-large", 330, 150, "skills windows"},
	{"optional-large", 400, 150, "optional windows"},
	{"gvrp-equal", 60, 1500, "groups equal"},
	{"vrpb-empty", 60, 800, "backhauls-last empty"},
	{"pcvrp-trials", 24, 6500, "optional exact"},
	{"matrix-free", 4100, 20, "windows exact"},
	{"matrix-free-pickups", 4100, 10, "mixed-backhauls"},
}

// mixtures have features such that every pair which a problem can have is in one of them.
var mixtures = strings.Split(strings.TrimSpace(mixtureLines), "\n")

func fingerprintCases(t testing.TB) []fingerprintCase {
	var out []fingerprintCase
	plain := func(name string, iterations int, problem func() *vrp.Problem) {
		out = append(out, fingerprintCase{name: "plain-" + name, iterations: iterations, problem: problem})
	}
	for _, n := range []int{1, 2, 20, 60, 100} {
		plain(fmt.Sprint("small-", n), 2000, func() *vrp.Problem { return uniform(n, 11) })
	}
	for _, n := range []int{160, 420, 660} {
		plain(fmt.Sprint("medium-", n), 1500, func() *vrp.Problem { return uniform(n, 12) })
	}
	plain("parts", 400, func() *vrp.Problem { return uniform(1100, 13) })
	plain("computed", 200, func() *vrp.Problem { return uniform(3100, 14) })
	change := func(name string, n int, f func(p *vrp.Problem)) {
		plain(name, 1500, func() *vrp.Problem {
			p := uniform(n, 15)
			f(p)
			return p
		})
	}
	change("open", 180, func(p *vrp.Problem) { p.Open = true })
	change("open-small", 60, func(p *vrp.Problem) { p.Open = true })
	change("length", 90, func(p *vrp.Problem) { p.MaxDuration = 4 })
	change("length-service", 90, func(p *vrp.Problem) {
		p.MaxDuration, p.Service = 4, make([]float64, len(p.Demand))
		for v := 1; v < len(p.Service); v++ {
			p.Service[v] = 0.1
		}
	})
	change("fleet", 90, func(p *vrp.Problem) {
		sum := int32(0)
		for _, d := range p.Demand {
			sum += d
		}
		p.Capacity = (sum + 7) / 7
		p.Vehicles = 7
	})
	plain("fleet-large", 20, func() *vrp.Problem {
		p := uniform(3010, 17)
		p.Vehicles = 330
		return p
	})
	change("one-way", 90, func(p *vrp.Problem) {
		n := len(p.Demand)
		p.Weights = make([]float64, 0, n*n)
		for v := range n {
			for w := range n {
				p.Weights = append(p.Weights, math.Floor(1000*p.Dist(v, w)*(1+0.2*float64((v+2*w)%3))))
			}
			p.Weights[v*n+v] = 0
		}
		p.Metric = vrp.Explicit
	})
	change("traveller", 80, func(p *vrp.Problem) { p.Capacity = 1 << 20 })
	change("typed", 90, func(p *vrp.Problem) {
		p.Fleet = []vrp.VehicleType{vrp.NewVehicleType(p.Capacity)}
		p.Fleet[0].MaxDistance, p.Capacity = 4, 0
	})
	for _, s := range standIns {
		out = append(out, fingerprintCase{name: s.name, iterations: s.iterations,
			problem: func() *vrp.Problem { return sample(uint64(s.customers), s.customers, s.features) }})
	}
	for i, line := range mixtures {
		out = append(out, fingerprintCase{name: fmt.Sprint("mixture-", i), iterations: 120,
			problem: func() *vrp.Problem { return sample(uint64(1000+i), 18+i%7, line) }})
	}
	for i, name := range []string{"cvrp", "vrptw", "vrpbl", "ovrpmb", "vrpmbltw", "mdvrpbltw", "mdovrpmb"} {
		set, err := testset.RouteFinder(name, 50)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			set.Round()
		}
		out = append(out, fingerprintCase{name: "routefinder-" + name, iterations: 2500, problem: func() *vrp.Problem { return set.Problems[i] }})
	}
	partial := func(p *vrp.Problem, o *Options) { o.Partial = true }
	out = append(out,
		fingerprintCase{"partial", 1000, func() *vrp.Problem { return sample(1, 60, "counted types") }, partial},
		fingerprintCase{"start", 1000, func() *vrp.Problem { return uniform(70, 16) }, func(p *vrp.Problem, o *Options) {
			s := alone(p.N())
			o.Start = &s
		}},
		fingerprintCase{"fixed", 1000, func() *vrp.Problem { return sample(2, 40, "windows service") }, func(p *vrp.Problem, o *Options) {
			r, err := Solve(context.Background(), p, Options{Iterations: 200, Seed: 9})
			if err != nil {
				panic(err)
			}
			o.Start, o.Fixed = &r.Solution, make([]int32, len(r.Solution.Routes))
			for i := range o.Fixed {
				o.Fixed[i] = int32(i%4) - 1
			}
		}})
	return out
}

// fingerprint returns the hash of one search, and its cost for readers of the file.
func fingerprint(t testing.TB, c *fingerprintCase, p *vrp.Problem, seed uint64) string {
	t.Helper()
	o := Options{Iterations: c.iterations, Seed: seed}
	if c.options != nil {
		c.options(p, &o)
	}
	r, err := Solve(t.Context(), p, o)
	if err != nil {
		t.Fatalf("%s, seed %d: %v", c.name, seed, err)
	}
	h := fnv.New64a()
	put := func(x any) { binary.Write(h, binary.LittleEndian, x) }
	for i, route := range r.Solution.Routes {
		if r.Solution.Types != nil {
			put(r.Solution.Types[i])
		}
		put(int64(len(route)))
		put(route)
	}
	put(math.Float64bits(r.Cost))
	put(r.Unserved)
	put(r.Proven)
	put(int64(r.Iterations))
	put(r.draws)
	return fmt.Sprintf("%016x %d routes %.9g", h.Sum64(), len(r.Solution.Routes), r.Cost)
}

// A search returns the same routes, cost and random state for the same seed as it did when the file
// was written.
func TestFingerprints(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the fingerprints are those of amd64")
	}
	want := map[string]string{}
	data, err := os.ReadFile(fingerprintFile)
	if err != nil && !*update {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if name, rest, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			want[name] = rest
		}
	}
	var out strings.Builder
	cases := fingerprintCases(t)
	for i := range cases {
		p := cases[i].problem()
		seeds := fingerprintSeeds
		if len(p.Demand) > 2000 && testing.Short() {
			continue
		}
		if len(p.Demand) > 2000 || testing.Short() {
			seeds = 1
		}
		for seed := range seeds {
			name := fmt.Sprintf("%s %d", cases[i].name, seed)
			got := fingerprint(t, &cases[i], p, uint64(seed))
			fmt.Fprintf(&out, "%s: %s\n", name, got)
			if !*update && got != want[name] {
				t.Errorf("%s: %s, was %s", name, got, want[name])
			}
			delete(want, name)
		}
	}
	for _, n := range []int{60, 450} {
		name := fmt.Sprint("savings ", n)
		s, err := savingsFor(t.Context(), uniform(n, 18), 100)
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		for _, route := range s.Routes {
			binary.Write(h, binary.LittleEndian, append(route, 0))
		}
		got := fmt.Sprintf("%016x %d routes", h.Sum64(), len(s.Routes))
		fmt.Fprintf(&out, "%s: %s\n", name, got)
		if !*update && got != want[name] {
			t.Errorf("%s: %s, was %s", name, got, want[name])
		}
		delete(want, name)
	}
	if *update {
		if err := os.WriteFile(fingerprintFile, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for name := range want {
		if testing.Short() {
			break
		}
		t.Errorf("%s: no such search", name)
	}
}

// Every pair of features that a problem can have is in a mixture.
func TestMixturesHaveEveryPair(t *testing.T) {
	lines := make([][]string, len(mixtures))
	for i, line := range mixtures {
		lines[i] = strings.Fields(line)
	}
	amounts := []string{"equal", "empty"} // of no part of a problem
	for i := range features {
		for j := range i {
			a, b := &features[i], &features[j]
			if slices.Contains(amounts, a.name) || slices.Contains(amounts, b.name) {
				continue
			}
			if slices.Contains(strings.Fields(a.without), b.name) || slices.Contains(strings.Fields(b.without), a.name) {
				continue
			}
			if !slices.ContainsFunc(lines, func(l []string) bool { return slices.Contains(l, a.name) && slices.Contains(l, b.name) }) {
				t.Errorf("no mixture has %s and %s", a.name, b.name)
			}
		}
	}
}
