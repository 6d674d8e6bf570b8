package testset

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"haul/internal/pickle"
	"haul/internal/vrp"
)

// The pickles of MVMoE (Zhou et al., 2024): tuples of a depot, customers, demands and a capacity
// as in Kool's, optionally followed by a limit of a route's length, and by services with the
// beginnings and the ends of windows.
//
// What a reader could break: in MVMoE a service must have ended when its window does, here it
// must have begun, so the window ends earlier by the service. A vehicle must be back at 4.6,
// which no file says. Only a file's name says whether its routes are open.

// limited is what an instance has beside Kool's parts.
type limited struct {
	limit                float64 // of a route's length; 0: none
	service, early, late []float64
}

// read takes the parts behind Kool's four.
func (l *limited) read(parts []any, left *int) (err error) {
	number := func(v any) bool { _, ok := pickle.Number(v); return ok }
	if len(parts) == 3 && number(parts[0]) && number(parts[1]) && number(parts[2]) {
		return nil // how Kool's code has drawn it
	}
	if len(parts) == 1 || len(parts) == 4 {
		x, ok := pickle.Number(parts[0])
		if !ok || !(x > 0) {
			return errors.New("its limit of a route's length is no number above 0")
		}
		l.limit, parts = x, parts[1:]
	}
	if len(parts) == 0 {
		return nil
	}
	if len(parts) != 3 {
		return fmt.Errorf("%d parts follow its capacity: a limit, or services, beginnings and ends of windows, or both are known", len(parts))
	}
	for k, to := range []*[]float64{&l.service, &l.early, &l.late} {
		if *to, err = numbers(parts[k], left); err != nil {
			return fmt.Errorf("its %s: %w", []string{"services", "beginnings of windows", "ends of windows"}[k], err)
		}
	}
	return nil
}

// put writes it into the problem.
func (l *limited) put(p *vrp.Problem) error {
	n := p.N()
	for v, d := range p.Demand {
		if d < 0 {
			return fmt.Errorf("the demand of customer %d is negative, %d: backhauls as MVMoE has them, which fill a vehicle that left full as it empties, are none of the rules here", v, d)
		}
	}
	if l.service != nil {
		if len(l.service) != n || len(l.early) != n || len(l.late) != n {
			return fmt.Errorf("%d customers, %d services, %d beginnings and %d ends of windows", n, len(l.service), len(l.early), len(l.late))
		}
		p.Service, p.Windows = append([]float64{0}, l.service...), [][]vrp.Window{{{From: 0, To: lastReturn}}}
		for v := range n {
			p.Windows = append(p.Windows, []vrp.Window{{From: l.early[v], To: l.late[v] - l.service[v]}})
		}
	}
	if l.limit > 0 {
		t := vrp.NewVehicleType(p.Capacity)
		t.MaxDistance = l.limit
		p.Capacity, p.Fleet = 0, []vrp.VehicleType{t}
	}
	return nil
}

// openByName opens the routes of a set whose file's name begins as MVMoE's of open routes do.
func (s *Set) openByName(path string) {
	if !strings.HasPrefix(strings.ToLower(filepath.Base(path)), "ovrp") {
		return
	}
	for _, p := range s.Problems {
		if p.Open = p.Fleet == nil; !p.Open {
			p.Fleet[0].End = vrp.None
		}
	}
	s.Note = "routes are open: the file's name says so, as MVMoE's do"
}
