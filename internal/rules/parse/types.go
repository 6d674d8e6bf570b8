package parse

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"math"
	"reflect"
	"strconv"
	"strings"

	"haul/internal/rules/ir"
)

// Key is a field of Settings: a key below `problem` of a config.
type Key struct {
	Name                 string
	Kind                 ir.Kind
	Default, Least, Most uint32 // words
	HasDefault           bool   // else the config must give the key
	HasLeast, HasMost    bool
	Doc                  string
}

// findTypes finds Instance, Node, Vehicle and Settings.
func (f *File) findTypes() (list ErrorList) {
	if list = f.missingTypes(); len(list) > 0 {
		return list
	}
	find := func(name string, to **types.Named, most int) {
		obj, ok := f.Pkg.Scope().Lookup(name).(*types.TypeName)
		if !ok {
			return
		}
		named := obj.Type().(*types.Named)
		fields, ok := Words(named)
		switch {
		case !ok && Size(named) > mostWords || ok && len(fields) > most:
			list = append(list, f.Errorf(obj.Pos(), "keep what follows from other fields in a local variable", "type %s has %s words; at most %d fit", name, atLeast(named), most))
		case !ok:
			list = append(list, f.badField(obj, named)...)
		default:
			*to = named
		}
	}
	find("Instance", &f.Instance, Most.Instance)
	find("Node", &f.Node, Most.Node)
	find("Vehicle", &f.Vehicle, Most.Vehicle)
	find("Settings", &f.Settings, Most.Settings)
	if f.Settings != nil {
		list = append(list, f.readKeys()...)
	}
	return list
}

// missingTypes names the types that the file leaves out, or that are no structs.
func (f *File) missingTypes() (list ErrorList) {
	for _, name := range []string{"Instance", "Node", "Vehicle", "Settings"} {
		obj, ok := f.Pkg.Scope().Lookup(name).(*types.TypeName)
		switch {
		case !ok && name != "Settings":
			list = append(list, f.Errorf(f.AST.Name.Pos(), "write type "+name+" struct{...}", "type %s is missing", name))
		case ok:
			if named, isNamed := obj.Type().(*types.Named); !isNamed || !isStruct(named) {
				list = append(list, f.Errorf(obj.Pos(), "write type "+name+" struct{...}", "type %s is no struct", name))
			}
		}
	}
	return list
}

// a returns the name of a type with its article.
func (f *File) a(t types.Type) string {
	name := f.typeName(t)
	if strings.ContainsRune("aeio", rune(name[0])) {
		return "an " + name
	}
	return "a " + name
}

func atLeast(t types.Type) string {
	if n := Size(t); n <= mostWords {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("more than %d", mostWords)
}

func isStruct(t types.Type) bool {
	_, ok := t.Underlying().(*types.Struct)
	return ok
}

// badField names the fields of a struct that have no words.
func (f *File) badField(obj types.Object, named *types.Named) (list ErrorList) {
	s := named.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		if v := s.Field(i); v.Name() == "_" || !hasWords(v.Type()) {
			list = append(list, f.Errorf(v.Pos(), "use float32, int32, bool, and arrays and structs of them", "field %s is %s", v.Name(), f.a(v.Type())))
		}
	}
	return list
}

func hasWords(t types.Type) bool {
	_, ok := Words(t)
	return ok && !isInt(t)
}

// isInt reports whether a type is, or has, an int: its size depends on the machine.
func isInt(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() == types.Int
	case *types.Array:
		return isInt(u.Elem())
	case *types.Struct:
		for i := range u.NumFields() {
			if isInt(u.Field(i).Type()) {
				return true
			}
		}
	}
	return false
}

// readKeys reads the tags of Settings.
func (f *File) readKeys() (list ErrorList) {
	s := f.Settings.Underlying().(*types.Struct)
	for i := range s.NumFields() {
		v := s.Field(i)
		kind, ok := KindOf(v.Type())
		if !ok {
			list = append(list, f.Errorf(v.Pos(), "use float32, int32 or bool, a field per key", "setting %s is %s", v.Name(), f.a(v.Type())))
			continue
		}
		tag := reflect.StructTag(s.Tag(i))
		k := Key{Name: v.Name(), Kind: kind, Doc: tag.Get("doc")}
		for _, part := range []struct {
			name string
			word *uint32
			has  *bool
		}{{"default", &k.Default, &k.HasDefault}, {"min", &k.Least, &k.HasLeast}, {"max", &k.Most, &k.HasMost}} {
			text, given := tag.Lookup(part.name)
			if !given {
				continue
			}
			word, err := ReadWord(kind, text)
			if err != nil {
				list = append(list, f.Errorf(v.Pos(), "write "+part.name+`:"1"`, "setting %s: the tag %s is %q, no %s", v.Name(), part.name, text, kind))
				continue
			}
			*part.word, *part.has = word, true
		}
		if err := k.Check(k.Default); k.HasDefault && err != nil {
			list = append(list, f.Errorf(v.Pos(), "give a default within min and max", "setting %s: its default is outside: %v", v.Name(), err))
		}
		f.Keys = append(f.Keys, k)
	}
	return list
}

