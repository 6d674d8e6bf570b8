package xland

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"

	"haul/internal/rng"
	"haul/internal/world"
)

// EnvName is the name of the world in files and checkpoints.
const EnvName = "xland"

// MaxSize is the largest side.
const MaxSize = 64

// World is a layout with a view size, a time limit in steps, and the tasks that are played in it.
type World struct {
	Env     string `json:"env"` // EnvName
	Layout  Layout `json:"layout"`
	Size    int    `json:"size"`
	View    int    `json:"view"`
	Opaque  bool   `json:"opaque,omitempty"` // walls and closed doors hide the cells behind them
	Horizon int    `json:"horizon"`
	Tasks   Tasks  `json:"tasks"`

	shared *sharedParts
}

// Tasks are a benchmark's rulesets: drawn by name and seed, or listed.
type Tasks struct {
	Name string `json:"name"`
	Seed uint32 `json:"seed"`
	// IDs and Listed are the used rulesets of a file: their indices in it, and their contents.
	IDs    []int64  `json:"ids,omitempty"`
	Listed [][]byte `json:"listed,omitempty"`
}

// sharedParts is the data that environments of one world share.
type sharedParts struct {
	room     *room
	rewards  []float64
	group    int // number of consecutive steps with the same reward value
	mu       sync.Mutex
	sampler  *Sampler
	drawn    []byte             // rulesets drawn so far, encoded in equal lengths
	each     int                // bytes per ruleset
	listed   map[int64]*Ruleset // by index in a file
	programs map[int64]*program
}

var worldName = regexp.MustCompile(`^(?:XLand-MiniGrid-)?(R[0-9])-([0-9]{1,3})x([0-9]{1,3})$`)

// New returns the environment with the Python package's name, XLand-MiniGrid-R1-9x9 or R1-9x9, and
// the package's defaults: a view of 5 by 5 that sees through walls, and 3·height·width steps.
func New(name string, tasks Tasks) (World, error) {
	m := worldName.FindStringSubmatch(name)
	if m == nil {
		return World{}, fmt.Errorf("%q is no environment: write XLand-MiniGrid-R1-9x9 or R4-13x13, for one room of 9 by 9 cells or four of 13 by 13", name)
	}
	size, _ := strconv.Atoi(m[2]) // cannot fail: a few digits
	if m[2] != m[3] {
		return World{}, fmt.Errorf("%s: rooms are squares", name)
	}
	w := World{Env: EnvName, Layout: Layout(m[1]), Size: size, View: 5, Horizon: 3 * size * size, Tasks: tasks}
	return w, w.Check()
}

// Check returns an error if a value is out of range. Otherwise it prepares the world for use.
func (w *World) Check() error {
	switch {
	case w.Env != EnvName:
		return fmt.Errorf("a world of the kind %q: want %s", w.Env, EnvName)
	case w.View < MinView || w.View > MaxView || w.View%2 == 0:
		return fmt.Errorf("a view of %d by %d cells: want 3, 5 or 7", w.View, w.View)
	case w.Horizon < 1 || w.Horizon > 1<<16:
		return fmt.Errorf("a limit of %d steps: want 1 to %d", w.Horizon, 1<<16)
	case len(w.Tasks.IDs) != len(w.Tasks.Listed):
		return fmt.Errorf("%d rulesets with %d numbers", len(w.Tasks.Listed), len(w.Tasks.IDs))
	}
	if err := w.Layout.check(w.Size); err != nil {
		return err
	}
	p := &sharedParts{room: newRoom(w), programs: map[int64]*program{}}
	p.group = (w.Horizon + world.MaxRewards - 2) / (world.MaxRewards - 1)
	p.rewards = []float64{0}
	for left := 0; left < w.Horizon; left += p.group {
		p.rewards = append(p.rewards, float64(p.room.rewards[max(1, w.Horizon-left-p.group/2)]))
	}
	if w.Tasks.Listed == nil {
		var err error
		if p.sampler, err = NewSampler(w.Tasks.Name, w.Tasks.Seed); err != nil {
			return err
		}
		if _, most := Recipes[w.Tasks.Name].most(); most >= p.room.cells() {
			return fmt.Errorf("%d objects of %s and an agent in %s-%dx%d, which has %d free cells", most, w.Tasks.Name, w.Layout, w.Size, w.Size, p.room.cells())
		}
	} else {
		p.listed = map[int64]*Ruleset{}
		for i, data := range w.Tasks.Listed {
			r, err := parseRuleset(data)
			if err == nil {
				err = r.Check(w.Size)
			}
			if err == nil && len(r.Tiles) >= p.room.cells() {
				err = fmt.Errorf("%d objects and an agent in %d free cells", len(r.Tiles), p.room.cells())
			}
			if err != nil {
				return fmt.Errorf("ruleset %d: %w", w.Tasks.IDs[i], err)
			}
			if p.listed[w.Tasks.IDs[i]] != nil {
				return fmt.Errorf("ruleset %d appears twice", w.Tasks.IDs[i])
			}
			p.listed[w.Tasks.IDs[i]] = r
		}
	}
	w.shared = p
	return nil
}

// cells returns the number of cells that objects can be placed on.
func (r *room) cells() int {
	n := 0
	for _, t := range r.blank {
		if can[t]&free != 0 {
			n++
		}
	}
	return n
}

// Parse reads a world as files and checkpoints store it.
func Parse(text []byte) (World, error) {
	var w World
	if err := json.Unmarshal(text, &w); err != nil {
		return w, err
	}
	return w, w.Check()
}

