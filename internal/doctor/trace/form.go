package trace

import (
	"bytes"
	"strings"
)

// A form is the shapes and element types of an operator's inputs. Programs use few forms many
// times, so each form is stored once and records hold its number. Parsing never fails: an
// unreadable input counts as an input without a shape.

// maxInputs limits the inputs per operator. Longer lists of tensors give no more information.
const maxInputs = 64

// Form describes the inputs of an operator. Values holds its scalars as text, by position, for
// operators whose work depends on them, such as strides of convolutions and masks of attention.
type Form struct {
	Inputs []Input
	Values []string
}

// Value returns the scalar or the list of scalars at a position, or "" if none was recorded.
func (f *Form) Value(i int) string {
	if i < len(f.Values) {
		return f.Values[i]
	}
	return ""
}

// Numbers returns the whole numbers of the value at a position, or nil if it is something else.
func (f *Form) Numbers(i int) []int64 {
	v := strings.Trim(f.Value(i), "[]")
	if strings.Trim(v, "0123456789, ") != "" {
		return nil
	}
	return numbers([]byte(v))
}

// Input is one input. Scalars and lists have no dimensions.
type Input struct {
	Dims  []int64
	Width int // bytes per element; 0 if the type is unknown or not a tensor's
	FP64  bool
}

// Elements returns the number of elements of a tensor, or 0 for other inputs.
func (i Input) Elements() float64 {
	if len(i.Dims) == 0 {
		return 0
	}
	n := 1.0
	for _, d := range i.Dims {
		n *= float64(d)
	}
	return n
}

// Inner is an operator inside another operator that rules examine separately.
type Inner struct {
	Start int64
	Dur   float32
	Name  uint32
	Form  uint32
}

func (i *Inner) End() int64 { return i.Start + int64(i.Dur) }

func formOf(dims, types, values []byte) Form {
	var f Form
	for depth, i := 0, 0; i < len(dims) && len(f.Inputs) < maxInputs; i++ {
		switch dims[i] {
		case '[':
			if depth++; depth == 2 {
				end := bytes.IndexAny(dims[i+1:], "[]")
				if end < 0 {
					return f
				}
				if dims[i+1+end] == '[' { // a list of tensors
					f.Inputs = append(f.Inputs, Input{})
					continue
				}
				f.Inputs = append(f.Inputs, Input{Dims: numbers(dims[i+1 : i+1+end])})
			}
		case ']':
			depth--
		}
	}
	at := 0
	for i := 0; i < len(types) && at < len(f.Inputs); i++ {
		if types[i] != '"' {
			continue
		}
		w, next, err := text(types, i)
		if err != nil {
			break
		}
		if len(f.Inputs[at].Dims) > 0 {
			f.Inputs[at].Width = widthOf(w)
			f.Inputs[at].FP64 = string(w) == "double"
		}
		at, i = at+1, next-1
	}
	for i := 0; i < len(values) && len(f.Values) < maxInputs; i++ {
		if values[i] != '"' {
			continue
		}
		w, next, err := text(values, i)
		if err != nil {
			break
		}
		f.Values, i = append(f.Values, string(w)), next-1
	}
	return f
}

func numbers(b []byte) []int64 {
	var out []int64
	for _, w := range bytes.Split(b, []byte(",")) {
		if w = bytes.TrimSpace(w); len(w) > 0 {
			out = append(out, int64(count(w)))
		}
	}
	return out
}
