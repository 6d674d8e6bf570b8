package xland

import (
	"fmt"
	"slices"

	"haul/internal/rng"
)

// A searcher's actions depend on its views and rewards only, not on the task's goal. So an agent
// that imitates it learns nothing that its context does not show.

// searcher is an expert policy that knows which goals a task without rules may have, but not the
// goal of its task. It keeps the set of goals that are still possible. Before the first reward,
// these are all goals of the tiles seen, except goals that were reached without reward. After a
// reward, only the goals that were reached at that step remain. It moves on a shortest path, over
// the cells that the episode has shown so far, to reach the nearest possible goal or to see more
// cells.
type searcher struct {
	state  *State
	known  []Tile // the map; 0 is an unseen cell
	unseen int    // number of the room's cells that are not on the map
	met    []Tile // objects, in the order of their first appearance
	alive  []goal
	paid   bool // an episode had a reward: tiles seen later are not part of the goal

	places [][2]int // objects on the map: cell, tile
	far    []int16  // [cell, facing]: number of steps to there; -1: no path
	first  []uint8  // and the first of these steps
	queue  []int32
	aim    goal // the goal pursued in the previous step

	fetched [256]plan // by tile; valid if its number in times is the current one
	times   [256]uint32
	now     uint32
	dropped plan
}

// kept is the number of steps by which another goal must be nearer to replace the previous one.
const kept = 2

func newSearcher(s *State) *searcher {
	l := &searcher{state: s, known: make([]Tile, len(s.grid)), far: make([]int16, 4*len(s.grid)), first: make([]uint8, 4*len(s.grid))}
	for i := range l.far {
		l.far[i] = -1
	}
	return l
}

// begin clears the map at the start of an episode.
func (l *searcher) begin() {
	clear(l.known)
	l.unseen = l.state.room.cells()
	l.aim = goal{}
	l.look()
}

// object reports whether goals may refer to the tile.
func object(t Tile) bool { return can[t]&pickable != 0 || t.Kind() == GoalTile }

// look adds the view to the map.
func (l *searcher) look() {
	s := l.state
	w := &s.room.window[s.facing]
	row := s.at + w.first
	for range s.room.view {
		at := row
		for range s.room.view {
			t := s.grid[at]
			if l.known[at] == 0 && can[s.room.blank[at]]&free != 0 {
				l.unseen--
			}
			l.known[at] = t
			if object(t) && !slices.Contains(l.met, t) {
				l.meet(t)
			}
			at += w.column
		}
		row += w.row
	}
}

// meet adds the goals that a newly seen tile makes possible.
func (l *searcher) meet(t Tile) {
	if !l.paid {
		l.goalsOf(t, l.met)
	}
	l.met = append(l.met, t)
}

func (l *searcher) goalsOf(t Tile, others []Tile) {
	if can[t]&pickable != 0 {
		l.alive = append(l.alive, goal{kind: goalHold, a: t})
	}
	for kind := range uint8(numGoals) {
		if kind == goalNear || kind >= goalNearUp {
			l.alive = append(l.alive, goal{kind: kind, a: t})
		}
	}
	for _, u := range others {
		if can[t]&pickable == 0 && can[u]&pickable == 0 {
			continue
		}
		l.alive = append(l.alive, goal{kind: goalTileNear, a: u, b: t})
		for kind := uint8(goalTileNearUp); kind <= goalTileNearLeft; kind++ {
			l.alive = append(l.alive, goal{kind: kind, a: u, b: t})
		}
	}
}

// heed updates the possible goals with the result of an action.
func (l *searcher) heed(action uint8, paid bool) {
	s := l.state
	touched := s.at
	if action >= PickUp {
		touched += s.room.ahead[s.facing]
	}
	was := len(l.alive)
	if paid && !slices.ContainsFunc(l.alive, func(g goal) bool { return s.reached(&g, action, touched) }) {
		return // the goal that gave the reward was not seen
	}
	l.alive = slices.DeleteFunc(l.alive, func(g goal) bool { return s.reached(&g, action, touched) != paid })
	l.paid = l.paid || paid
	if len(l.alive) == 0 && was > 0 { // the assumptions were wrong: start again
		l.paid = false
		for i, t := range l.met {
			l.goalsOf(t, l.met[:i])
		}
	}
}

