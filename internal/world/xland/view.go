package xland

// Sizes of a view: odd, with at most as many cells as an observation can have fields.
const (
	MinView = 3
	MaxView = 7
)

// view writes the View·View tiles that the agent sees, row by row, rotated so that the agent looks
// up from the middle of the lowest row.
func view[T uint8 | int32](out []T, s *State) {
	r := s.room
	w := &r.window[s.facing]
	n, row := r.view, s.at+w.first
	for i := range n {
		at := row
		line := out[i*n:][:n]
		for j := range line {
			line[j] = T(s.grid[at])
			at += w.column
		}
		row += w.row
	}
	if r.opaque {
		shade(out, n)
	}
}

// shade clears the cells that walls and closed doors hide. From the agent's row upwards, light
// spreads along a row to the right and then to the left, and from every lit cell that is not
// blocking to the row above, as in Minigrid.
func shade[T uint8 | int32](seen []T, n int) {
	var lit [MaxView * MaxView]bool
	lit[(n-1)*n+n/2] = true
	spread := func(y, x, side int) {
		if !lit[y*n+x] || can[uint8(seen[y*n+x])]&blocks != 0 {
			return
		}
		lit[y*n+x+side] = true
		if y > 0 {
			lit[(y-1)*n+x+side], lit[(y-1)*n+x] = true, true
		}
	}
	for y := n - 1; y >= 0; y-- {
		for x := range n - 1 {
			spread(y, x, 1)
		}
		for x := n - 1; x > 0; x-- {
			spread(y, x, -1)
		}
	}
	for i := range n * n {
		if !lit[i] {
			seen[i] = 0
		}
	}
}
