package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"haul/internal/doctor/trace"
)

// job is a simulated job: ranks whose work before each collective is noisy, and one of them, or
// none, that does more than the others before the first of each step.
type job struct {
	ranks, steps, collectives int
	noise, hiccup             float64 // of a step; how often one takes a third of a step longer
	straggler                 int     // -1: none
	extra                     float64 // of a step
}

const stepNS = 20e6

// run simulates it on clocks that stand apart, and returns what the straggler costs per step, as a
// share of it: how much longer the job takes than the same job, draw for draw, without its extra.
func (g job) run(r *rand.Rand) (ranks [][]Arrival, cost float64) {
	ranks = make([][]Arrival, g.ranks)
	clock := make([]float64, g.ranks)
	for i := range clock {
		clock[i] = r.NormFloat64() * 1e9
	}
	var with, without float64
	for s := range g.steps {
		for c := range g.collectives {
			arrive, bare := make([]float64, g.ranks), make([]float64, g.ranks)
			last, lastBare := 0.0, 0.0
			for i := range arrive {
				work := stepNS / float64(g.collectives) * (1 + g.noise*math.Sqrt(float64(g.collectives))*r.NormFloat64())
				if r.Float64() < g.hiccup/float64(g.collectives) {
					work += stepNS / 3
				}
				arrive[i], bare[i] = with+work, without+work
				if i == g.straggler && c == 0 {
					arrive[i] += g.extra * stepNS
				}
				last, lastBare = max(last, arrive[i]), max(lastBare, bare[i])
			}
			last, lastBare = last+2e5, lastBare+2e5
			for i := range arrive {
				end := last + 2e4*r.Float64()
				ranks[i] = append(ranks[i], Arrival{"all_reduce", "", int64(arrive[i] + clock[i]), int64(end + clock[i]), s})
			}
			with, without = last, lastBare
		}
	}
	return ranks, (with - without) / with
}

// named is the rank that stands out, or -1.
func (g job) named(ranks [][]Arrival) int {
	list := MatchRanks(ranks)
	clocks := AlignRanks(len(ranks), list)
	b := Blamed(clocks, list)
	worst, caused := 0, 0.0
	for i, ns := range b.Caused {
		caused += ns
		if ns > b.Caused[worst] {
			worst = i
		}
	}
	if b.Caused[worst] < 0.05*stepNS*float64(g.steps) || b.Caused[worst] < 0.25*caused || b.StandsOut(worst) >= 0.02 {
		return -1
	}
	return worst
}

// Two hundred jobs of 2 to 64 ranks: no rank is named by chance, and a rank that costs over 5 % is.
func TestSimulatedJobs(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 2))
	alarms, clean, found, costly := 0, 0, 0, 0
	for n := range 200 {
		g := job{ranks: 2 + r.IntN(63), steps: 6 + r.IntN(20), collectives: 1 + r.IntN(6), noise: 0.002 + 0.018*r.Float64(), hiccup: 0.02 * r.Float64(), straggler: -1}
		if n%2 == 1 {
			g.straggler, g.extra = r.IntN(g.ranks), 0.4*r.Float64()
		}
		ranks, cost := g.run(r)
		got := g.named(ranks)
		switch {
		case g.straggler < 0 || got >= 0 && got != g.straggler:
			clean++
			if got >= 0 {
				alarms++
				t.Logf("false alarm: %+v names %d", g, got)
			}
		case cost > 0.05:
			costly++
			if got == g.straggler {
				found++
			} else {
				t.Logf("missed: %+v costs %.3f", g, cost)
			}
		}
	}
	t.Logf("%d false alarms of %d, %d found of %d that cost over 5 %%", alarms, clean, found, costly)
	if float64(alarms) >= 0.02*float64(clean) || float64(found) < 0.95*float64(costly) || costly < 60 {
		t.Errorf("%d false alarms of %d, %d found of %d", alarms, clean, found, costly)
	}
}

