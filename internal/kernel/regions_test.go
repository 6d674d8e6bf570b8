package kernel_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// drawSpec draws a spec that Check accepts.
func drawSpec(t *rapid.T) kernel.RegionSpec {
	s := kernel.RegionSpec{
		Streams: rapid.IntRange(1, 5).Draw(t, "streams"), Steps: rapid.IntRange(1, 120).Draw(t, "steps"), Horizon: rapid.IntRange(1, 9).Draw(t, "horizon"),
		Tokens: rapid.IntRange(1, 90).Draw(t, "tokens"), Compressed: rapid.Bool().Draw(t, "compressed"), Shortest: rapid.IntRange(1, 12).Draw(t, "shortest"),
		Ahead: rapid.IntRange(0, 6).Draw(t, "ahead"), Seed: rapid.Uint64().Draw(t, "seed"), Purpose: rng.Regions,
	}
	s.Longest = s.Shortest + rapid.IntRange(0, 30).Draw(t, "more")
	if s.Check() != nil {
		t.Skip("no sequence can be drawn")
	}
	return s
}

// traceable histories tell every transition apart: x and y count the steps of a stream, the action is its own, the reward its parity.
func traceable(s *kernel.RegionSpec) []int32 {
	out := make([]int32, s.Streams*s.Steps)
	for i := range out {
		stream, step := int32(i/s.Steps), int32(i%s.Steps)
		out[i] = step&0xff | stream<<8 | (step*7+stream)%5<<16 | step%2<<24
	}
	return out
}

type row struct{ index, labels, first []int32 }

func newRow(tokens int) row {
	return row{make([]int32, tokens*kernel.TokenFields), make([]int32, tokens*2), make([]int32, tokens)}
}

func (r row) token(i int) []int32 { return r.index[i*kernel.TokenFields:][:kernel.TokenFields] }

// TestRowIsWhatTheSpecSays reads every row back and compares it with the history it came from.
func TestRowIsWhatTheSpecSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpec(t)
		history, r := traceable(&s), newRow(s.Tokens)
		for _, all := range [][]int32{r.index, r.labels, r.first} {
			for i := range all {
				all[i] = -77 // nothing may be left of it
			}
		}
		s.Row(r.index, r.labels, r.first, history, rapid.Uint64().Draw(t, "row"))
		if slices.Contains(r.index, -77) || slices.Contains(r.labels, -77) || slices.Contains(r.first, -77) {
			t.Fatalf("the row is not full: %v", r)
		}
		for from := 0; from < s.Tokens; {
			to := from
			for to < s.Tokens && int(r.first[to]) == from {
				if position := r.token(to)[kernel.FieldPosition]; int(position) != to-from {
					t.Fatalf("token %d of the sequence from %d has position %d", to, from, position)
				}
				to++
			}
			if to == from {
				t.Fatalf("token %d begins no sequence and belongs to none: %v", from, r.first)
			}
			readSequence(t, &s, history, r, from, to)
			from = to
		}
	})
}

// stretch is a region as it was read back; whole says that its end was not cut off.
type stretch struct {
	stream, at, n int
	whole         bool
}

func readSequence(t *rapid.T, s *kernel.RegionSpec, history []int32, r row, from, to int) {
	var regions []stretch
	open := false
	for i := from; i < to; i++ {
		token, action, next := r.token(i), r.labels[2*i], r.labels[2*i+1]
		if token[kernel.FieldType] != kernel.TypeTransition {
			if !s.Compressed || slices.Max(token[:kernel.FieldType]) != -1 || action != -1 || next != -1 {
				t.Fatalf("marker %v with labels %d, %d", token, action, next)
			}
			if start := token[kernel.FieldType] == kernel.TypeStart; start == open {
				t.Fatalf("token %d: a region within a region, or an end without one", i)
			}
			if open = !open; open {
				regions = append(regions, stretch{stream: -1})
			} else {
				regions[len(regions)-1].whole = true
			}
			continue
		}
		if !s.Compressed && len(regions) == 0 {
			regions = append(regions, stretch{stream: -1})
		} else if s.Compressed && !open {
			t.Fatalf("token %d: a transition outside of a region", i)
		}
		g := &regions[len(regions)-1]
		stream, step := int(token[kernel.FieldY]), int(token[kernel.FieldX])
		if g.n == 0 {
			g.stream, g.at = stream, step
		}
		if stream != g.stream || step != g.at+g.n {
			t.Fatalf("token %d is step %d of stream %d, in a region from step %d of stream %d", i, step, stream, g.at, g.stream)
		}
		g.n++
		checkTransition(t, s, history, r, i, to, stream, step)
	}
	checkRegions(t, s, regions, to == s.Tokens)
}

