package parse

import (
	"fmt"
	"go/types"

	"haul/internal/rules/ir"
)

// Field is one word of a struct: its path, such as Home or Depots[1].X, and how rules read it.
type Field struct {
	Path string
	Kind ir.Kind
}

// Words returns the words of a type in the order of its fields; ok is false if a part of it is no
// float32, int32, bool, array or struct.
func Words(t types.Type) (fields []Field, ok bool) {
	if Size(t) > mostWords {
		return nil, false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		kind, ok := KindOf(t)
		return []Field{{"", kind}}, ok
	case *types.Array:
		each, ok := Words(u.Elem())
		for i := range u.Len() {
			for _, e := range each {
				fields = append(fields, Field{fmt.Sprintf("[%d]", i) + dotted(e.Path), e.Kind})
			}
		}
		return fields, ok
	case *types.Struct:
		for i := range u.NumFields() {
			each, ok := Words(u.Field(i).Type())
			if !ok {
				return nil, false
			}
			for _, e := range each {
				fields = append(fields, Field{u.Field(i).Name() + dotted(e.Path), e.Kind})
			}
		}
		return fields, true
	}
	return nil, false
}

func dotted(path string) string {
	if path == "" || path[0] == '[' {
		return path
	}
	return "." + path
}

// Size returns the number of words of a type that Words accepts, and a number above mostWords for
// a type that is too large.
func Size(t types.Type) int {
	switch u := t.Underlying().(type) {
	case *types.Array:
		return int(min(u.Len(), mostWords+1)) * min(Size(u.Elem()), mostWords+1)
	case *types.Struct:
		n := 0
		for i := range u.NumFields() {
			n = min(n+Size(u.Field(i).Type()), mostWords+1)
		}
		return n
	}
	return 1
}

// Offset returns the word at which field i of a struct begins.
func Offset(s *types.Struct, i int) int {
	n := 0
	for k := range i {
		n += Size(s.Field(k).Type())
	}
	return n
}

// KindOf returns how rules read a word of a basic type.
func KindOf(t types.Type) (ir.Kind, bool) {
	b, ok := t.Underlying().(*types.Basic)
	if !ok {
		return 0, false
	}
	switch b.Kind() {
	case types.Float32, types.UntypedFloat:
		return ir.Float32, true
	case types.Int32, types.Int, types.UntypedInt, types.UntypedRune:
		return ir.Int32, true
	case types.Bool, types.UntypedBool:
		return ir.Bool, true
	}
	return 0, false
}

// Most holds the limits of a problem.
var Most = struct{ Instance, Node, Vehicle, Settings, Features, Context, Depots int }{64, 24, 32, 64, 32, 16, 8}

// mostWords bounds the words of one variable.
const mostWords = 1024
