package vrp

import (
	"haul/internal/limits"
)

// Within returns an error that names the first limit which the problem passes, nil if none. The
// problem need not pass Check. It takes time in proportion to the lengths of the problem's lists.
func (p *Problem) Within(l *limits.Set) error {
	of := func(name limits.Name, n int) func() error { return func() error { return l.Over(name, int64(n)) } }
	matrix := len(p.Weights)
	for _, f := range p.Profiles {
		matrix += len(f.Distance) + len(f.Duration)
	}
	var windows, skills, allowed, numbers, members int
	var err error
	most := func(name limits.Name, n int) {
		if err == nil {
			err = l.Over(name, int64(n))
		}
	}
	several := func(n int) int { // one window costs no search
		if n == 1 {
			return 0
		}
		return n
	}
	for _, w := range p.Windows {
		windows += several(len(w))
		most(limits.Windows, len(w))
	}
	for _, k := range p.Needs {
		skills += len(k)
		most(limits.Skills, len(k))
	}
	for i := range p.Fleet {
		t := &p.Fleet[i]
		most(limits.Breaks, len(t.Breaks))
		most(limits.Reloads, len(t.Reloads))
		most(limits.Skills, len(t.Skills))
		allowed, numbers, skills = allowed+len(t.Allowed), numbers+len(t.Numbers), skills+len(t.Skills)
		for _, b := range t.Breaks {
			windows += several(len(b.Windows))
			most(limits.Windows, len(b.Windows))
		}
	}
	for _, g := range p.Groups {
		members += len(g.Members)
	}
	for _, check := range []func() error{
		of(limits.Places, len(p.Demand)), of(limits.Depots, p.Depots), of(limits.Matrix, matrix), of(limits.Profiles, len(p.Profiles)),
		of(limits.Dimensions, len(p.Dimensions)), of(limits.Types, len(p.Fleet)), of(limits.Groups, len(p.Groups)), of(limits.Places, members),
		of(limits.Shipments, len(p.Shipments)), func() error { return err }, of(limits.AllWindows, windows), of(limits.AllSkills, skills),
		of(limits.Allowed, allowed), of(limits.Numbers, numbers),
	} {
		if bad := check(); bad != nil {
			return bad
		}
	}
	return nil
}
