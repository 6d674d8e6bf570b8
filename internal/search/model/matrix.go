package model

// Matrices of distances and durations between locations.

// Matrix answers distances or durations between places in units. Past the last place lies one that
// is nowhere: the end of an open route, at distance 0 from all.
type Matrix struct {
	N    int
	Cell []int32 // nil if there are too many places
	Back []int32 // the same the other way round; nil if it is the same
	F    func(i, j int32) int32
}

func (g *Matrix) At(i, j int32) int32 {
	if g.Cell == nil {
		return g.F(i, j)
	}
	return g.Cell[int(i)*g.N+int(j)]
}

func (m *Compiled) NewGrid(void bool, f func(i, j int) int32) *Matrix {
	n := m.Nodes
	g := &Matrix{N: n, F: func(i, j int32) int32 {
		if i == j || int(i) >= n || int(j) >= n {
			return 0
		}
		return f(int(i), int(j))
	}}
	if n <= TableGeneral {
		if void {
			g.N = n + 1
		}
		g.Cell = make([]int32, g.N*g.N)
		if m.BothWays() {
			for i := range n {
				for j := range i {
					d := f(i, j)
					g.Cell[i*g.N+j], g.Cell[j*g.N+i] = d, d
				}
			}
			return g
		}
		for i := range n {
			for j := range n {
				g.Cell[i*g.N+j] = g.F(int32(i), int32(j))
			}
		}
		g.transpose()
	}
	return g
}

// transpose makes the distances the other way round, where they differ.
func (g *Matrix) transpose() {
	for i := range g.N {
		for j := range i {
			if g.Cell[i*g.N+j] != g.Cell[j*g.N+i] {
				g.Back = make([]int32, len(g.Cell))
				for i := range g.N {
					for j := range g.N {
						g.Back[j*g.N+i] = g.Cell[i*g.N+j]
					}
				}
				return
			}
		}
	}
}

// Rows is the distances from a place and to it; nil if there is no table.
func (g *Matrix) Rows(v int32) (from, to []int32) {
	if g.Cell == nil {
		return nil, nil
	}
	from = g.Cell[int(v)*g.N:][:g.N]
	to = from
	if g.Back != nil {
		to = g.Back[int(v)*g.N:][:g.N]
	}
	return from, to
}
