package vrp

import (
	"errors"
	"strings"
	"testing"

	"haul/internal/limits"
)

// TestWithin: as many windows of a place as the limit allows, and one more.
func TestWithin(t *testing.T) {
	p := line(3)
	l := limits.ForService()
	if err := l.Raise([]string{"windows=3", "all-windows=4"}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lists []int
		want  limits.Name
	}{{[]int{0, 3, 1, 1}, -1}, {[]int{0, 4, 0, 0}, limits.Windows}, {[]int{0, 2, 2, 1}, -1}, {[]int{0, 3, 2, 0}, limits.AllWindows}} {
		p.Windows = nil
		for _, n := range c.lists {
			p.Windows = append(p.Windows, make([]Window, n))
		}
		err := p.Within(l)
		var over *limits.Error
		if errors.As(err, &over) != (c.want >= 0) || over != nil && over.Limit != c.want {
			t.Errorf("%v: %v", c.lists, err)
		}
	}
}

// TestSumsStayFinite: what may add up to more than sumMost is refused, part by part; what is just
// below is taken, and its cost is a number.
func TestSumsStayFinite(t *testing.T) {
	for what, edit := range map[string]func(p *Problem, x float64){
		"times":     func(p *Problem, x float64) { p.Service = []float64{0, x, x, x} },
		"distances": func(p *Problem, x float64) { p.X[3] = x },
		"costs": func(p *Problem, x float64) {
			fleet(p, func(k *VehicleType) { k.DistanceCost = x })
		},
		"costs of prizes": func(p *Problem, x float64) { p.Prize = []float64{0, x, x, x} },
	} {
		p := line(3)
		edit(p, 1e101)
		what, _, _ := strings.Cut(what, " ")
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "its "+what+" may add up to") {
			t.Errorf("%s: %v", what, err)
		}
		p = line(3)
		edit(p, 1e80)
		e, err := Evaluate(p, Solution{Routes: [][]int32{{1, 2, 3}}})
		if bad := p.Check(); bad != nil || err != nil || !(e.Cost < sumMost) {
			t.Errorf("%s: %v, %v, %+v", what, bad, err, e)
		}
	}
}
