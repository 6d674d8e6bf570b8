package solve

import (
	"fmt"
	"strings"

	"haul/internal/vrp"
)

// Bounds are the customers that a caller lets a method have at most, by the method's name, where
// that is fewer than the table says. A server has others than a command line.
type Bounds map[string]int

func (b Bounds) of(m *Method) int {
	most, ok := b[m.Name]
	switch {
	case !ok:
		return m.Most
	case m.Most > 0:
		return min(m.Most, most)
	}
	return most
}

// Most is how many customers a method takes within the bounds; 0: any number.
func (b Bounds) Most(name string) int {
	if m := Find(name); m != nil {
		return b.of(m)
	}
	return 0
}

// Refusal says that a method cannot solve a problem. It is one line.
type Refusal struct {
	Method  string
	Unknown bool // there is no such method: what was typed is wrong, whatever the problem
	text    string
}

func (r *Refusal) Error() string { return r.text }

// Known refuses a name that is none of the methods that a user can give; also are names that the
// caller takes beside them.
func Known(name string, also ...string) error {
	if m := Find(name); m != nil && m.Named {
		return nil
	}
	names := Named()
	for _, other := range also {
		if name == other {
			return nil
		}
		names = append(names, other)
	}
	last := len(names) - 1
	return &Refusal{Method: name, Unknown: true,
		text: fmt.Sprintf("unknown method %q: use %s or %s", name, strings.Join(names[:last], ", "), names[last])}
}

// Choose is the method of a name for a problem, or where the name is "" the table's default. It
// refuses what the method does not honour and what is too large for it.
func Choose(p *vrp.Problem, name string, bounds Bounds) (*Method, error) {
	if name == "" {
		for _, m := range table {
			if reaches(m.Alone, p.N()) && m.refuse(p, bounds) == "" {
				return m, nil
			}
		}
		name = Search // which says what it does not know
	}
	m := Find(name)
	if m == nil {
		return nil, Known(name)
	}
	why := m.refuse(p, bounds)
	if why == "" || m.asked != nil && bounds == nil && m.asked(p) == nil {
		return m, nil
	}
	if other := instead(m, p, bounds); other != "" {
		why += ": use " + other
	}
	return nil, &Refusal{Method: m.Name, text: why}
}

// ForMany is the method for many generated problems of n customers: the one of the name, or the
// default.
func ForMany(name string, n int) (*Method, error) {
	if name == "" {
		for _, m := range table {
			if reaches(m.Many, n) {
				name = m.Name
				break
			}
		}
	}
	m := Find(name)
	if m == nil {
		return nil, Known(name)
	}
	if m.Most > 0 && n > m.Most {
		return nil, &Refusal{Method: m.Name, text: m.tooMany(n, m.Most) + ": use " + Savings}
	}
	return m, nil
}

// Solves says whether a method honours all of a problem within the bounds.
func Solves(name string, p *vrp.Problem, bounds Bounds) bool {
	m := Find(name)
	return m != nil && m.refuse(p, bounds) == ""
}

// Best is the optimum's method where a problem is small enough to be solved by it for a comparison
// beside another method; false where it is not.
func Best(p *vrp.Problem, bounds Bounds) bool {
	return reaches(Find(Exact).Alone, p.N()) && Solves(Exact, p, bounds)
}

func reaches(limit, n int) bool { return limit < 0 || n <= limit && limit > 0 }

// refuse says in one line what keeps the method from a problem, "" where nothing does.
func (m *Method) refuse(p *vrp.Problem, bounds Bounds) string {
	if m.unknown != nil {
		if bad := m.unknown(p); bad != nil {
			return fmt.Sprintf("%s knows %s, and %s is not such a problem: %s", m.Name, m.Knows, nameOf(p), bad)
		}
	}
	if most := bounds.of(m); most > 0 && p.N() > most {
		return m.tooMany(p.N(), most)
	}
	return ""
}

func (m *Method) tooMany(n, most int) string {
	return fmt.Sprintf("%s takes up to %d customers, these are %d", m.Name, most, n)
}

// instead is the first other method that a user can name and that solves the problem.
func instead(m *Method, p *vrp.Problem, bounds Bounds) string {
	for _, other := range table {
		if other != m && other.Named && other.refuse(p, bounds) == "" {
			return other.Name
		}
	}
	return ""
}

func nameOf(p *vrp.Problem) string {
	if p.Name == "" {
		return "this"
	}
	return p.Name
}