func checkTransition(t *rapid.T, s *kernel.RegionSpec, history []int32, r row, i, to, stream, step int) {
	token, at := r.token(i), stream*s.Steps+step
	lastAction, lastReward := int32(-1), int32(-1)
	if step > 0 {
		lastAction, lastReward = history[at-1]>>16&0xff, history[at-1]>>24
	}
	if token[kernel.FieldAction] != lastAction || token[kernel.FieldReward] != lastReward {
		t.Fatalf("token %d: last action %d and reward %d, the history has %d and %d", i, token[kernel.FieldAction], token[kernel.FieldReward], lastAction, lastReward)
	}
	if want := history[at] >> 16 & 0xff; r.labels[2*i] != want {
		t.Fatalf("token %d: action label %d, the history has %d", i, r.labels[2*i], want)
	}
	next := r.labels[2*i+1]
	switch {
	case !s.Compressed && next != -1:
		t.Fatalf("token %d: type label %d without compression", i, next)
	case s.Compressed && i+1 < to && next != r.token(i + 1)[kernel.FieldType]:
		t.Fatalf("token %d: type label %d, a %d follows", i, next, r.token(i + 1)[kernel.FieldType])
	case s.Compressed && next != kernel.TypeTransition && next != kernel.TypeEnd:
		t.Fatalf("token %d: type label %d", i, next)
	}
}

// checkRegions holds a sequence's regions to the spec; the last of a row may be cut off.
func checkRegions(t *rapid.T, s *kernel.RegionSpec, regions []stretch, last bool) {
	wanted := 1
	if s.Compressed {
		wanted = 2
	}
	if len(regions) > wanted || len(regions) < wanted && !last {
		t.Fatalf("%d regions in a sequence, want %d: %+v", len(regions), wanted, regions)
	}
	for k, g := range regions {
		switch {
		case g.n == 0 && !last:
			t.Fatalf("an empty region: %+v", regions)
		case g.n == 0:
			continue
		case g.at%s.Horizon != 0 || g.at+g.n > s.Steps || g.stream >= s.Streams:
			t.Fatalf("region %+v does not begin with an episode or leaves its stream", g)
		case s.Compressed && g.whole && (g.n < s.Shortest || g.n > s.Longest || (g.n-s.Shortest)%s.Horizon != 0):
			t.Fatalf("region %+v: want %d to %d transitions in steps of %d", g, s.Shortest, s.Longest, s.Horizon)
		case s.Compressed && !g.whole && (!last || k != len(regions)-1):
			t.Fatalf("region %+v has no end", g)
		case k == 1:
			before := regions[0]
			gap := g.at/s.Horizon - (before.at+before.n+s.Horizon-1)/s.Horizon
			if g.stream != before.stream || gap < 0 || gap > s.Ahead {
				t.Fatalf("region %+v after %+v: want the same stream and 0 to %d episodes between", g, before, s.Ahead)
			}
		}
	}
}

