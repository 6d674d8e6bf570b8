// Package native runs the rules of a problem as Go compiled them: the same file as an ordinary
// package, called by reflection. It is slow and for tests: the compiler of rules has no part in it.
package native

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"haul/internal/rules"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
	"haul/problem"
)

// Form is the native form of a problem's rules.
type Form struct {
	p        *rules.Problem
	of       map[string]reflect.Value // values of the types Instance, Node, Vehicle and Settings, by name
	settings reflect.Value
	steps    func(int32) int32
	out      []uint32
	row      []uint32
}

// New returns the native form. types are pointers to an Instance, a Node, a Vehicle and, if the
// file has them, Settings of the package; steps is its function Steps, nil if there is none.
// The settings are p's.
func New(p *rules.Problem, types []any, steps func(int32) int32) (*Form, error) {
	f := &Form{p: p, of: map[string]reflect.Value{}, steps: steps, row: make([]uint32, len(p.Node))}
	for _, t := range types {
		v := reflect.ValueOf(t).Elem()
		name, _, _ := strings.Cut(v.Type().Name(), "_") // random files have a suffix
		f.of[name] = v
	}
	for name, want := range map[string]int{"Instance": len(p.Instance), "Node": len(p.Node), "Vehicle": len(p.Vehicle)} {
		if got := size(f.of[name]); got != want {
			return nil, fmt.Errorf("native: %s has %d words, the file %d", name, got, want)
		}
	}
	if s, ok := f.of["Settings"]; ok {
		f.settings = reflect.New(s.Type())
		if fill(f.settings.Elem(), p.SettingWords()) != len(p.SettingWords()) {
			return nil, fmt.Errorf("native: Settings differ from the file's")
		}
	}
	return f, nil
}

// parameters lists, after the receiver, the parameters of each method by source.
var parameters = map[parse.Method][]ir.Source{
	parse.Before:       {ir.To, ir.Depot},
	parse.DrawInstance: {ir.Random, ir.Settings, ir.Count},
	parse.DrawNode:     {ir.Random, ir.Settings, ir.Instance, ir.Depot},
	parse.Derive:       {ir.Instance, ir.Depot},
	parse.After:        {ir.To},
	parse.Features:     {ir.Instance},
	parse.Start:        {ir.Instance},
	parse.Fits:         {ir.Instance, ir.At, ir.To},
	parse.Returns:      {ir.Instance, ir.At, ir.To, ir.Unvisited},
	parse.Move:         {ir.Instance, ir.At, ir.To},
	parse.Stays:        {ir.Instance, ir.Vehicle},
	parse.Ended:        {ir.Instance, ir.At, ir.Unvisited},
	parse.Stuck:        {ir.Instance, ir.Unvisited},
	parse.Context:      {ir.Instance, ir.At, ir.Unvisited},
}

// receivers are the sources of the methods' receivers, and their types.
func receiver(m parse.Method) (ir.Source, string) {
	switch m {
	case parse.Before, parse.DrawInstance, parse.After:
		return ir.Instance, "Instance"
	case parse.DrawNode, parse.Derive, parse.Features, parse.Stays:
		return ir.To, "Node"
	}
	return ir.Vehicle, "Vehicle"
}

// Call is rules.Form.
func (n *Form) Call(m parse.Method, f *rules.Frame) []uint32 {
	n.out = n.out[:0]
	if m == parse.Steps {
		n.out = append(n.out, uint32(n.steps(int32(f[ir.Count][0]))))
		return n.out
	}
	source, name := receiver(m)
	recv := n.pointer(name, f[source])
	var args []reflect.Value
	var to reflect.Value
	for _, p := range parameters[m] {
		switch p {
		case ir.Random:
			words := f[ir.Random]
			args = append(args, reflect.ValueOf(problem.NewRandom(func(k int32) uint32 { return words[k] })))
		case ir.Settings:
			if n.settings.IsValid() {
				args = append(args, n.settings)
			}
		case ir.Count, ir.Unvisited:
			args = append(args, reflect.ValueOf(int32(f[p][0])))
		case ir.Instance:
			args = append(args, n.pointer("Instance", f[p]))
		case ir.Vehicle:
			args = append(args, n.pointer("Vehicle", f[p]))
		default:
			args = append(args, n.pointer("Node", f[p]))
			if p == ir.To {
				to = args[len(args)-1]
			}
		}
	}
	for _, r := range recv.MethodByName(parse.NameOf(m)).Call(args) {
		n.out = words(n.out, r)
	}
	switch m {
	case parse.Before, parse.DrawInstance, parse.DrawNode, parse.Derive, parse.After, parse.Start, parse.Move:
		n.out = words(n.out, recv.Elem())
	}
	if m == parse.Move && n.p.Amount >= 0 {
		n.out = append(n.out, words(nil, to.Elem())[n.p.Amount])
	}
	return n.out
}

// Fits is rules.Form.
func (n *Form) Fits(f *rules.Frame, in *rules.Instance, amounts []uint32, mask []uint64) {
	clear(mask)
	own := *f
	own[ir.To] = n.row
	for j := range n.p.Nodes(in.Customers) {
		in.Row(n.row, j)
		if amounts != nil {
			n.row[n.p.Amount] = amounts[j]
		}
		mask[j/64] |= uint64(n.Call(parse.Fits, &own)[0]) << (j % 64)
	}
}

// pointer returns a pointer to a struct of that type with these words.
func (n *Form) pointer(name string, w []uint32) reflect.Value {
	v := reflect.New(n.of[name].Type())
	fill(v.Elem(), w)
	return v
}

// size returns the number of words of a value.
func size(v reflect.Value) int { return len(words(nil, v)) }

// fill sets a value's words, in the order of its fields, and returns how many it has.
func fill(v reflect.Value, w []uint32) int {
	switch v.Kind() {
	case reflect.Struct:
		n := 0
		for i := range v.NumField() {
			n += fill(v.Field(i), w[n:])
		}
		return n
	case reflect.Array:
		n := 0
		for i := range v.Len() {
			n += fill(v.Index(i), w[n:])
		}
		return n
	case reflect.Float32:
		v.SetFloat(float64(math.Float32frombits(w[0])))
	case reflect.Bool:
		v.SetBool(w[0] != 0)
	default:
		v.SetInt(int64(int32(w[0])))
	}
	return 1
}

// words appends a value's words in the order of its fields.
func words(to []uint32, v reflect.Value) []uint32 {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			to = words(to, v.Field(i))
		}
		return to
	case reflect.Array:
		for i := range v.Len() {
			to = words(to, v.Index(i))
		}
		return to
	case reflect.Float32:
		return append(to, math.Float32bits(float32(v.Float())))
	case reflect.Bool:
		if v.Bool() {
			return append(to, 1)
		}
		return append(to, 0)
	}
	return append(to, uint32(int32(v.Int())))
}
