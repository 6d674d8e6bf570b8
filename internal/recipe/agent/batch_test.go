package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/run/runtest"
	"haul/internal/world"
)

// script is a forwarder that knows the way: its policy sees the token a row is fed and says what to
// do.
type script struct {
	index, at []int32
	logits    []float32
	policy    func(row int, fields []int32) (action, kind int)
	turns     int
	fail      int // the turn that fails
}

func newScript(rows int, policy func(row int, fields []int32) (action, kind int)) *script {
	return &script{index: make([]int32, rows*model.TokenFields), at: make([]int32, rows), logits: make([]float32, rows*(world.NumActions+model.TokenTypes)), policy: policy}
}

func (s *script) buffers() (index, at []int32, logits []float32) { return s.index, s.at, s.logits }

var errScript = errors.New("the script has a hole")

func (s *script) forward() error {
	if s.turns++; s.turns == s.fail {
		return errScript
	}
	clear(s.logits)
	width := world.NumActions + model.TokenTypes
	for r := range s.at {
		action, kind := s.policy(r, s.index[r*model.TokenFields:][:model.TokenFields])
		s.logits[r*width+action] = 1
		s.logits[r*width+world.NumActions+kind] = 1
	}
	return nil
}

var testRoom = world.Room{Size: 5, Horizon: 6}