// Recordings that begin and end at different collectives, with different steps, are still matched
// event by event, because the ends coincide at one shift only.
func TestRecordingsThatBeginElsewhere(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 4))
	for range 200 {
		g := job{ranks: 2 + r.IntN(7), steps: 12 + r.IntN(12), collectives: 1 + r.IntN(4), noise: 0.01 + 0.02*r.Float64(), straggler: -1}
		if r.IntN(2) == 0 {
			g.straggler, g.extra = r.IntN(g.ranks), 0.3*r.Float64()
		}
		ranks, _ := g.run(r)
		events := map[int64]int{} // by start, which no two collectives share on clocks so far apart
		for i, list := range ranks {
			for k, c := range list {
				events[c.Start] = k
			}
			front, back := r.IntN(3), r.IntN(3)
			ranks[i] = list[front : len(list)-back]
			for k := range ranks[i] {
				ranks[i][k].Step = k / g.collectives
			}
		}
		list := MatchRanks(ranks)
		if len(list) < g.steps*g.collectives-4 {
			t.Errorf("%+v: %d collectives matched", g, len(list))
		}
		for _, m := range list {
			for _, c := range m.Items {
				if events[c.Start] != events[m.Items[0].Start] {
					t.Fatalf("%+v: collective %d is matched with %d", g, events[c.Start], events[m.Items[0].Start])
				}
			}
		}
	}
}

// How the ranks' clocks stand to one another changes what a rank causes by more than a hundredth of
// a step in few jobs, though collectives end up to a tenth of one apart, as gloo's do.
func TestClocksChangeLittle(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 6))
	changed := 0
	for range 50 {
		g := job{ranks: 3 + r.IntN(6), steps: 12, collectives: 2, noise: 0.02, straggler: 1, extra: 0.2}
		ranks, _ := g.run(r)
		caused := func() []float64 {
			list := MatchRanks(ranks)
			return Blamed(AlignRanks(len(ranks), list), list).Caused
		}
		for i := range ranks {
			for k := range ranks[i] {
				ranks[i][k].End += int64(2e6 * r.Float64())
			}
		}
		want := caused()
		for i := range ranks {
			by := int64(r.NormFloat64() * 1e9)
			for k := range ranks[i] {
				ranks[i][k].Start += by
				ranks[i][k].End += by
			}
		}
		for i, ns := range caused() {
			if per := math.Abs(ns-want[i]) / float64(g.steps); per > 0.01*stepNS {
				changed++
			}
		}
	}
	if t.Logf("%d changed", changed); changed > 8 {
		t.Errorf("%d changed", changed)
	}
}

// Steps that are equal to the nanosecond fit in any place as well as in their own, but for chance,
// and stay there.
func TestEqualStepsStayInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 5))
	moved := 0
	for range 500 {
		g := job{ranks: 2, steps: 6 + r.IntN(40), collectives: 1, straggler: -1}
		ranks, _ := g.run(r)
		if len(MatchRanks(ranks)) < g.steps {
			moved++
		}
	}
	if t.Logf("%d of 500 moved", moved); moved > 5 {
		t.Errorf("%d of 500 moved", moved)
	}
}

// Noise as large as a significant lateness does not name a rank either: two thousand jobs without a
// straggler, some of them with few steps.
func TestChanceNamesNobody(t *testing.T) {
	r := rand.New(rand.NewPCG(34, 3))
	alarms := 0
	const jobs = 2000
	for range jobs {
		g := job{ranks: 2 + r.IntN(15), steps: 3 + r.IntN(6), collectives: 1 + r.IntN(4), noise: 0.05 + 0.15*r.Float64(), hiccup: 0.2 * r.Float64(), straggler: -1}
		ranks, _ := g.run(r)
		if g.named(ranks) >= 0 {
			alarms++
		}
	}
	if t.Logf("%d of %d", alarms, jobs); alarms >= jobs/50 {
		t.Errorf("%d of %d jobs without a straggler have one", alarms, jobs)
	}
}

