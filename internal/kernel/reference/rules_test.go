package reference

import (
	"math"
	"slices"
	"testing"

	"haul/internal/kernel"
)

// TestRulesOfARoute walks by hand. Demands 3, 5, 2 with a capacity of 5: nobody stays at the depot
// while customers wait.
func TestRulesOfARoute(t *testing.T) {
	tour := NewTour(kernel.Rules{Capacity: 5}, []int32{0, 3, 5, 2})
	for step, c := range []struct {
		allowed []int
		visit   int
		left    int32 // after the visit
	}{
		{[]int{1, 2, 3}, 1, 2}, // at the depot: not the depot again
		{[]int{0, 3}, 3, 0},    // 5 is too much
		{[]int{0}, 0, 5},
		{[]int{2}, 2, 0}, // at the depot with a customer left
		{[]int{0}, 0, 5}, // all served: home
	} {
		if tour.Done() {
			t.Fatalf("done before step %d", step)
		}
		if got := tour.Allowed(); !slices.Equal(got, c.allowed) {
			t.Errorf("step %d: allowed %v, want %v", step, got, c.allowed)
		}
		tour.Visit(c.visit)
		if tour.left != c.left || tour.Node() != c.visit {
			t.Errorf("step %d: at %d with %d left, want %d", step, tour.Node(), tour.left, c.left)
		}
	}
	if !tour.Done() {
		t.Error("everyone is served and the vehicle is home, yet it is not done")
	}
	if Scored(5, false) != 5 || Scored(5, true) != 4 {
		t.Error("a forced start is not the policy's")
	}
}

// TestSampledRoutesKeepTheRules: a rollout never stays at the depot, serves everyone once, and is
// as long as its legs.
func TestSampledRoutesKeepTheRules(t *testing.T) {
	const n, width, starts = 7, 4, 6
	d := &Decoder[float64]{Proj: random(n, 3*width), Pointer: random(n, width), Graph: vector(width), Context: vector(width),
		PosX: vector(n), PosY: vector(n), Nodes: []int32{0, 3, 5, 2, 4, 1, 5}, Heads: 2, Rules: kernel.Rules{Capacity: 8}, Temperature: 2}
	for _, c := range []struct{ forced, viewed bool }{{}, {forced: true}, {viewed: true}} {
		forced := c.forced
		for instance := range uint64(40) {
			r := Routes[float64]{Steps: make([]int32, starts), Length: make([]float64, starts), LogProb: make([]float64, starts), Entropy: make([]float64, starts)}
			for range starts {
				r.Actions = append(r.Actions, make([]int32, 2*n))
			}
			Rollout(r, d, &kernel.Rollout{Choice: kernel.Sample, Forced: forced, Viewed: c.viewed, Seed: 3, Purpose: 6}, instance)
			for s, actions := range r.Actions {
				at, load, seen, length := int32(0), int32(0), map[int32]bool{}, 0.0
				for _, a := range actions[:r.Steps[s]] {
					if a == at || seen[a] && a != 0 {
						t.Fatalf("forced %v, start %d: %v goes from %d to %d", forced, s, actions, at, a)
					}
					length += math.Hypot(d.PosX[a]-d.PosX[at], d.PosY[a]-d.PosY[at])
					if load += d.Nodes[a]; a == 0 {
						load = 0
					}
					if load > d.Rules.Capacity {
						t.Fatalf("forced %v, start %d: %v carries %d", forced, s, actions, load)
					}
					at, seen[a] = a, true
				}
				if len(seen) != n || at != 0 || math.Abs(length-r.Length[s]) > 1e-12 || forced && actions[0] != int32(s+1) {
					t.Fatalf("forced %v, start %d: %v of length %v, its legs add up to %v", forced, s, actions[:r.Steps[s]], r.Length[s], length)
				}
			}
		}
	}
}

