// Package rules runs the rules of a problem file: it draws instances and walks routes through them.
//
// Compile turns a file into a Problem: parse checks it, lower makes straight-line code of its
// methods (package ir), and settings become constants. A Form computes the methods: eval plainly,
// word by word; others on blocks of nodes or as a GPU's text. What Haul does between the methods is
// written once, here: Draw (draw.go) and Route (route.go).
package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"haul/internal/rules/ir"
	"haul/internal/rules/lower"
	"haul/internal/rules/parse"
)

// Problem is a compiled problem file whose settings are given.
type Problem struct {
	*lower.Program
	Name  string
	words []uint32 // of Settings
	funcs map[parse.Method]*ir.Func
}

// Compile compiles the text of a problem file. Settings are by the names of their fields; the
// others have their defaults. Error messages name the file so.
func Compile(name string, text []byte, settings map[string]string) (*Problem, error) {
	file, err := parse.Parse(name, text)
	if err != nil {
		return nil, err
	}
	program, err := lower.Compile(file)
	if err != nil {
		return nil, err
	}
	return Bind(program, settings)
}

// Bind gives a compiled file its settings.
func Bind(program *lower.Program, settings map[string]string) (*Problem, error) {
	p := &Problem{Program: program, Name: program.File.Name, funcs: map[parse.Method]*ir.Func{}}
	var err error
	if p.words, err = settingWords(program.File.Keys, settings); err != nil {
		return nil, err
	}
	for _, m := range parse.Methods() {
		if f := program.Func(m); f != nil {
			p.funcs[m] = f.Bind(ir.Settings, p.words)
		}
	}
	return p, nil
}

// Func returns a method whose settings are constants, nil if the file leaves it out.
func (p *Problem) Func(m parse.Method) *ir.Func { return p.funcs[m] }

// SettingWords returns the words of the settings.
func (p *Problem) SettingWords() []uint32 { return p.words }

// settingWords returns the words of the settings.
func settingWords(keys []parse.Key, given map[string]string) ([]uint32, error) {
	rest := maps.Clone(given)
	var words []uint32
	for _, k := range keys {
		word := k.Default
		text, ok := rest[k.Name]
		delete(rest, k.Name)
		switch {
		case ok:
			var err error
			if word, err = parse.ReadWord(k.Kind, text); err != nil {
				return nil, fmt.Errorf("setting %s: %q is no %s", k.Name, text, k.Kind)
			}
			if err = k.Check(word); err != nil {
				return nil, fmt.Errorf("setting %s: %w", k.Name, err)
			}
		case !k.HasDefault:
			return nil, fmt.Errorf("setting %s has no default: give it a value", k.Name)
		}
		words = append(words, word)
	}
	if unknown := slices.Sorted(maps.Keys(rest)); len(unknown) > 0 {
		var known []string
		for _, k := range keys {
			known = append(known, k.Name)
		}
		return nil, fmt.Errorf("no setting %s: the file has %s", unknown[0], strings.Join(append(known, "no others"), ", "))
	}
	return words, nil
}

// Nodes returns the number of nodes of an instance with n customers.
func (p *Problem) Nodes(n int) int { return n + p.File.Depots }

// DepotAt returns the number of the depot at node j of an instance with n customers, -1 at a
// customer.
func DepotAt(j, n int) int {
	switch {
	case j == 0:
		return 0
	case j > n:
		return j - n
	}
	return -1
}

// Steps returns the number of steps within which every route through n customers ends: what the
// file's Steps says, else 2n, and at least 1.
func (p *Problem) Steps(form Form, n int) int {
	if p.Func(parse.Steps) == nil {
		return max(1, 2*n)
	}
	var f Frame
	f[ir.Count] = []uint32{uint32(n)}
	return max(1, int(int32(form.Call(parse.Steps, &f)[0])))
}
