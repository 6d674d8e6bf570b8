package xland

import (
	"fmt"
	"slices"
	"strings"

	"haul/internal/rng"
)

// Layout is the arrangement of rooms in a grid.
type Layout string

// Layouts, named by their number of rooms. Doors between rooms are closed and of random colour. In
// R2, R4 and R9 their position in the wall is random.
const (
	R1 Layout = "R1"
	R2 Layout = "R2"
	R4 Layout = "R4"
	R6 Layout = "R6"
	R9 Layout = "R9"
)

// Layouts lists all layouts.
var Layouts = []Layout{R1, R2, R4, R6, R9}

// oneOf joins words for a sentence: R1, R2 or R4.
func oneOf[T ~string](words []T) string {
	var out strings.Builder
	for i, w := range words {
		switch {
		case i > 0 && i == len(words)-1:
			out.WriteString(" or ")
		case i > 0:
			out.WriteString(", ")
		}
		out.WriteString(string(w))
	}
	return out.String()
}

// least is the smallest side at which every room has a cell.
var least = map[Layout]int{R1: 5, R2: 5, R4: 5, R6: 13, R9: 7}

// check returns an error if the layout does not fit the side.
func (l Layout) check(size int) error {
	switch {
	case !slices.Contains(Layouts, l):
		return fmt.Errorf("unknown layout %q: use %s", string(l), oneOf(Layouts))
	case size < least[l] || size > MaxSize:
		return fmt.Errorf("layout %s with a side of %d: want %d to %d", l, size, least[l], MaxSize)
	case l != R1 && l != R9 && size%2 == 0:
		return fmt.Errorf("layout %s with a side of %d: want an odd one", l, size)
	case l == R6 && size%6 != 1 && size != 17:
		return fmt.Errorf("layout %s with a side of %d: want 13, 17, 19 or another of 6n+1", l, size)
	case l == R9 && size%3 != 1:
		return fmt.Errorf("layout %s with a side of %d: want one of 3n+1", l, size)
	}
	return nil
}

// blank returns the grid of a layout without doors.
func (l Layout) blank(r *room) []Tile {
	grid := make([]Tile, r.stride*r.stride)
	for y := range r.size {
		for x := range r.size {
			grid[r.cell(y, x)] = floorTile
		}
	}
	column := func(x int) {
		for y := range r.size {
			grid[r.cell(y, x)] = wallTile
		}
	}
	row := func(y, from, to int) {
		for x := from; x < to; x++ {
			grid[r.cell(y, x)] = wallTile
		}
	}
	n := r.size
	column(0)
	column(n - 1)
	row(0, 0, n)
	row(n-1, 0, n)
	switch l {
	case R2:
		column(n / 2)
	case R4:
		column(n / 2)
		row(n/2, 0, n)
	case R6:
		column(n/2 - 2)
		column(n/2 + 2)
		for i := 1; i < 3; i++ {
			row(i*(n/3), 0, n/2-2)
			row(i*(n/3), n/2+2, n/2+2+n/2-2)
		}
	case R9:
		column(n / 3)
		column(2 * (n / 3))
		row(n/3, 0, n)
		row(2*(n/3), 0, n)
	}
	return grid
}

// doorColours are the colours of doors between rooms.
var doorColours = [...]uint8{Red, Green, Blue, Purple, Yellow, Grey}

// doors draws the doors between rooms and returns the remaining key.
func (s *State) doors(key rng.JAXKey) rng.JAXKey {
	r, n := s.room, s.room.size
	var places, colours rng.JAXKey
	switch r.layout {
	case R1:
		return key
	case R2:
		key, colours, places = key.Split(0), key.Split(1), key.Split(2)
	case R6:
		key, colours = key.Split(0), key.Split(1)
	default:
		key, places, colours = key.Split(0), key.Split(1), key.Split(2)
	}
	door := func(i, y, x int) {
		colour := doorColours[colours.Integer(uint32(i), 0, uint32(len(doorColours)))]
		s.grid[r.cell(y, x)] = TileOf(DoorClosed, colour)
	}
	place := func(i, high int) int { return int(places.Integer(uint32(i), 1, uint32(high))) }
	switch r.layout {
	case R2:
		door(0, place(0, n-1), n/2)
	case R4:
		door(0, n/2, place(0, n/2))
		door(1, n/2, n/2+place(1, n/2))
		door(2, place(2, n/2), n/2)
		door(3, n/2+place(3, n/2), n/2)
	case R6:
		for i := range 6 {
			x := n/2 - 2
			if i >= 3 {
				x = n/2 + 2
			}
			door(i, n/2+(i%3-1)*(n/3), x)
		}
	case R9:
		side, next := n/3, 0
		for i := range 3 {
			for j := range 3 {
				if i < 2 {
					door(next, j*side+place(next, side), (i+1)*side)
					next++
				}
				if j < 2 {
					door(next, (j+1)*side, i*side+place(next, side))
					next++
				}
			}
		}
	}
	return key
}

// draw is a free cell and its random rank for placing objects.
type draw struct {
	rank uint32
	cell int32
}

// Seed starts the environment with a JAX key, like reset(key) of the Python package.
func (s *State) Seed(key rng.JAXKey) {
	s.key = key
	s.start()
}

// Reset begins the next episode, like GymAutoResetWrapper of the Python package.
func (s *State) Reset() {
	s.key = s.key.Split(0)
	s.start()
}

// start draws the start of an episode. The Python package takes cells in the order of Gumbel noise,
// which grows with the uniform number that it is computed from. This function compares the 23
// random bits of that number; equal numbers are ordered by cell.
func (s *State) start() {
	r := s.room
	copy(s.grid, r.blank)
	key := s.doors(s.key)
	var places, turn rng.JAXKey
	s.key, places, turn = key.Split(0), key.Split(1), key.Split(2)
	want := len(s.task.tiles) + 1
	top := s.draws[:0]
	for y := 1; y < r.size-1; y++ {
		for x := 1; x < r.size-1; x++ {
			at := r.cell(y, x)
			if can[s.grid[at]]&free == 0 {
				continue
			}
			d := draw{places.Bits(uint32(y*r.size+x)) >> 9, int32(at)}
			if len(top) == want {
				if d.rank <= top[want-1].rank {
					continue
				}
				top = top[:want-1]
			}
			i := len(top)
			top = append(top, d)
			for ; i > 0 && top[i-1].rank < d.rank; i-- {
				top[i] = top[i-1]
			}
			top[i] = d
		}
	}
	s.draws = top
	for i, t := range s.task.tiles {
		if t != 0 {
			s.grid[top[i].cell] = t
		}
	}
	s.at, s.facing = int(top[want-1].cell), uint8(turn.Integer(0, 0, 4))
	s.pocket, s.clock = 0, 0
}
