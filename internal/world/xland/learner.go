package xland

import (
	"fmt"
	"slices"

	"haul/internal/rng"
)

// Schedule holds a history's length and the constants of its learner.
type Schedule struct {
	Episodes int     `json:"episodes"`
	Discount float64 `json:"discount"`
	Rate     float64 `json:"rate"`
	First    float64 `json:"epsilon_first"` // fraction of random actions in the first episode
	Final    float64 `json:"epsilon_final"`
	Falls    float64 `json:"epsilon_falls"` // over this fraction of the episodes, linearly
}

// DefaultSchedule returns a schedule that learns nearly all trivial tasks.
func DefaultSchedule() Schedule {
	return Schedule{Episodes: 1000, Discount: 0.95, Rate: 0.2, First: 1, Final: 0.1, Falls: 0.5}
}

// Check returns an error if a value is out of range.
func (s Schedule) Check() error {
	switch {
	case s.Episodes < 1 || s.Episodes > 1<<20:
		return fmt.Errorf("%d episodes of a history: want 1 to %d", s.Episodes, 1<<20)
	case !(s.Discount >= 0 && s.Discount < 1):
		return fmt.Errorf("a discount of %v: want 0 or more, below 1", s.Discount)
	case !(s.Rate > 0 && s.Rate <= 1):
		return fmt.Errorf("a learning rate of %v: want more than 0, at most 1", s.Rate)
	case !(s.First >= 0 && s.First <= 1 && s.Final >= 0 && s.Final <= 1):
		return fmt.Errorf("exploration from %v to %v: want both in 0 to 1", s.First, s.Final)
	case !(s.Falls > 0 && s.Falls <= 1):
		return fmt.Errorf("exploration that falls over %v of the episodes: want more than 0, at most 1", s.Falls)
	}
	return nil
}

// Step is one transition of a history: the view before the action, the action, the reward's index,
// and the action that the learner would take there in the end.
type Step struct {
	Seen         [MaxView * MaxView]uint8 // the first View·View elements are used
	Action, Best uint8
	Reward       uint8
	Ends         bool
}

// learner is Q-learning with a memory. During an episode it keeps a map of the cells that it has
// seen, and its own position and direction. The value of an action is a sum of weights over the
// objects on the map, selected by tile, pocket and offset, once relative to the agent's direction
// and once by compass direction. Two more weights stand for the nearest unseen cell and for the
// cell ahead. The learner learns from an episode's transitions when it ends, in reverse order, so
// that a reward reaches the first steps at once.
type learner struct {
	state   *State
	rules   Schedule
	known   []Tile // the map; 0 is an unseen cell
	objects []Tile // tiles that have tables, in the order of their first appearance
	slot    [256]int32
	weights [][NumActions]float32
	wide    int // number of values of an offset

	now lived // the current episode
}

// lived holds the states of an episode for learning.
type lived struct {
	active []int32 // indices into weights, state by state
	first  []int32 // start of each state's indices; one more than states
	acts   []uint8
	paid   float32
}

// stateOf returns the indices of the weights of state i.
func (e *lived) stateOf(i int) []int32 { return e.active[e.first[i]:e.first[i+1]] }

// strides is the frequency of a step ahead among random actions, relative to any other action. With
// equal frequencies a random agent hardly moves: learners of 44 tasks end at 0.52 instead of 0.64.
const strides = 3

// maxObjects is the number of tiles with separate tables; all others share the last one.
const maxObjects = 24

func newLearner(s *State, rules Schedule) *learner {
	l := &learner{state: s, rules: rules, known: make([]Tile, len(s.grid)), wide: 2*s.room.size - 1}
	for i := range l.slot {
		l.slot[i] = -1
	}
	return l
}

// Offsets of the tables: the cell ahead, by pocket; the nearest unseen cell; then for every pocket
// and object the offset relative to the agent, and the offset by compass with the direction.
func (l *learner) aheads() int { return (maxObjects + 1) * NumTiles }
func (l *learner) ego() int    { return l.wide * l.wide }
func (l *learner) table(pocket, object int) int {
	return l.aheads() + l.ego() + (pocket*maxObjects+object)*5*l.ego()
}

// number returns an object's number, assigned at its first appearance.
func (l *learner) number(t Tile) int {
	if l.slot[t] < 0 {
		if len(l.objects) < maxObjects-1 {
			l.slot[t] = int32(len(l.objects))
			l.objects = append(l.objects, t)
		} else {
			l.slot[t] = maxObjects - 1
		}
	}
	return int(l.slot[t])
}