// TestAViewIsOfTheFirstStepAlone: the first decision of start s is that of a vehicle at customer
// s+1 that has served nobody, carries all and may go to any customer, that one too; from the second
// on it is seen where it is. All of them are scored, and the way is from the depot.
func TestAViewIsOfTheFirstStepAlone(t *testing.T) {
	const n, width, starts = 6, 4, 5
	d := &Decoder[float64]{Proj: random(n, 3*width), Pointer: random(n, width), Graph: vector(width), Context: vector(width),
		PosX: vector(n), PosY: vector(n), Nodes: []int32{0, 3, 5, 2, 4, 1}, Heads: 2, Rules: kernel.Rules{Capacity: 8}, Temperature: 2, Near: 0.4,
		Pair: random(n, 2*width), PairContext: vector(width)}
	own, elsewhere := 0, 0
	for instance := range uint64(30) {
		r := Routes[float64]{Steps: make([]int32, starts), Length: make([]float64, starts), LogProb: make([]float64, starts), Entropy: make([]float64, starts)}
		for range starts {
			r.Actions = append(r.Actions, make([]int32, 2*n))
		}
		Rollout(r, d, &kernel.Rollout{Choice: kernel.Sample, Viewed: true, Seed: 3, Purpose: 6}, instance)
		for s, actions := range r.Actions {
			tour := d.Depart()
			// The same decision of a decoder whose depot has what the query and the distances read of
			// customer s+1.
			there := *d
			there.Proj, there.Pair = Matrix[float64]{slices.Clone(d.Proj.Data), n, 3 * width, 3 * width}, Matrix[float64]{slices.Clone(d.Pair.Data), n, 2 * width, 2 * width}
			copy(there.Proj.Row(0)[:width], d.Proj.Row(s + 1)[:width])
			copy(there.Pair.Row(0)[:width], d.Pair.Row(s + 1)[:width])
			there.PosX, there.PosY = slices.Clone(d.PosX), slices.Clone(d.PosY)
			there.PosX[0], there.PosY[0] = d.PosX[s+1], d.PosY[s+1]
			var logProb, entropy, length float64
			for i, a := range actions[:r.Steps[s]] {
				by := d
				if i == 0 {
					by = &there
				}
				step := by.Decide(tour)
				at := slices.Index(step.Allowed, int(a))
				if i == 0 && (len(step.Allowed) != n-1 || at < 0) {
					t.Fatalf("start %d: %d customers to choose from, %d chosen", s, len(step.Allowed), a)
				}
				logProb += step.LogProb[at]
				entropy += step.Entropy
				length += math.Hypot(d.PosX[a]-d.PosX[tour.Node()], d.PosY[a]-d.PosY[tour.Node()])
				tour.Visit(int(a))
			}
			entropy /= float64(r.Steps[s])
			if math.Abs(logProb-r.LogProb[s]) > 1e-12 || math.Abs(entropy-r.Entropy[s]) > 1e-12 || math.Abs(length-r.Length[s]) > 1e-12 {
				t.Errorf("start %d: %v has log-probability %v, entropy %v and length %v; want %v, %v and %v", s, actions[:r.Steps[s]], r.LogProb[s], r.Entropy[s], r.Length[s],
					logProb, entropy, length)
			}
			if int(actions[0]) == s+1 {
				own++
			} else {
				elsewhere++
			}
		}
	}
	if own == 0 || elsewhere == 0 {
		t.Errorf("%d starts began at their own customer, %d elsewhere", own, elsewhere)
	}
}

// TestSamplingFollowsTheProbabilities: the share of the unit interval that picks a node is its
// probability; the most likely is the greedy one.
func TestSamplingFollowsTheProbabilities(t *testing.T) {
	s := &Decision[float64]{Allowed: []int{0, 2, 5, 6}, Prob: []float64{0.1, 0.4, 0.2, 0.3}, tanh: []float64{-1, 0.9, 0.9, 0.1}}
	counts := make([]float64, 4)
	const n = 1000
	for i := range n {
		counts[s.sample((float64(i)+0.5)/n)]++
	}
	for i, p := range s.Prob {
		if math.Abs(counts[i]/n-p) > 1e-9 {
			t.Errorf("node %d is drawn %v of the time, its probability is %v", s.Allowed[i], counts[i]/n, p)
		}
	}
	if s.greedy() != 1 {
		t.Errorf("greedy takes place %d", s.greedy())
	}
}

// TestDecisionByHand: one head of one column, so that every step of the formula is a number on
// paper.
func TestDecisionByHand(t *testing.T) {
	// Node | Key | Value of three nodes; at the depot with a full load customers 1 and 2 are allowed.
	d := &Decoder[float64]{Proj: Matrix[float64]{[]float64{0.5, 9, 9, 9, 0.2, 1, 9, -0.4, 3}, 3, 3, 3}, Pointer: Matrix[float64]{[]float64{9, 0.3, -0.2}, 3, 1, 1},
		Graph: []float64{0.1}, Context: []float64{0.4}, Nodes: []int32{0, 1, 1}, Heads: 1, Rules: kernel.Rules{Capacity: 4}, Temperature: 2}
	query := 0.5 + 0.1 + 0.4
	e1, e2 := math.Exp(query*0.2), math.Exp(query*-0.4)
	glimpse := (e1*1 + e2*3) / (e1 + e2)
	l1, l2 := kernel.Clip/2*math.Tanh(glimpse*0.3), kernel.Clip/2*math.Tanh(glimpse*-0.2)
	p1 := math.Exp(l1) / (math.Exp(l1) + math.Exp(l2))
	entropy := -p1*math.Log(p1) - (1-p1)*math.Log(1-p1)
	got := d.Decide(d.Depart())
	if math.Abs(got.Prob[0]-p1) > 1e-12 || math.Abs(got.LogProb[0]-math.Log(p1)) > 1e-12 || math.Abs(got.Entropy-entropy) > 1e-12 {
		t.Errorf("probabilities %v, entropy %v; want %v and %v", got.Prob, got.Entropy, p1, entropy)
	}
}

