package xland

import "haul/internal/rng"

// Actions.
const (
	Forward uint8 = iota
	TurnRight
	TurnLeft
	PickUp
	PutDown
	Toggle
	NumActions
)

// margin is the number of Empty cells around a grid, so that a view never exceeds its memory.
const margin = MaxView - 1

// State is one environment. Only one goroutine may use it. A step allocates nothing.
type State struct {
	room *room
	task *program
	key  rng.JAXKey // of the next start

	grid   []Tile // with its margin
	at     int    // the agent's cell
	facing uint8  // up, right, down, left
	pocket Tile
	clock  int
	draws  []draw // for a start; reused
}

// room holds the data that environments of one world share.
type room struct {
	layout  Layout
	size    int
	stride  int
	view    int
	opaque  bool
	horizon int
	blank   []Tile // the grid without doors and objects
	ahead   [4]int // offset to the cell in front, by direction
	window  [4]struct{ first, row, column int }
	rewards []float32 // reward of reaching the goal, by the number of steps
}

func newRoom(w *World) *room {
	r := &room{layout: w.Layout, size: w.Size, stride: w.Size + 2*margin, view: w.View, opaque: w.Opaque, horizon: w.Horizon}
	s, far, half := r.stride, r.view-1, r.view/2
	r.ahead = [4]int{-s, 1, s, -1}
	// The view is rotated so that the agent looks up from the middle of its lowest row.
	r.window[0] = struct{ first, row, column int }{-far*s - half, s, 1}
	r.window[1] = struct{ first, row, column int }{-half*s + far, -1, s}
	r.window[2] = struct{ first, row, column int }{far*s + half, -s, -1}
	r.window[3] = struct{ first, row, column int }{half*s - far, 1, -s}
	r.blank = r.layout.blank(r)
	r.rewards = rewards(r.horizon)
	return r
}

// cell returns the index of a row and a column in a grid's memory.
func (r *room) cell(y, x int) int { return (y+margin)*r.stride + x + margin }

// rewards returns the reward of reaching the goal after each number of steps: 1 -
// 0.9·steps/horizon. It rounds like JAX's compiler: 0.9 times the reciprocal, and one rounding of
// everything else.
func rewards(horizon int) []float32 {
	out := make([]float32, horizon+1)
	reciprocal := 1 / float32(horizon)
	each := float32(0.9) * reciprocal
	for i := range out {
		out[i] = float32(1 - float64(i)*float64(each)) // exact before the last conversion
	}
	return out
}

// Step applies an action. An episode ends when the goal is reached, which alone gives a reward, or
// at the horizon. The caller must then call Reset.
func (s *State) Step(action uint8) (reward float32, ends bool) {
	r, grid := s.room, s.grid
	touched := s.at // the cell that rules of two tiles refer to
	switch action {
	case Forward:
		if to := s.at + r.ahead[s.facing]; can[grid[to]]&walkable != 0 {
			s.at = to
		}
		touched = s.at
	case TurnRight:
		s.facing = (s.facing + 1) & 3
	case TurnLeft:
		s.facing = (s.facing - 1) & 3
	case PickUp:
		touched = s.at + r.ahead[s.facing]
		if s.pocket.Kind() == Empty && can[grid[touched]]&pickable != 0 {
			s.pocket, grid[touched] = grid[touched], floorTile
		}
	case PutDown:
		touched = s.at + r.ahead[s.facing]
		if s.pocket.Kind() != Empty && can[grid[touched]]&free != 0 {
			grid[touched], s.pocket = s.pocket, Tile(0)
		}
	case Toggle:
		touched = s.at + r.ahead[s.facing]
		switch t := grid[touched]; t.Kind() {
		case DoorLocked:
			if s.pocket == TileOf(Key, t.Colour()) {
				grid[touched] = TileOf(DoorOpen, t.Colour())
			}
		case DoorClosed:
			grid[touched] = TileOf(DoorOpen, t.Colour())
		case DoorOpen:
			grid[touched] = TileOf(DoorClosed, t.Colour())
		}
	default:
		panic("xland: an action that is none")
	}
	if s.task.acts>>action&1 != 0 {
		for i := range s.task.rules {
			s.apply(&s.task.rules[i], action, touched)
		}
	}
	s.clock++
	if s.reached(&s.task.goal, action, touched) {
		return r.rewards[s.clock], true
	}
	return 0, s.clock == r.horizon
}

// apply applies a rule after an action. It reads the neighbouring cells before it changes any.
func (s *State) apply(u *rule, action uint8, touched int) {
	grid, ahead := s.grid, &s.room.ahead
	switch {
	case u.kind == ruleHold:
		if action == PickUp && s.pocket == u.a {
			s.pocket = u.product
		}
	case u.kind == ruleNear:
		if action != Forward {
			return
		}
		for _, d := range ahead {
			if grid[s.at+d] == u.a {
				grid[s.at+d] = u.product
			}
		}
	case u.kind == ruleTileNear:
		t := grid[touched]
		if action != PutDown || t != u.a && t != u.b {
			return
		}
		for _, d := range ahead {
			if n := grid[touched+d]; t == u.a && n == u.b || t == u.b && n == u.a {
				grid[touched+d], grid[touched] = u.product, floorTile
			}
		}
	case u.kind <= ruleTileNearLeft: // b lies on this side of a
		if action != PutDown {
			return
		}
		t, side := grid[touched], ahead[u.kind-ruleTileNearUp]
		neighbour, opposite := grid[touched+side], grid[touched-side]
		if t == u.b && opposite == u.a {
			grid[touched-side], grid[touched] = u.product, floorTile
		}
		if t == u.a && neighbour == u.b {
			grid[touched+side], grid[touched] = u.product, floorTile
		}
	default:
		if action != Forward && action != PutDown {
			return
		}
		if to := s.at + ahead[u.kind-ruleNearUp]; grid[to] == u.a {
			grid[to] = u.product
		}
	}
}

// reached reports whether the goal is reached after an action.
func (s *State) reached(g *goal, action uint8, touched int) bool {
	grid, ahead := s.grid, &s.room.ahead
	switch g.kind {
	case goalNone:
		return false
	case goalHold:
		return action == PickUp && s.pocket == g.a
	case goalOnTile:
		return action == Forward && grid[s.at] == g.a
	case goalNear:
		return action == Forward && (grid[s.at+ahead[0]] == g.a || grid[s.at+ahead[1]] == g.a || grid[s.at+ahead[2]] == g.a || grid[s.at+ahead[3]] == g.a)
	case goalTileNear:
		if action != PutDown {
			return false
		}
		want := g.a
		switch grid[touched] {
		case g.a:
			want = g.b
		case g.b:
		default:
			return false
		}
		return grid[touched+ahead[0]] == want || grid[touched+ahead[1]] == want || grid[touched+ahead[2]] == want || grid[touched+ahead[3]] == want
	case goalTileOnPosition:
		return grid[s.room.cell(int(g.y), int(g.x))] == g.a
	case goalOnPosition:
		return s.at == s.room.cell(int(g.y), int(g.x))
	case goalTileNearUp, goalTileNearRight, goalTileNearDown, goalTileNearLeft:
		if action != PutDown {
			return false
		}
		t, side := grid[touched], ahead[g.kind-goalTileNearUp]
		return t == g.b && grid[touched-side] == g.a || t == g.a && grid[touched+side] == g.b
	default:
		return (action == Forward || action == PutDown) && grid[s.at+ahead[g.kind-goalNearUp]] == g.a
	}
}