// look adds the view to the map and records the weights of the state.
func (l *learner) look() {
	s := l.state
	r := s.room
	w := &r.window[s.facing]
	row := s.at + w.first
	for range r.view {
		at := row
		for range r.view {
			l.known[at] = s.grid[at]
			at += w.column
		}
		row += w.row
	}
	pocket := 0
	if s.pocket != 0 {
		pocket = 1 + l.number(s.pocket)
	}
	l.now.first = append(l.now.first, int32(len(l.now.active)))
	l.use(pocket*NumTiles + int(s.grid[s.at+r.ahead[s.facing]]))
	ay, ax := s.at/r.stride, s.at%r.stride
	nearest, ny, nx := 1<<30, 0, 0
	for y := margin + 1; y < margin+r.size-1; y++ {
		for x := margin + 1; x < margin+r.size-1; x++ {
			t := l.known[y*r.stride+x]
			dy, dx := y-ay, x-ax
			if t == 0 {
				if far := max(dy, -dy) + max(dx, -dx); far < nearest {
					nearest, ny, nx = far, dy, dx
				}
				continue
			}
			if k := t.Kind(); k == Floor || k == Wall || y == ay && x == ax && k != GoalTile {
				continue
			}
			base := l.table(pocket, l.number(t))
			l.use(base + l.offset(dy, dx, s.facing))
			l.use(base + (1+int(s.facing))*l.ego() + l.offset(dy, dx, 0))
		}
	}
	if nearest < 1<<30 {
		l.use(l.aheads() + l.offset(ny, nx, s.facing))
	}
}

// offset returns the number of an offset, rotated so that the agent looks up.
func (l *learner) offset(dy, dx int, facing uint8) int {
	switch facing {
	case 1:
		dy, dx = -dx, dy
	case 2:
		dy, dx = -dy, -dx
	case 3:
		dy, dx = dx, -dy
	}
	return (dy+l.wide/2)*l.wide + dx + l.wide/2
}

func (l *learner) use(weight int) {
	for weight >= len(l.weights) {
		l.weights = append(l.weights, make([][NumActions]float32, max(1024, len(l.weights)))...)
	}
	l.now.active = append(l.now.active, int32(weight))
}

// values returns the values of the actions in a state with these active weights.
func (l *learner) values(active []int32) (q [NumActions]float32) {
	for _, at := range active {
		for a, v := range &l.weights[at] {
			q[a] += v
		}
	}
	return q
}

// learn updates the weights from the episode's last step to the first.
func (l *learner) learn() {
	e := &l.now
	rate, discount := float32(l.rules.Rate), float32(l.rules.Discount)
	last := len(e.acts) - 1
	for i := last; i >= 0; i-- {
		target := e.paid
		if i < last || e.paid == 0 {
			q := l.values(e.stateOf(i + 1))
			target = discount * slices.Max(q[:])
		}
		active, a := e.stateOf(i), e.acts[i]
		q := l.values(active)
		by := rate * (target - q[a]) / float32(len(active))
		for _, at := range active {
			l.weights[at][a] += by
		}
	}
}

// History appends the steps of a learner on a task to dst. They depend only on world, task,
// schedule, seed and number.
func (w World) History(dst []Step, id ID, rules Schedule, seed, number uint64) []Step {
	e := w.NewEnv(id).(*Env)
	e.Seed(seed, number)
	s := e.State
	l := newLearner(s, rules)
	begun := len(dst)
	var all, ends []int32 // indices of the weights of every step's state
	words := uint32(0)
	for episode := range rules.Episodes {
		if episode > 0 {
			s.Reset()
		}
		clear(l.known)
		n := &l.now
		n.active, n.first, n.acts = n.active[:0], n.first[:0], n.acts[:0]
		epsilon := rules.First + (rules.Final-rules.First)*min(1, float64(episode)/(rules.Falls*float64(rules.Episodes)))
		l.look()
		for over := false; !over; {
			word := rng.At(seed, number, words, rng.Learner)
			words++
			now := n.active[n.first[len(n.first)-1]:]
			var action uint8
			if float64(rng.Float(word[0])) < epsilon {
				if k := rng.Below(word[1], uint32(NumActions)+strides); k > strides {
					action = uint8(k - strides)
				}
			} else {
				q := l.values(now)
				action = pick(&q, word[2])
			}
			t := Step{Action: action}
			view(t.Seen[:], s)
			all, ends = append(all, now...), append(ends, int32(len(all)+len(now)))
			var reward int
			reward, over = e.Step(int(action))
			t.Reward, t.Ends = uint8(reward), over
			dst = append(dst, t)
			n.acts = append(n.acts, action)
			l.look()
		}
		n.first = append(n.first, int32(len(n.active)))
		n.paid = float32(e.shared.rewards[dst[len(dst)-1].Reward])
		l.learn()
	}
	from := int32(0)
	for i := range dst[begun:] {
		t := &dst[begun+i]
		q := l.values(all[from:ends[i]])
		from = ends[i]
		t.Best = t.Action
		if most := slices.Max(q[:]); most > q[t.Action] {
			t.Best = uint8(slices.Index(q[:], most))
		}
	}
	return dst
}

// pick returns an action of the highest value, chosen at random among equals.
func pick(q *[NumActions]float32, word uint32) uint8 {
	most, equal := slices.Max(q[:]), uint32(0)
	for _, v := range q {
		if v == most {
			equal++
		}
	}
	nth := rng.Below(word, equal)
	for a, v := range q {
		if v == most {
			if nth == 0 {
				return uint8(a)
			}
			nth--
		}
	}
	return 0
}
