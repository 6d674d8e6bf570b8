// Package pickle reads the plain data in Python's pickles and executes nothing.
//
// What a reader could break: a pickle is a program that may call any function of any module. This
// package never looks one up. A name is a name (Global), a call is a note of what would have been
// called (Call), and both are let through only for the few names that arrays of NumPy and JAX and
// PyTorch's tensors are made of; whoever asked then reads the numbers out of the note. Nothing is
// allocated by a size that the file only claims.
package pickle

import (
	"fmt"
	"math"
)

// The values that Decode returns: nil, bool, int64, float64, string, []byte, Tuple, *List, *Dict,
// Global, *Call and Persistent.
type (
	// Tuple is a tuple.
	Tuple []any
	// List is a list; two places of a pickle may share one.
	List struct{ Items []any }
	// Dict is a dictionary in the order of its file.
	Dict struct{ Keys, Values []any }
	// Global is a name that the file refers to.
	Global struct{ Module, Name string }
	// Call is what the file would have called, with the state that it would have set afterwards.
	Call struct {
		What  Global
		Args  Tuple
		State any
	}
	// Persistent is a reference to something outside of the pickle: a tensor's storage.
	Persistent struct{ ID any }
)

func (g Global) String() string { return g.Module + "." + g.Name }

// Get is the value of a key that is a string.
func (d *Dict) Get(key string) (any, bool) {
	for i := len(d.Keys) - 1; i >= 0; i-- {
		if k, ok := d.Keys[i].(string); ok && k == key {
			return d.Values[i], true
		}
	}
	return nil, false
}

// Items is a list's or a tuple's; false for anything else.
func Items(v any) ([]any, bool) {
	switch v := v.(type) {
	case *List:
		return v.Items, true
	case Tuple:
		return v, true
	}
	return nil, false
}

// Number is an integer or a floating-point number, also one of NumPy's; false for anything else.
func Number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case *Call:
		if v.What.Name != "scalar" || len(v.Args) != 2 {
			return 0, false
		}
		data, isBytes := v.Args[1].([]byte)
		kind, err := dtype(v.Args[0])
		if !isBytes || err != nil || len(data) != kind.width {
			return 0, false
		}
		return kind.number(data), true
	}
	return 0, false
}

// Array is numbers with a shape, row-major.
type Array struct {
	Shape []int
	Data  []float64
}

// NumPy reads an array out of the call that would have made it; false where v is none. Arrays of
// JAX hold one of NumPy's.
func NumPy(v any) (a Array, ok bool, err error) {
	shape, kind, data, ok, err := raw(v)
	if !ok || err != nil {
		return a, ok, err
	}
	a.Shape, a.Data = shape, make([]float64, len(data)/kind.width)
	for i := range a.Data {
		a.Data[i] = kind.number(data[i*kind.width:])
	}
	return a, true, nil
}

// Bytes is NumPy for an array of bytes (u1), as they lie in the file.
func Bytes(v any) (shape []int, data []byte, ok bool, err error) {
	shape, k, data, ok, err := raw(v)
	if ok && err == nil && k != (kind{'u', 1}) {
		err = fmt.Errorf("an array of type %c%d where bytes are wanted", k.letter, k.width)
	}
	return shape, data, ok, err
}

// raw is an array's shape, type and bytes, which fit each other.
func raw(v any) (shape []int, k kind, data []byte, ok bool, err error) {
	c, ok := v.(*Call)
	if !ok {
		return nil, k, nil, false, nil
	}
	if c.What.Name == "_reconstruct_array" { // JAX's: NumPy's function, its arguments, its state, and more
		if len(c.Args) < 3 {
			return nil, k, nil, true, fmt.Errorf("an array without its numbers")
		}
		what, _ := c.Args[0].(Global)
		args, _ := c.Args[1].(Tuple)
		c = &Call{What: what, Args: args, State: c.Args[2]}
	}
	var parts [4]any // shape, dtype, order, bytes
	switch state, _ := c.State.(Tuple); {
	case c.What.Name == "_reconstruct" && len(state) == 5: // behind a version
		copy(parts[:], state[1:])
	case c.What.Name == "_frombuffer" && len(c.Args) == 4:
		parts = [4]any{c.Args[2], c.Args[1], c.Args[3] == "F", c.Args[0]}
	case c.What.Name != "_reconstruct" && c.What.Name != "_frombuffer":
		return nil, k, nil, false, nil
	}
	sizes, okShape := parts[0].(Tuple)
	fortran, okOrder := parts[2].(bool)
	data, okData := parts[3].([]byte)
	if !okShape || !okOrder || !okData {
		return nil, k, nil, true, fmt.Errorf("an array without its numbers")
	}
	k, err = dtype(parts[1])
	switch {
	case err != nil:
		return nil, k, nil, true, err
	case fortran && len(sizes) > 1:
		return nil, k, nil, true, fmt.Errorf("an array in Fortran's order: save a copy made by numpy.ascontiguousarray")
	}
	count := 1
	for _, s := range sizes {
		n, isInt := s.(int64)
		if !isInt || n < 0 || n > int64(len(data)) || int64(count)*n > int64(len(data)) {
			return nil, k, nil, true, fmt.Errorf("an array's shape is larger than its numbers")
		}
		shape, count = append(shape, int(n)), count*int(n)
	}
	if len(data) != count*k.width {
		return nil, k, nil, true, fmt.Errorf("an array of %d numbers has %d bytes", count, len(data))
	}
	return shape, k, data, true, nil
}

// kind is a type of numbers.
type kind struct {
	letter byte
	width  int
}

// dtype reads numpy.dtype('f8') with its state, whose second item is the order of the bytes.
func dtype(v any) (kind, error) {
	c, ok := v.(*Call)
	if !ok || c.What.Name != "dtype" || len(c.Args) == 0 {
		return kind{}, fmt.Errorf("an array without a type")
	}
	name, _ := c.Args[0].(string)
	if state, ok := c.State.(Tuple); ok && len(state) > 1 && state[1] == ">" {
		return kind{}, fmt.Errorf("an array with its bytes in reverse order")
	}
	if len(name) == 2 {
		k := kind{name[0], int(name[1] - '0')}
		if k.supported() {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("an array of type %.20q: whole and floating-point numbers are read", name)
}

func (k kind) supported() bool {
	switch k.letter {
	case 'f':
		return k.width == 4 || k.width == 8
	case 'i', 'u':
		return k.width == 1 || k.width == 2 || k.width == 4 || k.width == 8
	}
	return false
}

// number reads the first number of the bytes.
func (k kind) number(b []byte) float64 {
	var u uint64
	for i := range k.width {
		u |= uint64(b[i]) << (8 * i)
	}
	switch {
	case k.letter == 'f' && k.width == 8:
		return math.Float64frombits(u)
	case k.letter == 'f':
		return float64(math.Float32frombits(uint32(u)))
	case k.letter == 'i':
		shift := 64 - 8*k.width
		return float64(int64(u<<shift) >> shift)
	}
	return float64(u)
}

// Numbers reads numbers of a type that NumPy calls f4, f8, i1 to i8 or u1 to u8, from bytes in the
// usual order; false for other types.
func Numbers(name string) (number func([]byte) float64, width int, ok bool) {
	if len(name) != 2 {
		return nil, 0, false
	}
	k := kind{name[0], int(name[1] - '0')}
	return k.number, k.width, k.supported()
}
