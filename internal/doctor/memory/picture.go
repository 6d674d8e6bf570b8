package memory

import (
	"fmt"
	"strings"
)

// Band is one kind's part of the picture: the outline of its area over the events of a recording.
type Band struct {
	Name   string
	Points string // of a polygon in a box of Width by Height
}

// Width and Height are the picture's box.
const (
	Width  = 1000
	Height = 220
)

// columns is the number of points along the events. A column shows the fullest
// of its events, so that no peak falls between two columns.
const columns = 400

// Picture returns the areas of the kinds from the bottom to the top of the picture.
func (rep *Report) Picture() []Band {
	r := rep.r
	if len(r.allocated) == 0 || rep.Peak == 0 {
		return nil
	}
	n := min(columns, len(r.allocated))
	at := make([]int, n) // the event that each column shows
	column := make([]int, len(r.allocated))
	for i := range r.allocated {
		c := i * n / len(r.allocated)
		column[i] = c
		if c > 0 && column[i-1] != c || i == 0 || r.allocated[i] > r.allocated[at[c]] {
			at[c] = i
		}
	}
	var levels [kinds][]float64
	for k := range levels {
		levels[k] = make([]float64, n)
	}
	for i := range r.uses {
		u := &r.uses[i]
		first, last := 0, n-1
		if u.From >= 0 {
			first = column[u.From]
		}
		if u.To < len(column) {
			last = column[u.To]
		}
		for c := first; c <= last; c++ {
			if u.inUse(at[c]) {
				levels[u.Kind][c] += mib(float64(u.Size))
			}
		}
	}
	var out []Band
	base := make([]float64, n)
	for k, level := range levels {
		top := make([]float64, n)
		any := false
		for c := range level {
			top[c] = base[c] + level[c]
			any = any || level[c] > 0
		}
		if any {
			out = append(out, Band{Kind(k).String(), outline(base, top, rep.Peak)})
		}
		base = top
	}
	return out
}

// outline is the polygon between two curves.
func outline(base, top []float64, peak float64) string {
	var b strings.Builder
	x := func(c int) float64 { return Width * float64(c) / float64(max(1, len(top)-1)) }
	for c, v := range top {
		fmt.Fprintf(&b, "%.1f,%.1f ", x(c), Height*(1-v/peak))
	}
	for c := len(base) - 1; c >= 0; c-- {
		fmt.Fprintf(&b, "%.1f,%.1f ", x(c), Height*(1-base[c]/peak))
	}
	return strings.TrimSpace(b.String())
}