// Stragglers of several sizes and noise levels, in six steps with a rare hiccup: few that cost over
// 5 % are missed, and hardly any rank is named in jobs without one.
func TestStragglersInSixNoisySteps(t *testing.T) {
	const jobs = 200
	for _, c := range []struct {
		ranks int
		noise float64
		found [3]int // at least, of a hundred with 12, 20 and 30 % more to do
	}{{2, 0.02, [3]int{80, 80, 90}}, {2, 0.05, [3]int{50, 80, 90}}, {2, 0.10, [3]int{10, 50, 80}},
		{4, 0.02, [3]int{90, 98, 99}}, {4, 0.05, [3]int{80, 95, 99}}, {4, 0.10, [3]int{18, 62, 88}},
		{8, 0.02, [3]int{95, 98, 99}}, {8, 0.05, [3]int{60, 98, 99}}, {8, 0.10, [3]int{10, 60, 98}}} {
		r := rand.New(rand.NewPCG(34, uint64(100*float64(c.ranks)+1000*c.noise)))
		alarms := 0
		var found [3]int
		for range jobs {
			g := job{ranks: c.ranks, steps: 6, collectives: 1, noise: c.noise, hiccup: 0.02, straggler: -1}
			if ranks, _ := g.run(r); g.named(ranks) >= 0 {
				alarms++
			}
			for i, extra := range []float64{0.12, 0.20, 0.30} {
				g.straggler, g.extra = r.IntN(g.ranks), extra
				ranks, _ := g.run(r)
				switch g.named(ranks) {
				case g.straggler:
					found[i]++
				case -1:
				default:
					alarms++
				}
			}
		}
		t.Logf("%d ranks, noise %.0f %%: found %d, %d, %d of %d, %d false alarms", c.ranks, 100*c.noise, found[0], found[1], found[2], jobs, alarms)
		for i, n := range found {
			if 100*n < c.found[i]*jobs {
				t.Errorf("%d ranks, noise %v: %d of %d found, case %d", c.ranks, c.noise, n, jobs, i)
			}
		}
		if alarms > jobs/40 {
			t.Errorf("%d ranks, noise %v: %d false alarms", c.ranks, c.noise, alarms)
		}
	}
}

// A rank is late or early relative to the others' median, for any last rank. Overlapping
// collectives count once.
func TestLateness(t *testing.T) {
	meet := func(number, step int, starts ...int64) *Meeting {
		m := &Meeting{Kind: "all_reduce", Number: number, Starts: starts}
		for r, at := range starts {
			m.Ranks = append(m.Ranks, r)
			m.Items = append(m.Items, Arrival{"all_reduce", "", at, at + 100, step})
		}
		return m
	}
	list := []*Meeting{
		meet(1, 0, 10, 20, 40, 90),
		meet(2, 1, 100, 130, 110, 120), meet(3, 1, 105, 125, 108, 200), // during the second one
		meet(4, 2, 300, 300, 300, 300),
		{Kind: "all_reduce", Number: 5, Ranks: []int{1, 3}, Starts: []int64{400, 430}, Items: []Arrival{{Step: 3}, {Step: 3}}},
	}
	b := Blamed(make([]Clock, 4), list)
	want := "[[-30 -25 0 0] [-20 22 0 -30] [20 -17 0 0] [70 92 0 30]]"
	if got := fmt.Sprint(b.Late); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Another rank's one bad step hides no straggler, though it is the last in it.
func TestABadStepOfAnotherRank(t *testing.T) {
	late := func(extra, bad float64) *Blame {
		noise := [][]float64{{1, -2, 0, 2, -1, 0}, {-1, 0, 2, -2, 1, 1}, {0, 1, -1, 1, -2, 2}, {2, -1, 1, 0, 0, -2}}
		for k := range noise[1] {
			noise[1][k] += extra
		}
		noise[2][3] += bad
		return &Blame{By: noise, Late: noise, ByStep: true, Steps: []int{0, 1, 2, 3, 4, 5}}
	}
	for _, c := range []struct {
		extra, bad float64
		rank       int
		want       bool
	}{{20, 0, 1, true}, {20, 30, 1, true}, {20, 30, 2, false}, {0, 30, 2, false}, {0, 0, 1, false}, {1, 0, 1, false}, {4, 0, 1, true}} {
		if p := late(c.extra, c.bad).StandsOut(c.rank); (p < 0.02) != c.want {
			t.Errorf("%+v: %v", c, p)
		}
	}
	equal := &Blame{Late: [][]float64{{0, 0, 0}, {0, 0, 0}}, ByStep: true}
	steady := &Blame{Late: [][]float64{{-5, -5, -5}, {5, 5, 5}}, ByStep: true}
	once := &Blame{Late: [][]float64{{-5}, {5}}}
	if p, q, r := equal.StandsOut(1), steady.StandsOut(1), once.StandsOut(1); p != 1 || q != 0 || r != 1 {
		t.Errorf("equal ranks %v, without any noise %v, once %v", p, q, r)
	}
}

func TestBinomialTail(t *testing.T) {
	for _, c := range []struct {
		n, k int
		p    float64
		want float64
	}{{4, 0, 0.25, 1}, {4, 1, 0.25, 1 - 0.31640625}, {4, 4, 0.25, 1.0 / 256}, {4, 2, 0.25, 0.26171875}, {0, 0, 0.5, 1}} {
		if got := binomialTail(c.n, c.k, c.p); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d of %d at %v: %v, want %v", c.k, c.n, c.p, got, c.want)
		}
	}
}

