package agent

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"haul/internal/rng"
	"haul/internal/run/runtest"
	"haul/internal/world"
	"haul/internal/world/history"
)

// levers is a world that is no grid: four levers. One gives 2.5 and ends the episode,
// the others cost 1. Its observation has five fields, its records have two words.
type levers struct{ history.History }

const leverTries = 3 // of an episode

type lever int

func (l lever) String() string               { return fmt.Sprint("lever ", int(l)) }
func (l lever) MarshalJSON() ([]byte, error) { return json.Marshal(int(l)) }

func (levers) String() string               { return "row of levers" }
func (levers) MarshalJSON() ([]byte, error) { return []byte(`{"env":"levers"}`), nil }
func (levers) Name() string                 { return "levers" }
func (levers) Describe() string             { return "four levers, three tries" }
func (levers) Limit() int                   { return leverTries }
func (levers) Best(world.Task) float64      { return 2.5 }

func (levers) Space() world.Space {
	return world.Space{Fields: []world.Field{{Name: "try", Size: leverTries}, {Name: "a", Size: 2}, {Name: "b", Size: 7}, {Name: "c", Size: 1}, {Name: "d", Size: 256}},
		Actions: 4, Rewards: []float64{-1, 2.5}}
}

func (levers) NewEnv(t world.Task) world.Env { return &pulls{pays: int(t.(lever))} }

type pulls struct{ pays, try int }

func (p *pulls) Reset() { p.try = 0 }

func (p *pulls) Observe(f []int32) { copy(f, []int32{int32(p.try), int32(p.try % 2), 6, 0, 255}) }

func (p *pulls) Step(action int) (int, bool) {
	p.try++
	if action == p.pays {
		return 1, true
	}
	return 0, p.try == leverTries
}

// The histories: learners that pull at random at first and know their lever in the end. Streams are
// of equal episodes, so that a learner goes on to its third try.
func (levers) World() world.World         { return levers{} }
func (levers) Tasks() []world.Task        { return []world.Task{lever(0), lever(1), lever(2), lever(3)} }
func (levers) Split() (train, test []int) { return []int{0, 1, 2}, []int{3} }
func (levers) Size() (streams, steps int) { return 8, 120 }
func (levers) Curve(int) []float64        { return make([]float64, 120/leverTries) }
func (levers) Close() error               { return nil }

func (w levers) Pack(tasks []int, streams, steps int) (*history.Data, error) {
	words := w.Space().Words()
	out := make([]int32, 0, len(tasks)*streams*steps*words)
	for _, task := range tasks {
		for s := range streams {
			for t := range steps {
				draw := rng.At(5, uint64(task*streams+s), uint32(t), rng.Learner)
				action := int(rng.Below(draw[0], 4))
				if int(rng.Below(draw[1], 60)) < t {
					action = task
				}
				paid := 0
				if action == task {
					paid = 1
				}
				record := make([]int32, words)
				for b, v := range []int{t % leverTries, t % leverTries % 2, 6, 0, 255, action, paid} {
					record[b/4] |= int32(v) << (8 * (b % 4))
				}
				out = append(out, record...)
			}
		}
	}
	return &history.Data{Words: out}, nil
}

// TestAnyWorld: a world of five fields, four actions and rewards that are no bits is trained and
// played by what it declares, on histories that the device keeps and that the host feeds.
func TestAnyWorld(t *testing.T) {
	if err := (levers{}).Space().Check(); err != nil {
		t.Fatal(err)
	}
	c := tinyAD(t, "train_n_stream=8", "train_source_timesteps=120", "train_timesteps=150", "train_batch_size=16", "eval_agents=40", "gen_interval=150", "tf_n_embd=16",
		"compress_interval=9", "compress_min=3", "n_transit=22")
	var before *runtest.State
	for _, data := range []string{DataDevice, DataHost} {
		heard, state := trained(t, c, openCPU(t, 2), levers{}, data)
		if before != nil && !maps.Equal(before.Tensors, state.Tensors) {
			t.Error("histories on the device and on the host end in other weights")
		}
		before = state
		rows := runtest.Rows[Evaluation](heard)
		e := rows[len(rows)-1]
		if e.Env != "levers" || e.Optimal != 2.5 || e.Goals[0].Goal != lever(3) || e.Size != 0 {
			t.Errorf("the evaluation tells of another world: %+v", e)
		}
		if n := len(e.LastEpisode.Cells); n < 2 || n > leverTries+1 || len(e.LastEpisode.Cells[0]) != 5 {
			t.Errorf("the last episode has %d observations: %v", n, e.LastEpisode.Cells)
		}
		for i, v := range e.Return {
			if v < -leverTries || v > 2.5 {
				t.Errorf("episode %d returns %g on average", i, v)
			}
		}
	}
}

// puller is a policy that always pulls the same lever.
type puller struct {
	lever     int
	index, at []int32
	logits    []float32
}

func (p *puller) buffers() (index, at, of []int32, logits []float32) {
	return p.index, p.at, nil, p.logits
}

func (p *puller) inside(loop func() error) error { return loop() }

func (p *puller) forward() error {
	clear(p.logits)
	p.logits[p.lever] = 1
	return nil
}

// TestAnEpisodeEndsWhenItsWorldSays: who pulls the lever that pays is paid and begins again; who
// pulls another has three tries, and each costs what the world says.
func TestAnEpisodeEndsWhenItsWorldSays(t *testing.T) {
	rules := contextRules{observed: 5, width: 8, capacity: 9, keep: 3}
	for _, c := range []struct {
		lever, steps int
		paid         float64
	}{{3, 4, 2.5}, {1, 12, -3}} {
		net := &puller{lever: c.lever, index: make([]int32, 9), at: make([]int32, 1), logits: make([]float32, 4+3)}
		b := newEvalBatch(levers{}, []world.Task{lever(3)}, 1, 4, &rules, net)
		b.reset(1, temperatures{0, 0})
		if err := b.run(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if b.lived() != c.steps || b.last[0].n != c.steps/4 {
			t.Errorf("lever %d: %d steps, %d in the last episode; want %d in four equal ones", c.lever, b.lived(), b.last[0].n, c.steps)
		}
		for e, paid := range b.returns {
			if paid != c.paid {
				t.Errorf("lever %d: episode %d returns %g, want %g", c.lever, e, paid, c.paid)
			}
		}
		if want := fmt.Sprint([]int32{0, 0, 6, 0, 255, int32(c.lever), int32(max(0, c.lever-2)), 0}); fmt.Sprint(net.index[:8]) != want && c.lever == 3 {
			t.Errorf("the last token is %v, want %v", net.index[:8], want)
		}
	}
}
