package trace

import (
	"bytes"
	"strings"
)

// A form is what an operator worked on: the shape and the element type of each input. Programs use
// few forms many times, so each is kept once and records carry its number. Nothing here may fail:
// what cannot be read is an input without a shape.

// maxInputs bounds the inputs of an operator; lists of thousands of tensors say no more.
const maxInputs = 64

// Form is the inputs of an operator. Values holds its scalars as they are written, by position, for
// the operators whose work depends on them: strides of convolutions, masks of attention.
type Form struct {
	Inputs []Input
	Values []string
}

// Value is the scalar, or the list of scalars, at a position; empty where none was recorded.
func (f *Form) Value(i int) string {
	if i < len(f.Values) {
		return f.Values[i]
	}
	return ""
}

// Numbers are the whole numbers of the value at a position; nil where it is something else.
func (f *Form) Numbers(i int) []int64 {
	v := strings.Trim(f.Value(i), "[]")
	if strings.Trim(v, "0123456789, ") != "" {
		return nil
	}
	return numbers([]byte(v))
}

// Input is one of them. Scalars and lists have no dimensions.
type Input struct {
	Dims  []int64
	Width int // bytes of an element; 0 where the type is unknown or no tensor's
	FP64  bool
}

// Elements of a tensor; 0 for what is none.
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

// Inner is an operator inside another one that is looked at by itself.
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
