package rules

import (
	"fmt"
	"slices"

	"haul/internal/rules/parse"
)

// Compared is a form whose results are compared with another's, call by call. The first difference
// is kept in Err.
type Compared struct {
	Form    // whose results are returned
	Other   Form
	Problem *Problem
	Name    string // of Other in messages
	Err     error
	mask    []uint64
}

// Call is Form.
func (c *Compared) Call(m parse.Method, f *Frame) []uint32 {
	want := c.Form.Call(m, f)
	got := c.Other.Call(m, f)
	if c.Err != nil {
		return want
	}
	kinds := c.Problem.Outputs(m)
	if len(got) != len(want) || len(want) != len(kinds) {
		c.Err = fmt.Errorf("%s: %s returns %d words, the plain form %d, the file %d", m, c.Name, len(got), len(want), len(kinds))
		return want
	}
	for i, kind := range kinds {
		if !Same(kind, got[i], want[i]) {
			c.Err = fmt.Errorf("%s: output %d of %s is %s, of the plain form %s", m, i, c.Name, parse.ShowWord(kind, got[i]), parse.ShowWord(kind, want[i]))
			return want
		}
	}
	return want
}

// Fits is Form.
func (c *Compared) Fits(f *Frame, in *Instance, amounts []uint32, mask []uint64) {
	c.Form.Fits(f, in, amounts, mask)
	c.mask = slices.Grow(c.mask[:0], len(mask))[:len(mask)]
	c.Other.Fits(f, in, amounts, c.mask)
	for i := range mask {
		if c.mask[i] != mask[i] && c.Err == nil {
			c.Err = fmt.Errorf("%s: nodes %d and following: %s fits %#x, the plain form %#x", parse.Fits, i*64, c.Name, c.mask[i], mask[i])
		}
	}
}
