// Package ptx writes compiled rules as text of NVIDIA's PTX and puts it into kernels.
//
// A kernel asks for the rules by instructions that PTX does not have, such as
//
//	rule_fits %r7, %r1, %r2, %r3;
//
// The operands are registers of 32 bits: first the results, then the inputs. Splice replaces each
// such instruction by the problem's operations, in a scope with separate registers, before a
// driver compiles the module.
package ptx

import (
	"fmt"
	"strings"

	"haul/internal/rules/ir"
)

// Instruction is a rule instruction: what it computes, and which input words its operands are.
type Instruction struct {
	Func *ir.Func
	// Inputs are the words of the operands behind the results, in order. Words that Func does not read
	// may be among them; words that it reads must be.
	Inputs []ir.Word
}

// Splice replaces the rule instructions of a module's text. Every instruction whose name begins
// with rule_ must be in the table.
func Splice(text string, table map[string]Instruction) (string, error) {
	var out strings.Builder
	for number, line := range strings.Split(text, "\n") {
		code := strings.TrimSpace(line)
		if !strings.HasPrefix(code, "rule_") {
			out.WriteString(line + "\n")
			continue
		}
		body, err := expand(code, table)
		if err != nil {
			return "", fmt.Errorf("line %d: %s: %w", number+1, code, err)
		}
		out.WriteString(body)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// expand returns the text that replaces one instruction.
func expand(code string, table map[string]Instruction) (string, error) {
	code, ends := strings.CutSuffix(code, ";")
	if !ends {
		return "", fmt.Errorf("the instruction does not end on its line")
	}
	name, rest, _ := strings.Cut(strings.TrimSpace(code), " ")
	rest = strings.TrimSpace(rest)
	in, ok := table[name]
	if !ok {
		return "", fmt.Errorf("the problem has no such instruction")
	}
	var operands []string
	if rest != "" {
		for o := range strings.SplitSeq(rest, ",") {
			operands = append(operands, strings.TrimSpace(o))
		}
	}
	results := len(in.Func.Outputs)
	if want := results + len(in.Inputs); len(operands) != want {
		return "", fmt.Errorf("%d operands, want %d results and %d inputs", len(operands), results, len(in.Inputs))
	}
	registers := map[ir.Word]string{}
	for i, w := range in.Inputs {
		registers[ir.Word{Source: w.Source, Index: w.Index}] = operands[results+i]
	}
	return Body(in.Func, operands[:results], func(w ir.Word) (string, bool) {
		r, ok := registers[ir.Word{Source: w.Source, Index: w.Index}]
		return r, ok
	})
}
