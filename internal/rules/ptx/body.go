package ptx

import (
	"fmt"
	"strings"

	"haul/internal/rules/ir"
)

// writer writes a function as a scope of PTX.
type writer struct {
	f         *ir.Func
	text      strings.Builder
	words     []string // register of each value that is a number
	preds     []string // predicate of each value that is a bool
	countWord int
	countPred int
	countLong int
}

// Body returns a scope of PTX that computes a function. Results are registers, which may be inputs
// too; input returns the register of a word. All registers have 32 bits.
func Body(f *ir.Func, results []string, input func(ir.Word) (string, bool)) (string, error) {
	w := &writer{f: f, words: make([]string, len(f.Values)), preds: make([]string, len(f.Values))}
	for i := range f.Values {
		v := &f.Values[i]
		switch v.Op {
		case ir.Const:
			w.words[i] = w.word("mov.b32 %s, 0x%x;", v.Imm)
		case ir.Input:
			in := f.Inputs[v.Imm]
			register, ok := input(in)
			if !ok {
				return "", fmt.Errorf("%s reads word %d of %s, which is no operand", f.Name, in.Index, in.Source)
			}
			w.words[i] = register
		default:
			w.value(i, v)
		}
	}
	for i, o := range f.Outputs { // in temporaries first: a result may be an input of another
		w.words[o] = w.asWord(o)
		results[i] = strings.TrimSpace(results[i])
	}
	var moves strings.Builder
	copies := make([]string, len(results))
	for i, o := range f.Outputs {
		copies[i] = w.word("mov.b32 %s, %s;", w.words[o])
		fmt.Fprintf(&moves, "\tmov.b32 %s, %s;\n", results[i], copies[i])
	}
	var out strings.Builder
	out.WriteString("\t{\n")
	for _, kind := range []struct {
		name, register string
		count          int
	}{{"b32", "rule_w", w.countWord}, {"pred", "rule_p", w.countPred}, {"b64", "rule_d", w.countLong}} {
		if kind.count > 0 {
			fmt.Fprintf(&out, "\t.reg .%s %%%s<%d>;\n", kind.name, kind.register, kind.count)
		}
	}
	out.WriteString(w.text.String() + moves.String() + "\t}\n")
	return out.String(), nil
}

// emit writes an instruction.
func (w *writer) emit(format string, args ...any) {
	fmt.Fprintf(&w.text, "\t"+format+"\n", args...)
}

// word writes an instruction whose first operand is a fresh register of 32 bits, and returns it.
func (w *writer) word(format string, args ...any) string {
	r := fmt.Sprintf("%%rule_w%d", w.countWord)
	w.countWord++
	w.emit(format, append([]any{r}, args...)...)
	return r
}

// pred is word for predicates.
func (w *writer) pred(format string, args ...any) string {
	r := fmt.Sprintf("%%rule_p%d", w.countPred)
	w.countPred++
	w.emit(format, append([]any{r}, args...)...)
	return r
}

// long is word for registers of 64 bits.
func (w *writer) long(format string, args ...any) string {
	r := fmt.Sprintf("%%rule_d%d", w.countLong)
	w.countLong++
	w.emit(format, append([]any{r}, args...)...)
	return r
}

// asWord returns the register of a value; that of a bool holds 0 or 1.
func (w *writer) asWord(v int32) string {
	if w.words[v] == "" {
		w.words[v] = w.word("selp.u32 %s, 1, 0, %s;", w.preds[v])
	}
	return w.words[v]
}

// asPred returns the predicate of a bool.
func (w *writer) asPred(v int32) string {
	if w.preds[v] == "" {
		w.preds[v] = w.pred("setp.ne.u32 %s, %s, 0;", w.words[v])
	}
	return w.preds[v]
}
