package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"haul/internal/world"
	"haul/internal/world/episodic"
	"haul/internal/world/grid"
)

// script is a forwarder that knows the shortest path: its policy returns the action for the token
// of a row.
type script struct {
	index, at []int32
	logits    []float32
	policy    func(row int, fields []int32) (action, kind int)
	turns     int
	fail      int // the turn that fails
}

func newScript(rows int, policy func(row int, fields []int32) (action, kind int)) *script {
	return &script{index: make([]int32, rows*model.TokenFields(2)), at: make([]int32, rows), logits: make([]float32, rows*(grid.NumActions+model.TokenTypes)), policy: policy}
}

func (s *script) buffers() (index, at, of []int32, logits []float32) {
	return s.index, s.at, nil, s.logits
}

var errScript = errors.New("the script has a hole")

func (s *script) inside(loop func() error) error { return loop() }

func (s *script) forward() error {
	if s.turns++; s.turns == s.fail {
		return errScript
	}
	clear(s.logits)
	width := grid.NumActions + model.TokenTypes
	for r := range s.at {
		action, kind := s.policy(r, s.index[r*model.TokenFields(2):][:model.TokenFields(2)])
		s.logits[r*width+action] = 1
		s.logits[r*width+grid.NumActions+kind] = 1
	}
	return nil
}

// The fields of a room's tokens, by place.
const (
	fieldX, fieldY = 0, 1
	fieldType      = 2 + model.AfterType
	fieldPosition  = 2 + model.AfterPosition
)

// tasks are goals as an evaluation takes them.
func tasks(goals ...grid.Goal) (out []world.Task) {
	for _, g := range goals {
		out = append(out, g)
	}
	return out
}

var testRoom = grid.Room{Size: 5, Horizon: 6}

// rememberer is a forwarder with caches as a network has them: what a row says follows from all
// that the context holds up to its token. With shares a row may carry a token of another's context.
type rememberer struct {
	script
	shares bool
	of     []int32
	caches [][]uint64
}

func newRememberer(rows, capacity int, shares bool) *rememberer {
	m := &rememberer{script: *newScript(rows, nil), shares: shares, of: make([]int32, rows)}
	for range rows {
		m.caches = append(m.caches, make([]uint64, capacity))
	}
	return m
}

func (m *rememberer) buffers() (index, at, of []int32, logits []float32) {
	if m.shares {
		return m.index, m.at, m.of, m.logits
	}
	return m.index, m.at, nil, m.logits
}

func (m *rememberer) forward() error {
	m.turns++
	cache := func(r int) []uint64 {
		if m.shares {
			return m.caches[m.of[r]]
		}
		return m.caches[r]
	}
	n, width := model.TokenFields(2), grid.NumActions+model.TokenTypes
	for r := range m.at {
		h := uint64(17)
		for _, f := range m.index[r*n:][:n] {
			h = h*31 + uint64(f+1)
		}
		cache(r)[m.at[r]] = h
	}
	for r := range m.at {
		h := uint64(1)
		for _, v := range cache(r)[:m.at[r]+1] {
			h = h*0x9e3779b97f4a7c15 + v
		}
		for k := range m.logits[r*width:][:width] {
			w := rng.At(h, uint64(k), 0, rng.Agent)
			m.logits[r*width+k] = 2 * rng.Float(w[0])
		}
	}
	return nil
}