// measure computes the shortest paths over the map.
func (l *searcher) measure() {
	s := l.state
	ahead := &s.room.ahead
	for _, at := range l.queue {
		l.far[at] = -1
	}
	start := int32(4*s.at + int(s.facing))
	if cap(l.queue) < len(l.far) {
		l.queue = make([]int32, len(l.far))
	}
	queue, far, first := l.queue[:len(l.far)], l.far, l.first
	queue[0], far[start] = start, 0
	n := 1
	reach := func(to int32, steps int16, action uint8) {
		if far[to] < 0 {
			far[to], first[to], queue[n] = steps, action, to
			n++
		}
	}
	for i := 0; i < n; i++ {
		at := queue[i]
		side, steps := at&3, far[at]+1
		actions := [...]uint8{first[at], first[at], first[at]}
		if i == 0 {
			actions = [...]uint8{Forward, TurnRight, TurnLeft}
		}
		if cell := int(at>>2) + ahead[side]; can[l.known[cell]]&walkable != 0 {
			reach(int32(4*cell)|side, steps, actions[0])
		}
		reach(at&^3|(side+1)&3, steps, actions[1])
		reach(at&^3|(side-1)&3, steps, actions[2])
	}
	l.queue = queue[:n]
	l.now++
	l.dropped = nowhere
	if s.pocket != 0 {
		l.dropped = l.drop()
	}
	l.places = l.places[:0]
	r := s.room
	for y := 1; y < r.size-1; y++ {
		for x := 1; x < r.size-1; x++ {
			if cell := r.cell(y, x); object(l.known[cell]) {
				l.places = append(l.places, [2]int{cell, int(l.known[cell])})
			}
		}
	}
}

// plan is a path: its number of steps, and its first action.
type plan struct {
	cost   int
	action uint8
}

var nowhere = plan{cost: 1 << 20}

func (p plan) or(q plan) plan {
	if q.cost < p.cost {
		return q
	}
	return p
}

// before returns the path with the given number of further steps after it.
func (p plan) before(steps int) plan {
	if p.cost >= nowhere.cost || steps >= nowhere.cost {
		return nowhere
	}
	return plan{p.cost + steps, p.action}
}

// then returns the path to a cell and direction, followed by an action.
func (l *searcher) then(cell, facing int, action uint8) plan {
	at := 4*cell + facing
	switch n := l.far[at]; {
	case n < 0:
		return nowhere
	case n == 0:
		return plan{1, action}
	default:
		return plan{int(n) + 1, l.first[at]}
	}
}

// at returns the path that applies an action to a cell from any side.
func (l *searcher) at(cell int, action uint8) plan {
	p := nowhere
	for facing, by := range l.state.room.ahead {
		p = p.or(l.then(cell-by, facing, action))
	}
	return p
}

// onto returns the path that ends with a step ahead towards a cell, even if the cell blocks it.
func (l *searcher) onto(cell int) plan {
	p := nowhere
	if can[l.known[cell]]&walkable == 0 {
		return p
	}
	for facing, by := range l.state.room.ahead {
		p = p.or(l.then(cell-by, facing, Forward))
		if can[l.known[cell+by]]&walkable == 0 {
			p = p.or(l.then(cell, facing, Forward))
		}
	}
	return p
}

// drop returns the path that puts down the object in the pocket, anywhere.
func (l *searcher) drop() plan {
	p := nowhere
	for _, at := range l.queue {
		if int(l.far[at]) >= p.cost {
			break
		}
		if can[l.known[int(at/4)+l.state.room.ahead[at%4]]]&free != 0 {
			p = p.or(l.then(int(at/4), int(at%4), PutDown))
		}
	}
	return p
}