// TestAdvantageByHand: three routes of one instance against each baseline; a running one that has
// seen nothing yet teaches nothing.
func TestAdvantageByHand(t *testing.T) {
	length := []float64{3, 5, 10}
	for _, c := range []struct {
		mode           kernel.BaselineMode
		running, count float64
		base           float64
		want           []float64
	}{
		{kernel.SharedMean, 0, 0, 6, []float64{-1.5, -0.5, 2}},
		{kernel.Given, 0, 0, 4, []float64{-0.5, 0.5, 3}},
		{kernel.Running, 7, 3, 7, []float64{-2, -1, 1.5}},
		{kernel.Running, 7, 0, 6, []float64{0, 0, 0}},
	} {
		adv := []float64{9, 9, 9}
		base := Advantage(adv, length, nil, 0, 4, &kernel.Advantage{Mode: c.mode, Weight: 0.5}, c.running, c.count)
		if base != c.base || !slices.Equal(adv, c.want) {
			t.Errorf("mode %d after %v steps: baseline %v, advantages %v; want %v, %v", c.mode, c.count, base, adv, c.base, c.want)
		}
	}
	adv := make([]float64, 3)
	Advantage(adv, []float64{4, 4, 10}, nil, 0, 0, &kernel.Advantage{By: kernel.Standard, Weight: 0.5}, 0, 0)
	d := math.Sqrt(8) + kernel.SpreadFloor // differences of -2, -2 and 4
	if adv[0] != -2/d*0.5 || adv[1] != adv[0] || adv[2] != 4/d*0.5 {
		t.Errorf("advantages by the spread are %v", adv)
	}
	// Two routes of the same length, but for rounding, are not told apart.
	p := []float64{-1, -2, -3}
	Advantage(adv, []float64{4, 4.00001, 10}, p, 0, 0, &kernel.Advantage{By: kernel.Preference, Alpha: 1, Weight: 3}, 0, 0)
	sigma := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	for i, want := range []float64{-sigma(-2), -sigma(-1), sigma(-2) + sigma(-1)} {
		if math.Abs(adv[i]-want) > 1e-12 {
			t.Errorf("advantages by pairs are %v, want %v at %d", adv, want, i)
		}
	}
}

