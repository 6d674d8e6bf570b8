package kernel

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxSums is how many sums a program may have.
const MaxSums = 32

// Sums are numbers by name. It is a value without memory of its own, so that reading a step's takes
// none.
type Sums struct {
	names  []string // shared, never written
	values [MaxSums]float64
}

// NewSums puts values beside their names, of which there are at most MaxSums.
func NewSums(names []string, values []float64) Sums {
	s := Sums{names: names}
	copy(s.values[:len(names)], values)
	return s
}

// SumsOf takes them from a map.
func SumsOf(values map[string]float64) Sums {
	s := Sums{names: slices.Sorted(maps.Keys(values))}
	for i, name := range s.names {
		s.values[i] = values[name]
	}
	return s
}

// Names lists them.
func (s *Sums) Names() []string { return s.names }

// Of is the one of that name; 0 where there is none.
func (s *Sums) Of(name string) float64 {
	if i := slices.Index(s.names, name); i >= 0 {
		return s.values[i]
	}
	return 0
}

// add takes memory only where the names differ.
func (s *Sums) add(n *Sums) {
	if len(s.names) == 0 {
		*s = *n
		return
	}
	for i, name := range n.names {
		at := slices.Index(s.names, name)
		if at < 0 && len(s.names) == MaxSums {
			continue // of some other program, and nobody can ask for all of them
		}
		if at < 0 {
			at = len(s.names)
			s.names = append(slices.Clone(s.names), name)
		}
		s.values[at] += n.values[i]
	}
}

// Equal tells whether both have the same numbers under the same names.
func (s Sums) Equal(n Sums) bool {
	return len(s.names) == len(n.names) && !slices.ContainsFunc(s.names, func(name string) bool {
		return !slices.Contains(n.names, name) || s.Of(name) != n.Of(name)
	})
}

// number is a float64 that JSON can hold whatever it is: a sum of logarithms may be minus infinity.
type number float64

// MarshalJSON writes what is no number in quotes.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads it back.
func (n *number) UnmarshalJSON(text []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	*n = number(v)
	return err
}

// MarshalJSON writes an object, a member per name.
func (s Sums) MarshalJSON() ([]byte, error) {
	out := map[string]number{}
	for name, v := range Named(s.names, s.values[:len(s.names)]) {
		out[name] = number(v)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads it back.
func (s *Sums) UnmarshalJSON(text []byte) error {
	var values map[string]number
	if err := json.Unmarshal(text, &values); err != nil {
		return err
	}
	if len(values) > MaxSums {
		return fmt.Errorf("%d sums, there is room for %d", len(values), MaxSums)
	}
	plain := map[string]float64{}
	for name, v := range values {
		plain[name] = float64(v)
	}
	*s = SumsOf(plain)
	return nil
}
