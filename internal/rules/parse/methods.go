package parse

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"strings"
)

// Method is a function of a problem file that Haul calls.
type Method uint8

// The methods, in the order in which an instance and then a route meet them.
const (
	Before Method = iota
	DrawInstance
	DrawNode
	Derive
	After
	Features
	Start
	Fits
	Returns
	Move
	Stays
	Ended
	Stuck
	Context
	Steps
	methods
)

// signature describes a method as Haul calls it.
type signature struct {
	receiver, name string // receiver "" is a function
	params         []string
	result         string // "[]float32" is an array of float32
	required       bool
}

var signatures = [methods]signature{
	Before:       {"Instance", "Before", []string{"*Node", "*Node"}, "", false},
	DrawInstance: {"Instance", "Draw", []string{"*problem.Random", "*Settings", "int32"}, "", false},
	DrawNode:     {"Node", "Draw", []string{"*problem.Random", "*Settings", "*Instance", "*Node"}, "", false},
	Derive:       {"Node", "Derive", []string{"*Instance", "*Node"}, "", false},
	After:        {"Instance", "After", []string{"*Node"}, "", false},
	Features:     {"Node", "Features", []string{"*Instance"}, "[]float32", true},
	Start:        {"Vehicle", "Start", []string{"*Instance"}, "", false},
	Fits:         {"Vehicle", "Fits", []string{"*Instance", "*Node", "*Node"}, "bool", true},
	Returns:      {"Vehicle", "Returns", []string{"*Instance", "*Node", "*Node", "int32"}, "bool", true},
	Move:         {"Vehicle", "Move", []string{"*Instance", "*Node", "*Node"}, "float32", true},
	Stays:        {"Node", "Stays", []string{"*Instance", "*Vehicle"}, "bool", false},
	Ended:        {"Vehicle", "Ended", []string{"*Instance", "*Node", "int32"}, "bool", true},
	Stuck:        {"Vehicle", "Stuck", []string{"*Instance", "int32"}, "float32", false},
	Context:      {"Vehicle", "Context", []string{"*Instance", "*Node", "int32"}, "[]float32", true},
	Steps:        {"", "Steps", []string{"int32"}, "int32", false},
}

// Methods returns all methods.
func Methods() []Method {
	out := make([]Method, methods)
	for i := range out {
		out[i] = Method(i)
	}
	return out
}

// String returns the method as Go names it, such as Vehicle.Fits.
func (m Method) String() string {
	if signatures[m].receiver == "" {
		return signatures[m].name
	}
	return signatures[m].receiver + "." + signatures[m].name
}

// NameOf returns a method's name without its receiver, such as Fits.
func NameOf(m Method) string { return signatures[m].name }

// params returns the types of a method's parameters. A file without settings leaves them out.
func (f *File) params(m Method) []string {
	var out []string
	for _, p := range signatures[m].params {
		if p != "*Settings" || f.Settings != nil {
			out = append(out, p)
		}
	}
	return out
}

// Declaration returns the declaration of a method as Haul expects it.
func (f *File) Declaration(m Method) string {
	s := signatures[m]
	names := map[string]string{"*problem.Random": "r", "*Settings": "s", "*Instance": "in", "*Vehicle": "v", "int32": "unvisited"}
	if m == DrawInstance || m == Steps {
		names["int32"] = "n"
	}
	nodes := []string{"at", "to"}
	switch m {
	case Before:
		nodes = []string{"node", "depot"}
	case Derive, DrawNode:
		nodes = []string{"depot"}
	case After:
		nodes = []string{"node"}
	}
	var params []string
	for _, p := range f.params(m) {
		name := names[p]
		if p == "*Node" {
			name, nodes = nodes[0], nodes[1:]
		}
		params = append(params, name+" "+p)
	}
	text := "func "
	if s.receiver != "" {
		text += fmt.Sprintf("(%s *%s) ", map[string]string{"Instance": "in", "Node": "n", "Vehicle": "v"}[s.receiver], s.receiver)
	}
	text += s.name + "(" + strings.Join(params, ", ") + ")"
	if s.result == "[]float32" {
		return text + " [3]float32 (of any length)"
	}
	return strings.TrimSpace(text + " " + s.result)
}

// findMethods finds the methods, and refuses a wrong or missing one. Depots is a constant.
func (f *File) findMethods() (list ErrorList) {
	named := map[string]Method{}
	for _, m := range Methods() {
		named[m.String()] = m
	}
	for _, decl := range f.AST.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		obj, ok := f.Info.Defs[d.Name].(*types.Func)
		if !ok {
			continue
		}
		f.Funcs[obj] = d
		name := d.Name.Name
		sig := obj.Type().(*types.Signature)
		if recv := sig.Recv(); recv != nil {
			name = strings.TrimPrefix(f.typeName(recv.Type()), "*") + "." + name
		}
		m, ok := named[name]
		if !ok {
			if ast.IsExported(d.Name.Name) {
				list = append(list, f.Errorf(d.Pos(), "write a helper in lower case, or one of the methods of docs/rules.md", "Haul calls no %s", name))
			}
			continue
		}
		if !f.matches(sig, m) {
			list = append(list, f.Errorf(d.Pos(), "write "+f.Declaration(m), "%s has other parameters or results than Haul expects", m))
			continue
		}
		f.Methods[m] = d
		f.count(m, sig)
	}
	for m, s := range signatures {
		if s.required && f.Methods[Method(m)] == nil && len(list) == 0 {
			list = append(list, f.Errorf(f.AST.Name.Pos(), "write "+f.Declaration(Method(m)), "%s is missing", Method(m)))
		}
	}
	f.Depots = 1
	if c, ok := f.Pkg.Scope().Lookup("Depots").(*types.Const); ok {
		n, exact := constant.Int64Val(constant.ToInt(c.Val()))
		if !exact || n < 1 || n > int64(Most.Depots) {
			list = append(list, f.Errorf(c.Pos(), fmt.Sprintf("write a number from 1 to %d", Most.Depots), "const Depots is %s", c.Val()))
		} else {
			f.Depots = int(n)
		}
	}
	return list
}

// typeName returns a type as a problem file writes it.
func (f *File) typeName(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == f.Pkg {
			return ""
		}
		return p.Name()
	})
}

// matches reports whether a method is declared as Haul calls it.
func (f *File) matches(sig *types.Signature, m Method) bool {
	s := signatures[m]
	if s.receiver != "" && f.typeName(sig.Recv().Type()) != "*"+s.receiver || sig.Params().Len() != len(f.params(m)) {
		return false
	}
	for i, want := range f.params(m) {
		if f.typeName(sig.Params().At(i).Type()) != want {
			return false
		}
	}
	switch {
	case s.result == "":
		return sig.Results().Len() == 0
	case sig.Results().Len() != 1:
		return false
	case s.result == "[]float32":
		a, ok := sig.Results().At(0).Type().(*types.Array)
		return ok && f.typeName(a.Elem()) == "float32"
	}
	return f.typeName(sig.Results().At(0).Type()) == s.result
}

// count notes how many numbers the encoder or the decoder sees.
func (f *File) count(m Method, sig *types.Signature) {
	if m != Features && m != Context {
		return
	}
	n := int(sig.Results().At(0).Type().(*types.Array).Len())
	if m == Features {
		f.Features = n
	} else {
		f.Context = n
	}
}

// Pos returns where a method is declared, or the package clause if the file leaves it out.
func (f *File) Pos(m Method) token.Pos {
	if d := f.Methods[m]; d != nil {
		return d.Name.Pos()
	}
	return f.AST.Name.Pos()
}
