package model

import (
	"haul/internal/vrp"
)

// Distances as the problem has them, for first routes and neighbour lists.

// FloatMatrix answers distances between nodes.
type FloatMatrix struct {
	P      *vrp.Problem
	N      int       // nodes
	M      []float64 // nil: ask p
	OneWay bool      // some distance differs from the way back
}

func NewMetricTable(p *vrp.Problem) *FloatMatrix {
	n := len(p.Demand)
	t := &FloatMatrix{P: p, N: n}
	if p.Metric == vrp.Explicit {
		t.M = p.Weights
		for i := 0; i < n && !t.OneWay; i++ {
			for j := range i {
				if t.M[i*n+j] != t.M[j*n+i] {
					t.OneWay = true
					break
				}
			}
		}
		// An empty route is written as the leg depot-depot, which must cost nothing.
		if t.M[0] != 0 {
			t.M = append([]float64(nil), p.Weights...)
			t.M[0] = 0
		}
		return t
	}
	if n <= MatrixNodes {
		t.M = make([]float64, n*n)
		for i := range n {
			for j := range i {
				d := p.Dist(i, j)
				t.M[i*n+j], t.M[j*n+i] = d, d
			}
		}
	}
	return t
}

func (t *FloatMatrix) D(i, j int32) float64 {
	if t.M != nil {
		return t.M[int(i)*t.N+int(j)]
	}
	return t.P.Dist(int(i), int(j))
}
