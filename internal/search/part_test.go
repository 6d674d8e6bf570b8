package search

import (
	"testing"

	"haul/internal/search/model"
)

// A part of a problem without a table has the distances that the problem has, both ways.
func TestPartsHaveTheProblemsDistances(t *testing.T) {
	p := scattered(model.TableNodes+1, 60)
	for _, open := range []bool{false, true} {
		p.Open = open
		g, err := wholeOf(p)
		if err != nil {
			t.Fatal(err)
		}
		m := newMetric(p)
		part := g.part(m, []int32{7, 3000, 12, 2999, 1}, make([]int32, m.nodes))
		for i, v := range part.node {
			for j, w := range part.node {
				want := int32(0)
				if i != j {
					want = m.measure(int(v), int(w))
				}
				if out, in := part.out[i*part.nodes+j], part.in[j*part.nodes+i]; out != want || in != want {
					t.Errorf("open %v: from %d to %d is %d and %d, want %d", open, v, w, out, in, want)
				}
			}
		}
	}
}

func BenchmarkPart(b *testing.B) {
	p := scattered(model.TableNodes+1, 60)
	g, err := wholeOf(p)
	if err != nil {
		b.Fatal(err)
	}
	m := newMetric(p)
	customers, local := make([]int32, 500), make([]int32, m.nodes)
	for i := range customers {
		customers[i] = int32(i + 1)
	}
	for b.Loop() {
		g.part(m, customers, local)
	}
}
