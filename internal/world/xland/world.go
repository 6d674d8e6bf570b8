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

// EnvName names the world in files and checkpoints.
const EnvName = "xland"

// MaxSize is the largest side.
const MaxSize = 64

// World is a layout with a view, a limit of steps, and the tasks that are played in it.
type World struct {
	Env     string `json:"env"` // EnvName
	Layout  Layout `json:"layout"`
	Size    int    `json:"size"`
	View    int    `json:"view"`
	Opaque  bool   `json:"opaque,omitempty"` // walls and closed doors hide what lies behind them
	Horizon int    `json:"horizon"`
	Tasks   Tasks  `json:"tasks"`

	shared *sharedParts
}

// Tasks are a benchmark's rulesets: drawn by name and seed, or listed.
type Tasks struct {
	Name string `json:"name"`
	Seed uint32 `json:"seed"`
	// IDs and Listed are the rulesets of a file, those that are played, by their place in it.
	IDs    []int64  `json:"ids,omitempty"`
	Listed [][]byte `json:"listed,omitempty"`
}

// sharedParts are what environments of one world have in common.
type sharedParts struct {
	room     *room
	rewards  []float64
	group    int // steps that share a value of the reward
	mu       sync.Mutex
	drawer   *Drawer
	drawn    []byte             // rulesets drawn so far, each of as many bytes
	each     int                // bytes of one
	listed   map[int64]*Ruleset // of a file
	programs map[int64]*program
}

var worldName = regexp.MustCompile(`^(?:XLand-MiniGrid-)?(R[0-9])-([0-9]{1,3})x([0-9]{1,3})$`)

// New is an environment by the package's name, XLand-MiniGrid-R1-9x9 or R1-9x9, as the package
// makes it: a view of 5 by 5 that sees through walls, and 3·height·width steps.
func New(name string, tasks Tasks) (World, error) {
	m := worldName.FindStringSubmatch(name)
	if m == nil {
		return World{}, fmt.Errorf("%q is no environment: write XLand-MiniGrid-R1-9x9 or R4-13x13, for one room of 9 by 9 cells or four of 13 by 13", name)
	}
	size, _ := strconv.Atoi(m[2]) // digits alone, and few
	if m[2] != m[3] {
		return World{}, fmt.Errorf("%s: rooms are squares", name)
	}
	w := World{Env: EnvName, Layout: Layout(m[1]), Size: size, View: 5, Horizon: 3 * size * size, Tasks: tasks}
	return w, w.Check()
}

// Check refuses a world that cannot be, and makes one that can ready for use.
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
		if p.drawer, err = NewDrawer(w.Tasks.Name, w.Tasks.Seed); err != nil {
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

// cells is how many are free when nothing lies in them.
func (r *room) cells() int {
	n := 0
	for _, t := range r.blank {
		if can[t]&free != 0 {
			n++
		}
	}
	return n
}

// Parse reads a world as files and checkpoints keep it.
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

// Name is the world's kind.
func (w World) Name() string { return EnvName }

// Describe is the world in words.
func (w World) Describe() string {
	text := w.String()
	if w.shared.group > 1 {
		text += fmt.Sprintf(", rewards rounded to %d values", len(w.shared.rewards))
	}
	return text
}

// Space is what an agent sees, does and is paid: the tiles of its view, kind and colour as one
// number. Where a horizon has more steps than a reward can have values, neighbouring values share
// one.
func (w World) Space() world.Space {
	s := world.Space{Actions: int(NumActions), Rewards: w.shared.rewards}
	for i := range w.View * w.View {
		s.Fields = append(s.Fields, world.Field{Name: fmt.Sprintf("r%dc%d", i/w.View, i%w.View), Size: NumTiles})
	}
	return s
}

// Limit is the most steps of an episode.
func (w World) Limit() int { return w.Horizon }

// Best is what a goal pays after one step. Where the objects lie far, no episode pays as much.
func (w World) Best(world.Task) float64 { return slices.Max(w.shared.rewards) }

// ID is a task: the place of a ruleset in its benchmark.
type ID int64

func (i ID) String() string { return "ruleset " + strconv.FormatInt(int64(i), 10) }

// MarshalJSON writes the number.
func (i ID) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(i), 10), nil }

// maxDrawn is the most rulesets of a drawn benchmark: they are drawn one after another.
const maxDrawn = 1_000_000

// Ruleset is a task by its number.
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
		data := p.drawer.Next().bytes()
		p.drawn, p.each = append(p.drawn, data...), len(data)
	}
	return parseRuleset(p.drawn[int(id)*p.each:][:p.each])
}

// CheckTask refuses a number that is no task's.
func (w World) CheckTask(id int64) error {
	_, err := w.Ruleset(ID(id))
	return err
}

// program is a task ready for use, made once.
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

// NewState is an environment of a task; Seed begins its life.
func (w World) NewState(id ID) *State {
	s := &State{room: w.shared.room, task: w.program(id)}
	s.grid = make([]Tile, len(s.room.blank))
	s.draws = make([]draw, 0, len(s.task.tiles)+1)
	return s
}

// NewEnv is a task being played.
func (w World) NewEnv(t world.Task) world.Env {
	e := &Env{State: w.NewState(t.(ID)), shared: w.shared}
	e.Seed(0, uint64(t.(ID)))
	return e
}

// Env is a State as agents are put into it.
type Env struct {
	*State
	shared *sharedParts
}

// Seed begins a life: its starts follow from seed and number.
func (e *Env) Seed(seed, life uint64) {
	w := rng.At(seed, life, 0, rng.Starts)
	e.State.Seed(rng.JAXKey{w[0], w[1]})
}

// Observe writes the tiles of the view.
func (e *Env) Observe(fields []int32) { view(fields, e.State) }

// Step takes an action.
func (e *Env) Step(action int) (reward int, finished bool) {
	paid, ends := e.State.Step(uint8(action))
	if paid > 0 {
		reward = e.shared.paid(e.clock)
	}
	return reward, ends
}

// paid is the value of the reward, by its place among them, of a goal reached after so many steps.
func (p *sharedParts) paid(steps int) int { return 1 + (p.room.horizon-steps)/p.group }

// Paid is the value of the reward, by its place in the space, of an episode that reaches the goal
// with that step, counted from 1.
func (w World) Paid(step int) uint8 { return uint8(w.shared.paid(step)) }

// Pays is what such an episode earns. The value at Paid stands for that of several neighbouring
// steps where the limit has more steps than a reward can have values.
func (w World) Pays(step int) float32 { return w.shared.room.rewards[step] }

// Names are the tiles that can be picked up, and those that can be walked on: where no door wants a
// key, tasks tell them apart by name alone.
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

// ErrNoTasks says that a list of rulesets is empty.
var ErrNoTasks = errors.New("no rulesets")