// TestIdleRowsHelp: rows of lives that are over read the contexts of others in fewer runs of the
// network, and change nothing of what any agent does; nor does it who moves them.
func TestIdleRowsHelp(t *testing.T) {
	room := episodic.NewRoom(grid.DarkRoom, 5, 12)
	var goals []world.Task
	for i := range 12 {
		goals = append(goals, episodic.At(i%5, i/5))
	}
	for _, rules := range []contextRules{
		{observed: 2, width: 5, capacity: 2*20 + 3, compressed: true, longest: 20},
		{observed: 2, width: 5, capacity: 30, keep: 18},
	} {
		const each, episodes = 2, 15
		life := func(shares bool, parts int) (*evalBatch, *rememberer) {
			m := newRememberer(each*len(goals), rules.capacity, shares)
			c := newEvalBatch(room, goals, each, episodes, &rules, m)
			c.reset(5, temperatures{0.5, 1})
			defer c.hands(parts)()
			if err := c.toTheEnd(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			return c, m
		}
		alone, slow := life(false, 1)
		for _, parts := range []int{1, 3} {
			c, fast := life(true, parts)
			if diff := cmp.Diff(alone.returns, c.returns); diff != "" {
				t.Fatalf("in %d parts: agents earn %s", parts, diff)
			}
			if c.tokens != alone.tokens || c.regions != alone.regions || !slices.EqualFunc(c.last, alone.last, func(a, b walk) bool { return slices.Equal(a.seen[:2*(a.n+1)], b.seen[:2*(b.n+1)]) }) {
				t.Errorf("in %d parts: %d tokens, regions %+v, alone %d, %+v, or other walks", parts, c.tokens, c.regions, alone.tokens, alone.regions)
			}
			most := 0
			for i := range c.agents {
				most = max(most, c.agents[i].steps)
			}
			if fast.turns >= slow.turns || fast.turns < most {
				t.Errorf("%d runs with help, %d without, the longest life has %d steps", fast.turns, slow.turns, most)
			}
		}
	}
}

// TestCrewWalks: agents that know their goals get the optimal return in every episode, and the next
// token contains the outcome of each step.
func TestCrewWalks(t *testing.T) {
	cells := []grid.Cell{grid.At(0, 0), grid.At(2, 2), grid.At(4, 3)}
	goals := []grid.Goal{grid.Goal(cells[0]), grid.Goal(cells[1]), grid.Goal(cells[2])}
	rules := contextRules{observed: 2, width: 5, capacity: 2*7 + 3, compressed: true, longest: 7}
	const each, episodes = 2, 9
	type life struct {
		last     uint8
		hasActed bool
		cell     grid.Cell
		clock    int
	}
	lives := make([]life, len(goals)*each)
	// the highest step that a row was fed, by count of first readings
	fresh := make([]int32, len(lives))
	s := newScript(len(lives), func(r int, f []int32) (int, int) {
		if f[fieldType] != model.TypeTransition {
			return 0, model.TypeTransition
		}
		return int(grid.Towards(grid.At(int(f[fieldX]), int(f[fieldY])), cells[r/each])), model.TypeTransition
	})
	c := newEvalBatch(testRoom, tasks(goals...), each, episodes, &rules, s)
	c.reset(3, temperatures{0, 0})
	for c.live > 0 {
		if err := c.turn(); err != nil {
			t.Fatal(err)
		}
		for r := range lives {
			f, l := s.index[r*model.TokenFields(2):][:model.TokenFields(2)], &lives[r]
			if !c.agents[r].acting {
				continue
			}
			want := []int32{int32(testRoom.Start().X()), int32(testRoom.Start().Y()), -1, -1, model.TypeTransition}
			if l.hasActed {
				next := testRoom.Move(l.cell, l.last)
				reward := int32(0)
				if next == cells[r/each] {
					reward = 1
				}
				if l.clock++; l.clock == testRoom.Horizon {
					l.clock, next = 0, testRoom.Start()
				}
				l.cell = next
				want = []int32{int32(next.X()), int32(next.Y()), int32(l.last), reward, model.TypeTransition}
			} else {
				l.hasActed, l.cell = true, testRoom.Start()
			}
			if diff := cmp.Diff(want, f[:fieldPosition]); diff != "" {
				t.Fatalf("row %d, step %d is fed %s", r, fresh[r], diff)
			}
			fresh[r]++
			l.last = grid.Towards(l.cell, cells[r/each])
		}
	}
	for r, n := range fresh {
		if n != episodes*int32(testRoom.Horizon) {
			t.Errorf("row %d acted %d times", r, n)
		}
		for e := range episodes {
			if got, want := float64(c.returns[r*episodes+e]), testRoom.Optimal(goals[r/each]); got != want {
				t.Errorf("row %d earned %g in episode %d, the optimum is %g", r, got, e, want)
			}
		}
	}
	// Regions are limited to 7 transitions: 54 steps are 7 regions, and the first one prunes
	// nothing.
	life54 := episodes * testRoom.Horizon
	regions := (life54 - 1) / rules.longest
	want := regionSums{count: int64(6 * regions), forced: int64(6 * regions), sum: int64(6 * regions * 7), squares: int64(6 * regions * 49), shortest: 7, longest: 7}
	if c.regions != want {
		t.Errorf("regions %+v, want %+v", c.regions, want)
	}
	if got := c.agents[0].context.prunes; got != regions-1 {
		t.Errorf("%d prunes, want %d", got, regions-1)
	}
	if first := c.first[0]; !slices.Equal(first.seen[:4], []int32{2, 2, 1, 2}) || first.n != testRoom.Horizon {
		t.Errorf("the first episode begins with %v and has %d steps; want the centre, a step to the left, and all", first.seen[:4], first.n)
	}
}

// TestRegionsEndWhereAgentsSay: the type head ends regions, sooner than force does.
func TestRegionsEndWhereAgentsSay(t *testing.T) {
	rules := contextRules{observed: 2, width: 5, capacity: 2*10 + 3, compressed: true, longest: 10}
	s := newScript(1, func(_ int, f []int32) (int, int) {
		if f[fieldType] == model.TypeTransition && f[fieldX] == 4 {
			return int(grid.Left), model.TypeEnd // at the right wall
		}
		return int(grid.Right), model.TypeTransition
	})
	c := newEvalBatch(testRoom, tasks(grid.Goal(grid.At(0, 0))), 1, 50, &rules, s)
	c.reset(1, temperatures{0, 0})
	if err := c.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c.regions.forced != 0 || c.regions.shortest != 2 || c.regions.longest != 4 {
		t.Errorf("regions %+v", c.regions)
	}
}

// TestThousandEpisodes: a long life takes no more memory than a short one.
func TestThousandEpisodes(t *testing.T) {
	for _, rules := range []contextRules{{observed: 2, width: 5, capacity: 2*9 + 3, compressed: true, longest: 9}, {observed: 2, width: 5, capacity: 15, keep: 9}} {
		t.Run(fmt.Sprint(rules.compressed), func(t *testing.T) {
			s := newScript(4, func(r int, f []int32) (int, int) {
				if at := int(f[fieldPosition]); at >= rules.capacity {
					t.Fatalf("position %d of %d", at, rules.capacity)
				}
				return (r + int(max(0, f[fieldX]))) % grid.NumActions, int(max(0, f[fieldY])) % model.TokenTypes
			})
			c := newEvalBatch(testRoom, tasks(1, 2), 2, 1000, &rules, s)
			allocs := runtest.Allocations(1, func() {
				c.reset(7, temperatures{1, 1})
				for c.live > 0 {
					if err := c.turn(); err != nil {
						t.Fatal(err)
					}
				}
			})
			if allocs != 0 {
				t.Errorf("%v allocations in 1,000 episodes", allocs)
			}
			if p := c.agents[3].context.prunes; p < 500 {
				t.Errorf("only %d prunes", p)
			}
		})
	}
}

// TestAgentsAreIndependent: an agent's actions do not depend on the other agents.
func TestAgentsAreIndependent(t *testing.T) {
	rules := contextRules{observed: 2, width: 5, capacity: 2*9 + 3, compressed: true, longest: 9}
	policy := func(_ int, f []int32) (int, int) {
		return int(max(0, f[fieldX])) % grid.NumActions, int(max(0, f[fieldY])) % model.TokenTypes
	}
	lives := func(agents int) []float64 {
		c := newEvalBatch(testRoom, tasks(grid.Goal(grid.At(1, 2))), agents, 20, &rules, newScript(agents, policy))
		c.reset(5, temperatures{1, 1})
		if err := c.run(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		return c.returns[:3*20]
	}
	few, many := lives(3), lives(11)
	if diff := cmp.Diff(few, many); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(few[:20], few[20:40]) {
		t.Error("two agents drew the same")
	}
}

func TestCrewStops(t *testing.T) {
	rules := contextRules{observed: 2, width: 5, capacity: 8, keep: 2}
	s := newScript(1, func(int, []int32) (int, int) { return 0, 0 })
	c := newEvalBatch(testRoom, tasks(0), 1, 5, &rules, s)
	ctx, cancel := context.WithCancel(t.Context())
	c.reset(1, temperatures{0, 0})
	err := c.run(ctx, func(done, of int) {
		if of != 30 {
			t.Errorf("a life of %d steps", of)
		}
		if done == 3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || c.agents[0].steps != 3 {
		t.Errorf("%v after %d steps", err, c.agents[0].steps)
	}
	s.fail = s.turns + 2
	if err := c.run(t.Context(), nil); !errors.Is(err, errScript) {
		t.Errorf("got %v", err)
	}
}

// TestChoose compares frequencies with the softmax.
func TestChoose(t *testing.T) {
	logits := []float32{0.5, -1, 2, 2, -30}
	if k := choose(logits, 0, 0xffffffff); k != 2 {
		t.Errorf("greedy takes %d", k)
	}
	for _, temperature := range []float64{1, 0.3, 4} {
		var want [5]float64
		sum := 0.0
		for k, v := range logits {
			want[k] = math.Exp(float64(v) / temperature)
			sum += want[k]
		}
		const n = 1 << 16
		var got [5]float64
		for i := range uint64(n) {
			got[choose(logits, temperature, rng.At(9, i, 0, rng.Agent)[0])]++
		}
		for k := range got {
			p := want[k] / sum
			if d := math.Abs(got[k]/n - p); d > 5*math.Sqrt(p*(1-p)/n)+1e-9 {
				t.Errorf("temperature %g: class %d came up %.4f of the time, its probability is %.4f", temperature, k, got[k]/n, p)
			}
		}
	}
	for _, word := range []uint32{0, 1 << 31, 0xffffffff} {
		if k := choose([]float32{float32(math.Inf(-1)), 3}, 1, word); k != 1 {
			t.Errorf("an impossible class was drawn by %x", word)
		}
	}
}

func TestTheMedianAgentIsShown(t *testing.T) {
	goals := []grid.Goal{grid.Goal(testRoom.Start()), 0, 0}
	c := &evalBatch{game: testRoom, space: testRoom.Space(), agents: make([]agent, len(goals)), episodes: 2, returns: []float64{0, 0, 1, 3, 0, 0}}
	for i, g := range goals {
		c.agents[i].task = g
	}
	far := testRoom.Optimal(goals[1])
	// By return agent 0 would be first; by its share of what its goal offers it is last.
	if got := c.median([]float64{0.5 * far, 0.9 * far, far}); got != 1 {
		t.Errorf("agent %d is taken for the median, want 1", got)
	}
	c.first = make([]walk, len(goals))
	c.first[1] = walk{seen: []int32{2, 2, 1, 2, 9, 9}, n: 1}
	if e := c.episode(c.first, 1, 0); e.Goal != goals[1] || e.Return != 1 || fmt.Sprint(e.Cells) != "[[2 2] [1 2]]" {
		t.Errorf("the first episode of agent 1: goal %v, return %g, cells %v", e.Goal, e.Return, e.Cells)
	}
	if e := c.episode(c.first, 1, 1); e.Return != 3 {
		t.Errorf("the second episode of agent 1: return %g, want 3", e.Return)
	}
}
