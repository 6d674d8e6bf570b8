package xland

import "fmt"

// Tables are a world and some of its tasks in the format for devices: the data that environments
// share, and the tasks' programs.
type Tables struct {
	Room     []int32   // layout, size, stride, view, opaque, horizon, margin, cells, bytes of a program, ahead [4], window [4, 3]
	Blank    []uint8   // the grid without doors and objects, with its margin
	Rewards  []float32 // of reaching the goal, by the number of steps
	Can      []uint8   // the possible uses of a tile, as bits
	Programs []uint8   // each: goal's kind, a, b, y, x; acts, rules, tiles; rules of kind, a, b, product; tiles
}

// Tables returns the tables of the tasks, with the programs in the same order.
func (w World) Tables(tasks []ID) (*Tables, error) {
	var programs []*program
	rules, tiles := 0, 0
	for _, id := range tasks {
		if err := w.CheckTask(int64(id)); err != nil {
			return nil, err
		}
		p := w.program(id)
		programs = append(programs, p)
		rules, tiles = max(rules, len(p.rules)), max(tiles, len(p.tiles))
	}
	if len(programs) == 0 {
		return nil, fmt.Errorf("step environments: %w", ErrNoTasks)
	}
	r, each := w.shared.room, (8+4*rules+tiles+3)/4*4
	t := &Tables{Rewards: r.rewards, Can: can[:], Programs: make([]uint8, 0, each*len(programs))}
	layout, opaque := 0, int32(0)
	for i, l := range Layouts {
		if l == r.layout {
			layout = i
		}
	}
	if r.opaque {
		opaque = 1
	}
	t.Room = []int32{int32(layout), int32(r.size), int32(r.stride), int32(r.view), opaque, int32(r.horizon), margin, int32(len(r.blank)), int32(each)}
	for _, v := range r.ahead {
		t.Room = append(t.Room, int32(v))
	}
	for _, v := range r.window {
		t.Room = append(t.Room, int32(v.first), int32(v.row), int32(v.column))
	}
	for _, v := range r.blank {
		t.Blank = append(t.Blank, uint8(v))
	}
	for i, p := range programs {
		g := p.goal
		t.Programs = append(t.Programs, g.kind, uint8(g.a), uint8(g.b), g.y, g.x, p.acts, uint8(len(p.rules)), uint8(len(p.tiles)))
		for _, u := range p.rules {
			t.Programs = append(t.Programs, u.kind, uint8(u.a), uint8(u.b), uint8(u.product))
		}
		for _, v := range p.tiles {
			t.Programs = append(t.Programs, uint8(v))
		}
		for len(t.Programs) < (i+1)*each {
			t.Programs = append(t.Programs, 0)
		}
	}
	return t, nil
}