// Ends that scatter tell the clocks to within their scatter, and lateness below that is no wait.
func TestClocksSpread(t *testing.T) {
	for _, c := range []struct {
		scatter int64
		last    bool
	}{{0, true}, {10_000, true}, {400_000, true}, {600_000, false}} {
		var a, b []Arrival
		for k := range int64(9) {
			at := k * 10_000_000
			wobble := (k%3 - 1) * c.scatter
			a = append(a, Arrival{"all_reduce", "", at, at + 1_000_000, int(k)})
			b = append(b, Arrival{"all_reduce", "", at + 500_000, at + 1_000_000 + wobble, int(k)})
		}
		list := MatchRanks([][]Arrival{a, b})
		clocks := AlignRanks(2, list)
		blame := Blamed(clocks, list)
		if got := blame.Caused[1] > 0; got != c.last {
			t.Errorf("scatter of %d ns: rank 1 is waited for %v, want %v (%+v)", c.scatter, got, c.last, clocks)
		}
	}
}

// Gloo on CUDA tensors waits for the copy inside its annotation: the rank has come when that ends.
func TestArrivalIsTheEndOfTheCopy(t *testing.T) {
	th := &trace.Thread{}
	th.Calls.Add(trace.Call{Start: 50, Dur: 20, Kind: trace.CallWait})
	th.Calls.Add(trace.Call{Start: 110, Dur: 5, Kind: trace.CallLaunch})
	th.Calls.Add(trace.Call{Start: 120, Dur: 300, Kind: trace.CallWait})
	th.Calls.Add(trace.Call{Start: 600, Dur: 10, Kind: trace.CallWait})
	for _, c := range []struct{ start, end, want int64 }{{100, 500, 420}, {100, 419, 100}, {100, 420, 420}, {430, 500, 430}, {120, 420, 420}, {121, 500, 121}} {
		n := trace.Note{Span: trace.Span{Start: c.start, End: c.end}, Thread: th}
		if got := arrival(&n); got != c.want {
			t.Errorf("%s: arrives at %d, want %d", fmt.Sprint(c.start, "-", c.end), got, c.want)
		}
	}
}

// Correlated neighbours are one replicate; independent ones are two.
func TestReplicateSteps(t *testing.T) {
	for _, c := range []struct {
		series []float64
		want   int
	}{
		{[]float64{1, 1, 1, 1, 1, 1}, 1},
		{[]float64{1, 5, 1, 5, 1, 5}, 1},
		{[]float64{1, 1, 1, 5, 5, 5}, 2},
		{[]float64{1, 1, 5, 5, 5}, 1}, // too few
		{[]float64{5, 2, 1, -1, -2, 1, 0, 5, 4, 5, 6, 5}, 4},
	} {
		if got := replicateSteps(c.series); got != c.want {
			t.Errorf("%v: %d, want %d", c.series, got, c.want)
		}
	}
	// slow for five steps in a row, or in as many apart
	row := &Blame{By: [][]float64{{0, 0, 0, 1.4, 1.8, 0, 0, 0, 0, 0, 0, 0}, {5.3, 1.6, 0.6, 0, 0, 0.5, 0.4, 4.7, 4.0, 4.7, 5.7, 4.5}}, ByStep: true}
	apart := &Blame{By: [][]float64{{0, 0, 1.4, 0, 0, 0, 0, 1.8, 0, 0, 0, 0}, {5.3, 0.6, 0, 4.7, 0.5, 4.0, 1.6, 0, 4.7, 0.4, 5.7, 4.5}}, ByStep: true}
	for _, b := range []*Blame{row, apart} { // of two ranks one is as late as the other is early
		b.Late = [][]float64{make([]float64, 12), make([]float64, 12)}
		for k := range 12 {
			b.Late[1][k] = b.By[1][k] - b.By[0][k]
			b.Late[0][k] = -b.Late[1][k]
		}
	}
	if p, q := row.StandsOut(1), apart.StandsOut(1); p < 0.02 || q >= 0.02 {
		t.Errorf("in a row %v, apart %v", p, q)
	}
	if p, q := row.Exceeds(1.5), apart.Exceeds(1.5); p < 0.02 || q >= 0.02 {
		t.Errorf("waits in a row %v, apart %v", p, q)
	}
	if got := fmt.Sprint(grouped([]float64{1, 3, 5, 7, 9, 11, 13}, 3)); got != "[3 10]" {
		t.Error(got)
	}
}