// each calls do with the cells of a tile on the map.
func (l *searcher) each(t Tile, do func(cell int)) {
	for _, p := range l.places {
		if p[1] == int(t) {
			do(p[0])
		}
	}
}

// fetch returns the path that picks up a tile. A full pocket is emptied first.
func (l *searcher) fetch(t Tile) plan {
	if l.times[t] == l.now {
		return l.fetched[t]
	}
	p := nowhere
	if can[t]&pickable != 0 {
		l.each(t, func(cell int) { p = p.or(l.at(cell, PickUp)) })
		if l.state.pocket != 0 {
			p = l.dropped.before(p.cost)
		}
	}
	l.fetched[t], l.times[t] = p, l.now
	return p
}

// reach returns the path to a goal, or nowhere if the map does not show its tiles.
func (l *searcher) reach(g *goal) plan {
	ahead, p := &l.state.room.ahead, nowhere
	switch {
	case g.kind == goalHold:
		return l.fetch(g.a)
	case g.kind == goalNear:
		l.each(g.a, func(cell int) {
			for _, by := range ahead {
				p = p.or(l.onto(cell - by))
			}
		})
		return p
	case g.kind >= goalNearUp:
		side := int(g.kind) - goalNearUp
		if l.state.pocket == g.a {
			return l.put(side)
		}
		l.each(g.a, func(cell int) { p = p.or(l.onto(cell - ahead[side])) })
		return p.or(l.fetch(g.a).before(turns))
	}
	return l.join(g)
}

// turns is the approximate number of steps to turn and put something down.
const turns = 3

// put returns the path that puts down the object in the pocket while facing a side.
func (l *searcher) put(side int) plan {
	for _, at := range l.queue {
		if int(at%4) == side && can[l.known[int(at/4)+l.state.room.ahead[side]]]&free != 0 {
			return l.then(int(at/4), side, PutDown)
		}
	}
	return nowhere
}

// join returns the path that puts two tiles next to each other.
func (l *searcher) join(g *goal) plan {
	s, p := l.state, nowhere
	if t := s.pocket; t != 0 && (t == g.a || t == g.b) {
		l.spots(g, t, func(cell int) { p = p.or(l.at(cell, PutDown)) })
		return p
	}
	stride := s.room.stride
	l.each(g.a, func(a int) {
		l.each(g.b, func(b int) {
			dy, dx := a/stride-b/stride, a%stride-b%stride
			between := max(dy, -dy) + max(dx, -dx) + turns
			for _, t := range [...]Tile{g.a, g.b} {
				q := l.fetch(t).before(between)
				fits := false
				l.spots(g, t, func(int) { fits = true })
				if !fits {
					q.cost += 2 * between
				}
				p = p.or(q)
			}
		})
	})
	return p
}

// spots calls do with the free cells where tile t, once put down, would be next to the other tile
// of a goal, in which b lies on a given side of a.
func (l *searcher) spots(g *goal, t Tile, do func(cell int)) {
	other, sign := g.b, -1
	if t == g.b {
		other, sign = g.a, 1
	}
	l.each(other, func(cell int) {
		for side, by := range l.state.room.ahead {
			if g.kind != goalTileNear && side != int(g.kind)-goalTileNearUp {
				continue
			}
			if to := cell + sign*by; can[l.known[to]]&free != 0 && to != l.state.at {
				do(to)
			}
		}
	})
}

// explore returns the path to a position from which an unseen cell becomes visible.
func (l *searcher) explore() plan {
	r := l.state.room
	if l.unseen == 0 {
		return nowhere
	}
	for _, at := range l.queue {
		w := &r.window[at%4]
		row := int(at/4) + w.first
		for range r.view {
			cell := row
			for range r.view {
				if l.known[cell] == 0 && can[r.blank[cell]]&free != 0 {
					if l.far[at] == 0 {
						return nowhere
					}
					return plan{int(l.far[at]), l.first[at]}
				}
				cell += w.column
			}
			row += w.row
		}
	}
	return nowhere
}