// TestCrewWalks: agents that know their goals earn the optimum in every episode, and are told of
// each step's outcome in the next token.
func TestCrewWalks(t *testing.T) {
	cells := []world.Cell{world.At(0, 0), world.At(2, 2), world.At(4, 3)}
	goals := []world.Goal{world.Goal(cells[0]), world.Goal(cells[1]), world.Goal(cells[2])}
	rules := contextRules{capacity: 2*7 + 3, compressed: true, longest: 7}
	const each, episodes = 2, 9
	type life struct {
		last  uint8
		begun bool
		cell  world.Cell
		clock int
	}
	lives := make([]life, len(goals)*each)
	// the highest step that a row was fed, by count of first readings
	fresh := make([]int32, len(lives))
	s := newScript(len(lives), func(r int, f []int32) (int, int) {
		if f[model.FieldType] != model.TypeTransition {
			return 0, model.TypeTransition
		}
		return int(world.Towards(world.At(int(f[model.FieldX]), int(f[model.FieldY])), cells[r/each])), model.TypeTransition
	})
	c := newEvalBatch(testRoom, goals, each, episodes, &rules, s)
	c.reset(3, 0)
	for c.live > 0 {
		if err := c.turn(); err != nil {
			t.Fatal(err)
		}
		for r := range lives {
			f, l := s.index[r*model.TokenFields:][:model.TokenFields], &lives[r]
			if !c.agents[r].acting {
				continue
			}
			want := []int32{int32(testRoom.Start().X()), int32(testRoom.Start().Y()), -1, -1, model.TypeTransition}
			if l.begun {
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
				l.begun, l.cell = true, testRoom.Start()
			}
			if diff := cmp.Diff(want, f[:model.FieldPosition]); diff != "" {
				t.Fatalf("row %d, step %d is fed %s", r, fresh[r], diff)
			}
			fresh[r]++
			l.last = world.Towards(l.cell, cells[r/each])
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
	// Regions of 7 are ended by force: 54 steps are 7 regions, the first of which prunes nothing.
	life54 := episodes * testRoom.Horizon
	regions := (life54 - 1) / rules.longest
	want := regionSums{count: int64(6 * regions), forced: int64(6 * regions), sum: int64(6 * regions * 7), squares: int64(6 * regions * 49), shortest: 7, longest: 7}
	if c.regions != want {
		t.Errorf("regions %+v, want %+v", c.regions, want)
	}
	if got := c.agents[0].context.prunes; got != regions-1 {
		t.Errorf("%d prunes, want %d", got, regions-1)
	}
	if first := c.first[0]; first.Cell() != testRoom.Start() || first.Action() != world.Left {
		t.Errorf("the first episode begins with %v, action %d", first.Cell(), first.Action())
	}
}

// TestRegionsEndWhereAgentsSay: the type head ends regions, sooner than force does.
func TestRegionsEndWhereAgentsSay(t *testing.T) {
	rules := contextRules{capacity: 2*10 + 3, compressed: true, longest: 10}
	s := newScript(1, func(_ int, f []int32) (int, int) {
		if f[model.FieldType] == model.TypeTransition && f[model.FieldX] == 4 {
			return int(world.Left), model.TypeEnd // at the right wall
		}
		return int(world.Right), model.TypeTransition
	})
	c := newEvalBatch(testRoom, []world.Goal{world.Goal(world.At(0, 0))}, 1, 50, &rules, s)
	c.reset(1, 0)
	if err := c.run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if c.regions.forced != 0 || c.regions.shortest != 2 || c.regions.longest != 4 {
		t.Errorf("regions %+v", c.regions)
	}
}

// TestThousandEpisodes: a long life takes no more memory than a short one.
func TestThousandEpisodes(t *testing.T) {
	for _, rules := range []contextRules{{capacity: 2*9 + 3, compressed: true, longest: 9}, {capacity: 15, keep: 9}} {
		t.Run(fmt.Sprint(rules.compressed), func(t *testing.T) {
			s := newScript(4, func(r int, f []int32) (int, int) {
				if at := int(f[model.FieldPosition]); at >= rules.capacity {
					t.Fatalf("position %d of %d", at, rules.capacity)
				}
				return (r + int(max(0, f[model.FieldX]))) % world.NumActions, int(max(0, f[model.FieldY])) % model.TokenTypes
			})
			c := newEvalBatch(testRoom, []world.Goal{1, 2}, 2, 1000, &rules, s)
			allocs := runtest.Allocations(1, func() {
				c.reset(7, 1)
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

// TestAgentsAreIndependent: an agent does the same whoever else lives beside it.
func TestAgentsAreIndependent(t *testing.T) {
	rules := contextRules{capacity: 2*9 + 3, compressed: true, longest: 9}
	policy := func(_ int, f []int32) (int, int) {
		return int(max(0, f[model.FieldX])) % world.NumActions, int(max(0, f[model.FieldY])) % model.TokenTypes
	}
	lives := func(agents int) []int32 {
		c := newEvalBatch(testRoom, []world.Goal{world.Goal(world.At(1, 2))}, agents, 20, &rules, newScript(agents, policy))
		c.reset(5, 1)
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
	rules := contextRules{capacity: 8, keep: 2}
	s := newScript(1, func(int, []int32) (int, int) { return 0, 0 })
	c := newEvalBatch(testRoom, []world.Goal{0}, 1, 5, &rules, s)
	ctx, cancel := context.WithCancel(t.Context())
	c.reset(1, 0)
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
	goals := []world.Goal{world.Goal(testRoom.Start()), 0, 0}
	c := &evalBatch{room: testRoom, agents: make([]agent, len(goals))}
	for i, g := range goals {
		c.agents[i].goal = g
	}
	far := testRoom.Optimal(goals[1])
	// By return agent 0 would be first; by its share of what its goal offers it is last.
	if got := c.median([]float64{0.5 * far, 0.9 * far, far}); got != 1 {
		t.Errorf("agent %d is taken for the median, want 1", got)
	}
	c.first = make([]world.Step, len(goals)*testRoom.Horizon)
	for i := range c.first {
		c.first[i] = world.MakeStep(testRoom.Start(), world.Stay, uint8(i/testRoom.Horizon%2))
	}
	if e := c.episode(c.first, 1); len(e.Cells) != testRoom.Horizon+1 {
		t.Errorf("an episode of %d steps was on %d cells", testRoom.Horizon, len(e.Cells))
	}
	if e := c.episode(c.first, 1); e.Goal != goals[1] || e.Return != testRoom.Horizon {
		t.Errorf("episode of agent 1: goal %v, return %d", e.Goal, e.Return)
	}
}