func (w World) String() string {
	return fmt.Sprintf("XLand-MiniGrid-%s-%dx%d of %s tasks, a view of %d×%d, %d steps at most", w.Layout, w.Size, w.Size, w.Tasks.Name, w.View, w.View, w.Horizon)
}

// Name returns EnvName.
func (w World) Name() string { return EnvName }

// Describe returns a description of the world.
func (w World) Describe() string {
	text := w.String()
	if w.shared.group > 1 {
		text += fmt.Sprintf(", rewards rounded to %d values", len(w.shared.rewards))
	}
	return text
}

// Space returns the observations, actions and rewards: a field per cell of the view, with kind and
// colour as one number. If the horizon has more steps than a reward can have values, neighbouring
// rewards share a value.
func (w World) Space() world.Space {
	s := world.Space{Actions: int(NumActions), Rewards: w.shared.rewards}
	for i := range w.View * w.View {
		s.Fields = append(s.Fields, world.Field{Name: fmt.Sprintf("r%dc%d", i/w.View, i%w.View), Size: NumTiles})
	}
	return s
}

// Limit returns the largest number of steps of an episode.
func (w World) Limit() int { return w.Horizon }

// Best returns the reward of reaching the goal in one step. If the objects are further away, no
// episode reaches it.
func (w World) Best(world.Task) float64 { return slices.Max(w.shared.rewards) }

// ID is a task: the index of a ruleset in its benchmark.
type ID int64

func (i ID) String() string { return "ruleset " + strconv.FormatInt(int64(i), 10) }

// MarshalJSON writes the number.
func (i ID) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(i), 10), nil }

// maxDrawn limits the rulesets of a drawn benchmark, which must be drawn in sequence.
const maxDrawn = 1_000_000

// Ruleset returns the ruleset of a task.
func (w World) Ruleset(id ID) (*Ruleset, error) {
	p := w.shared
	if p.listed != nil {
		if r := p.listed[int64(id)]; r != nil {
			return r, nil
		}
		return nil, fmt.Errorf("no ruleset %d among the %d of %s", id, len(p.listed), w.Tasks.Name)
	}
	if id < 0 || id >= maxDrawn {
		return nil, fmt.Errorf("ruleset %d of %s: want 0 to %d", id, w.Tasks.Name, maxDrawn-1)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.each == 0 || int64(len(p.drawn)) <= int64(id)*int64(p.each) {
		data := p.sampler.Next().bytes()
		p.drawn, p.each = append(p.drawn, data...), len(data)
	}
	return parseRuleset(p.drawn[int(id)*p.each:][:p.each])
}

// CheckTask returns an error if the world has no task with this number.
func (w World) CheckTask(id int64) error {
	_, err := w.Ruleset(ID(id))
	return err
}

// program returns a decoded task. It is decoded once.
func (w World) program(id ID) *program {
	r, err := w.Ruleset(id)
	if err != nil {
		panic("xland: " + err.Error())
	}
	p := w.shared
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.programs[int64(id)] == nil {
		p.programs[int64(id)] = r.compile()
	}
	return p.programs[int64(id)]
}

// NewState returns an environment of a task. It is valid after Seed.
func (w World) NewState(id ID) *State {
	s := &State{room: w.shared.room, task: w.program(id)}
	s.grid = make([]Tile, len(s.room.blank))
	s.draws = make([]draw, 0, len(s.task.tiles)+1)
	return s
}

// NewEnv returns an environment of a task.
func (w World) NewEnv(t world.Task) world.Env {
	e := &Env{State: w.NewState(t.(ID)), shared: w.shared}
	e.Seed(0, uint64(t.(ID)))
	return e
}

// Env is a State as a world.Env.
type Env struct {
	*State
	shared *sharedParts
}

// Seed begins the first episode. The starts of all episodes follow from seed and life.
func (e *Env) Seed(seed, life uint64) {
	w := rng.At(seed, life, 0, rng.Starts)
	e.State.Seed(rng.JAXKey{w[0], w[1]})
}

// Observe writes the tiles of the view.
func (e *Env) Observe(fields []int32) { view(fields, e.State) }

// Step applies an action.
func (e *Env) Step(action int) (reward int, finished bool) {
	paid, ends := e.State.Step(uint8(action))
	if paid > 0 {
		reward = e.shared.paid(e.clock)
	}
	return reward, ends
}

// paid returns the index of the reward for reaching the goal after the given number of steps.
func (p *sharedParts) paid(steps int) int { return 1 + (p.room.horizon-steps)/p.group }

// Paid returns the index in the space's rewards of the reward for reaching the goal at this step,
// counted from 1.
func (w World) Paid(step int) uint8 { return uint8(w.shared.paid(step)) }

// Pays returns the exact reward for reaching the goal at this step. The value at Paid stands for
// several neighbouring steps if the limit has more steps than a reward can have values.
func (w World) Pays(step int) float32 { return w.shared.room.rewards[step] }

// Names returns two sets: the tiles that can be picked up, and tiles that can be walked on. Without
// locked doors, the tiles of a set differ only by name.
func (w World) Names() [][]int32 {
	if w.Layout != R1 {
		return nil
	}
	held, walked := []int32(nil), []int32(nil)
	for _, t := range tilesOf(Ball, Square, Pyramid, Key, Star, Hex) {
		held = append(held, int32(t))
	}
	for _, t := range tilesOf(GoalTile) {
		walked = append(walked, int32(t))
	}
	return [][]int32{held, walked}
}

// ErrNoTasks reports an empty list of rulesets.
var ErrNoTasks = errors.New("no rulesets")