// The machine's part of the waits is a late rank's excess time in operators beyond the others'.
func TestBlameWithoutTheMachine(t *testing.T) {
	b := &Blame{By: [][]float64{{4, 0}, {0, 6}}, Late: [][]float64{{4, -6}, {-4, 6}}, Caused: []float64{4, 6}, ByStep: true, Steps: []int{0, 1}}
	for _, c := range []struct {
		jitter [][]float64
		want   string
		late   string
	}{
		{nil, "[[4 0] [0 6]] [4 6]", "[[4 -6] [-4 6]]"},
		{[][]float64{{0, 0}, {0, 0}}, "[[4 0] [0 6]] [4 6]", "[[4 -6] [-4 6]]"},
		{[][]float64{{4, 0}, {0, 6}}, "[[0 0] [0 0]] [0 0]", "[[0 0] [0 0]]"},
		{[][]float64{{9, 0}, {0, 1}}, "[[0 0] [0 5]] [0 5]", "[[-5 -5] [5 5]]"},   // no more than there was; without it the other is late
		{[][]float64{{0, 6}, {4, 0}}, "[[4 0] [0 6]] [4 6]", "[[8 -12] [-8 12]]"}, // the waiting rank lost the time, which hid the delay of the other
		{[][]float64{{3, 1}, {1, 4}}, "[[2 0] [0 3]] [2 3]", "[[2 -3] [-2 3]]"},   // beyond the others
		{[][]float64{{-1, 0}, {1, 0}}, "[[4 0] [0 6]] [4 6]", "[[6 -6] [-6 6]]"},  // what it gained is no loss
		{[][]float64{{4}, {0}}, "[[4 0] [0 6]] [4 6]", "[[4 -6] [-4 6]]"},         // a step without operators
	} {
		got := b.Without(c.jitter)
		if text := fmt.Sprint(got.By, got.Caused); text != c.want {
			t.Errorf("%v: %s, want %s", c.jitter, text, c.want)
		}
		if text := fmt.Sprint(got.Late); text != c.late {
			t.Errorf("%v: late by %s, want %s", c.jitter, text, c.late)
		}
	}
	if text := fmt.Sprint(b.Late); text != "[[4 -6] [-4 6]]" {
		t.Errorf("the lateness itself has changed: %s", text)
	}
	b.ByStep = false
	if b.Without([][]float64{{4, 0}, {0, 6}}) != b {
		t.Error("collectives are no steps")
	}
}

// TestPooledNoiseNeedsMoreCertainty: three ranks whose lateness varies alike, one of them never the
// latest: Student's t of 3.707 with 6 degrees of freedom has a tail of 0.005, which counts three
// times for the pooled noise and three times for having picked one of three.
func TestPooledNoiseNeedsMoreCertainty(t *testing.T) {
	b := &Blame{Late: make([][]float64, 3)}
	for k := range 4 {
		swing := float64(1 - k%2*2)
		for r, mean := range []float64{-5, 3.707 / math.Sqrt(3), 10} {
			b.Late[r] = append(b.Late[r], mean+swing)
		}
	}
	if p := b.StandsOut(1); math.Abs(p-0.045) > 1e-4 {
		t.Errorf("chance makes the second rank late with %g, want 0.045", p)
	}
}