// TestLeaderAloneByHand: at equal probabilities a pair is σ(0) = 1/2 for the one and against the
// other, times 1 + Leader where one of it leads. A tie for the lead takes the weight away, also one
// with another row for the lead of all; a row's own lead is then still a lead. With a margin the
// weight is that of as many margins as the next route, which is no tie, is longer by.
func TestLeaderAloneByHand(t *testing.T) {
	for _, c := range []struct {
		name   string
		alone  bool
		margin float32
		length [][]float64 // of a group's rows
		want   [][]float64
	}{
		{"one leads", true, 0, [][]float64{{4, 5, 6}}, [][]float64{{-4 - 4, 4 - 0.5, 4 + 0.5}}},
		{"a tie, which counts", false, 0, [][]float64{{4, 4.00001, 6}}, [][]float64{{-4, -4, 4 + 4}}},
		{"a tie", true, 0, [][]float64{{4, 4.00001, 6}}, [][]float64{{-0.5, -0.5, 0.5 + 0.5}}},
		// 4 leads all, 5 its row.
		{"two rows", true, 0, [][]float64{{4, 6}, {5, 7}}, [][]float64{{-7.5 - 4 - 4, 7.5 + 0.5 - 0.5}, {4 - 0.5 - 4, 4 + 0.5 + 4}}},
		// Nobody leads all, each row has a leader.
		{"a tie between rows", true, 0, [][]float64{{4, 6}, {4, 7}}, [][]float64{{-4 - 0.5, 4 + 0.5 - 0.5}, {-0.5 - 4, 0.5 + 0.5 + 4}}},
		// 4 leads all, and in its own row; the other row has no leader.
		{"a tie in the other row", true, 0, [][]float64{{6, 4}, {5, 5}}, [][]float64{{7.5 + 0.5 + 0.5, -7.5 - 4 - 4}, {-0.5 + 4, -0.5 + 4}}},
		// A tie in the row of the lead leaves the other row's leader alone.
		{"a tie in the row that leads", true, 0, [][]float64{{4, 4}, {5, 6}}, [][]float64{{-0.5 - 0.5, -0.5 - 0.5}, {0.5 + 0.5 - 4, 0.5 + 0.5 + 4}}},
		{"a tie between rows, which counts", false, 0, [][]float64{{4, 6}, {4, 7}}, [][]float64{{-7.5 - 4, 7.5 + 4 - 0.5}, {-4 - 7.5, 4 + 0.5 + 7.5}}},
		// An eighth of 4 is a half: 5 is longer by two margins, and a pair of 4 weighs 1 + 14.
		{"by two margins", true, 0.125, [][]float64{{4, 5, 6}}, [][]float64{{-7.5 - 7.5, 7.5 - 0.5, 7.5 + 0.5}}},
		{"by half a margin", true, 0.5, [][]float64{{6, 4, 5}}, [][]float64{{2.25 + 0.5, -2.25 - 2.25, 2.25 - 0.5}}},
		{"by more than counts", true, 0.001, [][]float64{{4, 5, 6}}, [][]float64{{-18 - 18, 18 - 0.5, 18 + 0.5}}},
		{"a tie that counts, by what comes after it", false, 0.5, [][]float64{{4, 4.00001, 6}}, [][]float64{{-4, -4, 4 + 4}}},
		{"nobody is longer", false, 0.5, [][]float64{{4, 4.00001, 4}}, [][]float64{{0, 0, 0}}},
		// 4 leads all by a quarter and its row by a half, 5 its own row by two fifths.
		{"rows by margins of their own", true, 0.5, [][]float64{{4, 6}, {5, 7}},
			[][]float64{{-0.5 - 1.75 - 3.5 - 2.25 - 2.25, 0.5 + 1.75 + 3.5 + 0.5 - 0.5}, {2.25 - 0.5 - 0.5 - 2.8, 2.25 + 0.5 + 0.5 + 2.8}}},
	} {
		starts := len(c.length[0])
		lengths := slices.Concat(c.length...)
		o := &kernel.Advantage{By: kernel.Preference, Alpha: 1, Leader: 7, Alone: c.alone, Margin: c.margin, Group: len(c.length), Weight: float32(len(lengths))}
		for row, want := range c.want {
			adv := make([]float64, starts)
			Advantage(adv, lengths, make([]float64, len(lengths)), row*starts, 0, o, 0, 0)
			for i := range adv {
				if math.Abs(adv[i]-want[i]) > 1e-12 {
					t.Errorf("%s: advantages of row %d are %v, want %v", c.name, row, adv, want)
					break
				}
			}
		}
	}
}

// TestPreferenceGradient: the weights by pairs are the gradient of the pairwise loss over a group's
// routes, in which pairs of the shortest of all count more, and so do those of a row's shortest
// within it.
func TestPreferenceGradient(t *testing.T) {
	const starts, alpha = 9, 0.25
	for _, rows := range []int{1, 2, 8} {
		routes := rows * starts
		length, p, adv := vector(routes), vector(routes), make([]float64, routes)
		for i := range length {
			length[i] = 9 + length[i]
			p[i] *= 5
		}
		rowOf := func(i int) []float64 { return length[i/starts*starts:][:starts] }
		for _, leader := range []float64{0, 7} {
			o := &kernel.Advantage{By: kernel.Preference, Alpha: alpha, Leader: float32(leader), Alone: rows > 1, Group: rows, Weight: 1.0 / 4}
			for row := range rows {
				Advantage(adv[row*starts:][:starts], length, p, row*starts, 0, o, 0, 0)
			}
			differentiate(t, func() (sum float64) {
				for i := range length {
					for j := range length {
						if length[i] >= length[j] {
							continue
						}
						pair, times := math.Log1p(math.Exp(-alpha*(p[i]-p[j])))/float64(routes)/4, 1.0
						if length[i] == slices.Min(length) {
							times += leader
						}
						if rows > 1 && i/starts == j/starts && length[i] == slices.Min(rowOf(i)) {
							times += leader
						}
						sum += pair * times
					}
				}
				return sum
			}, operand{"logprob", p, adv})
		}
	}
}