// act returns the searcher's action in a state whose view is on the map.
func (l *searcher) act(word uint32) uint8 {
	l.measure()
	best, aim, missing := nowhere, goal{}, !l.paid
	for i := range l.alive {
		g := &l.alive[i]
		p := l.reach(g)
		if p.cost >= nowhere.cost {
			missing = true
		}
		if *g == l.aim {
			p.cost -= kept
		}
		if p.cost < best.cost {
			best, aim = p, *g
		}
	}
	if missing {
		if p := l.explore(); p.cost < best.cost {
			best, aim = p, goal{}
		}
	}
	l.aim = aim
	if best.cost >= nowhere.cost-kept {
		return randomAction(word)
	}
	return best.action
}

// randomAction returns a step ahead four times as often as any other action.
func randomAction(word uint32) uint8 {
	if k := rng.Below(word, uint32(NumActions)+strides); k > strides {
		return uint8(k - strides)
	}
	return Forward
}

// Searching configures the length and the randomness of a searcher's history.
type Searching struct {
	Steps int     // a history ends with the first episode that ends at or after this step
	Noise float64 // largest fraction of random actions in an episode; each episode draws its own
}

// DefaultSearching returns a configuration that fills a context of 512 transitions.
func DefaultSearching() Searching { return Searching{Steps: 512, Noise: 0.7} }

// Check returns an error if a value is out of range.
func (s Searching) Check() error {
	switch {
	case s.Steps < 1 || s.Steps > 1<<20:
		return fmt.Errorf("%d steps of a history: want 1 to %d", s.Steps, 1<<20)
	case !(s.Noise >= 0 && s.Noise <= 1):
		return fmt.Errorf("a share of %v of random actions: want 0 to 1", s.Noise)
	}
	return nil
}

// Searchable returns an error if a searcher does not support the task: several rooms, rules, or a
// goal that is a position, or a tile to step onto.
func (w World) Searchable(id ID) error {
	r, err := w.Ruleset(id)
	if err != nil {
		return err
	}
	p := r.compile()
	switch g := p.goal.kind; {
	case w.Layout != R1:
		return fmt.Errorf("a world of the layout %s: searchers know one room, R1", w.Layout)
	case len(p.rules) > 0:
		return fmt.Errorf("%v has rules, which searchers do not know: use --learner q", id)
	case g == goalNone || g == goalOnTile || g == goalTileOnPosition || g == goalOnPosition:
		return fmt.Errorf("%v has the goal %q, which searchers do not know: use --learner q", id, r.Describe())
	}
	return nil
}

// Search appends the steps of a searcher on a task to dst. They depend only on world, task, rules,
// seed and number. Each episode draws a fraction of random actions between 0 and Noise. Best of a
// Step is always the searcher's own action.
func (w World) Search(dst []Step, id ID, rules Searching, seed, number uint64) []Step {
	e := w.NewEnv(id).(*Env)
	e.Seed(seed, number)
	return w.search(dst, e, rules, seed, number)
}

// search is Search in a given environment.
func (w World) search(dst []Step, e *Env, rules Searching, seed, number uint64) []Step {
	l := newSearcher(e.State)
	for begun, words := len(dst), uint32(0); len(dst)-begun < rules.Steps; {
		if len(dst) > begun {
			e.Reset()
		}
		l.begin()
		epsilon := rules.Noise * float64(rng.Float(rng.At(seed, number, words, rng.Learner)[3]))
		for over := false; !over; {
			word := rng.At(seed, number, words, rng.Learner)
			words++
			t := Step{Best: l.act(word[1])}
			t.Action = t.Best
			if float64(rng.Float(word[0])) < epsilon {
				t.Action = randomAction(word[2])
			}
			view(t.Seen[:], e.State)
			var reward int
			reward, over = e.Step(int(t.Action))
			t.Reward, t.Ends = uint8(reward), over
			dst = append(dst, t)
			l.heed(t.Action, reward > 0)
			l.look()
		}
	}
	return dst
}
