package report

import (
	"testing"
)

func TestRankNumbers(t *testing.T) {
	for _, c := range []struct {
		files []string
		ranks []int // as the traces tell, -1 for none
		want  []int
	}{
		{[]string{"rank3.json", "rank10.json"}, []int{-1, -1}, []int{3, 10}},
		{[]string{"worker1_step_12.json", "worker0_step_12.json"}, []int{0, 0}, []int{1, 0}},
		{[]string{"a.json", "b.json"}, []int{5, 4}, []int{5, 4}},
		{[]string{"a.json", "b.json"}, []int{-1, -1}, []int{0, 1}},
	} {
		var list []*Report
		for i, f := range c.files {
			r := &Report{File: f}
			if c.ranks[i] >= 0 {
				r.Rank = &c.ranks[i]
			}
			list = append(list, r)
		}
		numberRanks(list)
		for i, r := range list {
			if *r.Rank != c.want[i] {
				t.Errorf("%v: rank %d, want %d", c.files, *r.Rank, c.want[i])
			}
		}
	}
}