// TestEveryChoiceIsDrawn: all lengths, gaps, streams and first episodes come up.
func TestEveryChoiceIsDrawn(t *testing.T) {
	s := kernel.RegionSpec{Streams: 3, Steps: 12, Horizon: 2, Tokens: 40, Compressed: true, Shortest: 2, Longest: 5, Ahead: 2, Seed: 1, Purpose: rng.Regions}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	history, r := traceable(&s), newRow(s.Tokens)
	type choice struct{ stream, at, previous, next, current int32 }
	seen := map[choice]bool{}
	for g := range uint64(4000) {
		s.Row(r.index, r.labels, r.first, history, g)
		end := slices.IndexFunc(r.first, func(f int32) bool { return f > 0 })
		var starts []int
		for i := range end {
			if r.token(i)[kernel.FieldType] == kernel.TypeStart {
				starts = append(starts, i)
			}
		}
		a, b := r.token(starts[0]+1), r.token(starts[1]+1)
		seen[choice{a[kernel.FieldY], a[kernel.FieldX], int32(starts[1] - 2), b[kernel.FieldX], int32(end - starts[1] - 2)}] = true
	}
	// Regions of 1 or 2 episodes among 6: for each pair of lengths, each first episode, each gap of at most 2.
	want := 0
	for previous := 1; previous <= 2; previous++ {
		for current := 1; current <= 2; current++ {
			for e := 0; e+previous+current <= 6; e++ {
				want += s.Streams * (min(s.Ahead, 6-e-previous-current) + 1)
			}
		}
	}
	if len(seen) != want {
		t.Errorf("%d choices came up in 4,000 rows, want all %d", len(seen), want)
	}
}

// TestRowStandsAlone: a row is a function of its index, whatever was drawn before it, and takes no memory.
func TestRowStandsAlone(t *testing.T) {
	s := kernel.RegionSpec{Streams: 3, Steps: 200, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 20, Longest: 80, Ahead: 1, Seed: 5, Purpose: rng.Regions}
	history, a, b := traceable(&s), newRow(s.Tokens), newRow(s.Tokens)
	var forward [][]int32
	for g := range uint64(20) {
		s.Row(a.index, a.labels, a.first, history, g)
		forward = append(forward, slices.Concat(a.index, a.labels, a.first))
	}
	for g := 19; g >= 0; g-- {
		s.Row(b.index, b.labels, b.first, history, uint64(g))
		if !slices.Equal(slices.Concat(b.index, b.labels, b.first), forward[g]) {
			t.Fatalf("row %d differs when drawn in another order", g)
		}
	}
	if slices.Equal(forward[0], forward[1]) {
		t.Error("rows 0 and 1 are equal")
	}
	if n := testing.AllocsPerRun(10, func() { s.Row(a.index, a.labels, a.first, history, 3) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

func TestRegionSpecCheck(t *testing.T) {
	good := kernel.RegionSpec{Streams: 1, Steps: 100, Horizon: 10, Tokens: 50, Compressed: true, Shortest: 20, Longest: 50}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(s *kernel.RegionSpec){
		"0 streams":                             func(s *kernel.RegionSpec) { s.Streams = 0 },
		"horizon 0 and 50 tokens":               func(s *kernel.RegionSpec) { s.Horizon = 0 },
		"horizon 10 and 0 tokens":               func(s *kernel.RegionSpec) { s.Tokens = 0 },
		"a context of 101 transitions":          func(s *kernel.RegionSpec) { s.Compressed, s.Tokens = false, 101 },
		"regions of 0 to 50 transitions":        func(s *kernel.RegionSpec) { s.Shortest = 0 },
		"regions of 20 to 19 transitions":       func(s *kernel.RegionSpec) { s.Longest = 19 },
		"-1 episodes ahead":                     func(s *kernel.RegionSpec) { s.Ahead = -1 },
		"two regions of 60 transitions":         func(s *kernel.RegionSpec) { s.Longest = 69 },
		"do not fit into a stream of 99":        func(s *kernel.RegionSpec) { s.Steps = 99 },
		"longer than a stream, which has 99":    func(s *kernel.RegionSpec) { s.Compressed, s.Tokens, s.Steps = false, 91, 99 },
		"learning histories: a context of 1000": func(s *kernel.RegionSpec) { s.Compressed, s.Tokens = false, 1000 },
	} {
		s := good
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v; want one line with %q", s, err, want)
		}
	}
}