// ReadWord reads a word from the text of a tag or of a config.
func ReadWord(kind ir.Kind, text string) (uint32, error) {
	switch kind {
	case ir.Float32:
		x, err := strconv.ParseFloat(text, 32)
		return math.Float32bits(float32(x)), err
	case ir.Bool:
		yes, err := strconv.ParseBool(text)
		if yes {
			return 1, err
		}
		return 0, err
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return uint32(n), err
}

// ShowWord returns a word as a user writes it.
func ShowWord(kind ir.Kind, word uint32) string {
	switch kind {
	case ir.Float32:
		return strconv.FormatFloat(float64(math.Float32frombits(word)), 'g', -1, 32)
	case ir.Bool:
		return strconv.FormatBool(word != 0)
	}
	return strconv.Itoa(int(int32(word)))
}

// Check returns an error if a word is below the key's min or above its max.
func (k *Key) Check(word uint32) error {
	below := func(a, b uint32) bool {
		if k.Kind == ir.Float32 {
			return !(math.Float32frombits(a) >= math.Float32frombits(b))
		}
		return int32(a) < int32(b)
	}
	if k.HasLeast && below(word, k.Least) {
		return fmt.Errorf("%s is below the least, %s", ShowWord(k.Kind, word), ShowWord(k.Kind, k.Least))
	}
	if k.HasMost && below(k.Most, word) {
		return fmt.Errorf("%s is above the most, %s", ShowWord(k.Kind, word), ShowWord(k.Kind, k.Most))
	}
	return nil
}

// checkTypes refuses expressions and variables of other types than the language has.
func (f *File) checkTypes() (list ErrorList) {
	for _, limit := range []struct {
		what      string
		m         Method
		got, most int
	}{{"features of a node", Features, f.Features, Most.Features}, {"numbers of a context", Context, f.Context, Most.Context}} {
		if limit.got < 1 || limit.got > limit.most {
			list = append(list, f.Errorf(f.Pos(limit.m), fmt.Sprintf("return 1 to %d", limit.most), "%d %s", limit.got, limit.what))
		}
	}
	for _, d := range f.AST.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			list = append(list, f.checkIn(g, nil)...)
		} else if fn := d.(*ast.FuncDecl); fn.Body != nil {
			list = append(list, f.checkIn(fn, loopVariables(f, fn.Body))...)
		}
	}
	return list
}

// loopVariables returns the variables of type int that range over a constant: they are constants
// of each round.
func loopVariables(f *File, body ast.Node) map[types.Object]bool {
	out := map[types.Object]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.RangeStmt:
			if id, ok := s.Key.(*ast.Ident); ok {
				out[f.Info.Defs[id]] = true
			}
		case *ast.ForStmt:
			if init, ok := s.Init.(*ast.AssignStmt); ok {
				for _, x := range init.Lhs {
					if id, ok := x.(*ast.Ident); ok {
						out[f.Info.Defs[id]] = true
					}
				}
			}
		}
		return true
	})
	return out
}

// checkIn refuses what a declaration has of other types.
func (f *File) checkIn(n ast.Node, loop map[types.Object]bool) (list ErrorList) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch e := n.(type) {
		case *ast.Ident:
			v, ok := f.Info.Defs[e].(*types.Var)
			if !ok || loop[v] || v.Name() == "_" {
				return true
			}
			t := v.Type()
			if p, ok := t.(*types.Pointer); ok && !v.IsField() {
				t = p.Elem()
			}
			if name := f.typeName(t); name == "problem.Random" || name == "Settings" {
				return true
			}
			if named, ok := t.(*types.Named); ok && named.Obj().Pkg() == f.Pkg && isStruct(t) {
				return true // its fields are checked where they are declared
			}
			if !hasWords(t) {
				remedy := "use float32, int32, bool, and arrays and structs of them"
				if isInt(t) {
					remedy = "use int32: the size of an int depends on the machine"
				}
				list = append(list, f.Errorf(e.Pos(), remedy, "%s is %s", e.Name, f.a(v.Type())))
			}
		case *ast.BinaryExpr:
			if t := f.Info.Types[e.X].Type; t != nil && f.Info.Types[e].Value == nil {
				if _, basic := t.Underlying().(*types.Basic); !basic {
					list = append(list, f.Errorf(e.OpPos, "compare field by field", "%s of %s", e.Op, f.a(t)))
				} else if _, ok := KindOf(t); !ok {
					list = append(list, f.Errorf(e.OpPos, "use float32 or int32", "%s of %s", e.Op, f.a(t)))
				}
			}
		case *ast.CallExpr:
			if tv := f.Info.Types[e.Fun]; tv.IsType() && f.Info.Types[e].Value == nil {
				if _, ok := KindOf(tv.Type); !ok || isInt(tv.Type) {
					list = append(list, f.Errorf(e.Pos(), "use float32 or int32", "a conversion to %s", f.typeName(tv.Type)))
				}
			}
		case ast.Expr:
			if tv := f.Info.Types[e]; tv.Value != nil && tv.Value.Kind() == constant.String {
				list = append(list, f.Errorf(e.Pos(), "use a number", "a string"))
			}
		}
		return true
	})
	return list
}
