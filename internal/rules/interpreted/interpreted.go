// Package interpreted runs rules as a GPU would: their PTX text, put into small kernels by
// rules/ptx, on the interpreter of internal/ptx. It shows without a GPU that the text computes what
// the plain form computes.
package interpreted

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"haul/internal/ptx"
	"haul/internal/rules"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
	rulesptx "haul/internal/rules/ptx"
)

// Form is the GPU's form of a problem's rules, interpreted.
type Form struct {
	p       *rules.Problem
	kernels map[parse.Method]*kernel
	row     []uint32
	out     []uint32
}

// kernel is a kernel that calls a method in each thread. Thread t reads its words from the first
// buffer and writes the results to the second.
type kernel struct {
	program *ptx.Program
	inputs  []ir.Word
	outputs int
}

// New returns the interpreted form of a problem.
func New(p *rules.Problem) (*Form, error) {
	f := &Form{p: p, kernels: map[parse.Method]*kernel{}, row: make([]uint32, len(p.Node))}
	for _, m := range parse.Methods() {
		fn := p.Func(m)
		if fn == nil {
			continue
		}
		text, err := moduleText(m, fn)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		module, err := ptx.Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", m, err, text)
		}
		program, err := module.Compile("rule")
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", m, err, text)
		}
		f.kernels[m] = &kernel{program, fn.Inputs, len(fn.Outputs)}
	}
	return f, nil
}

// moduleText returns a module whose kernel calls a method by rule instructions: Fits by two, as
// kernels do that prepare once per step.
func moduleText(m parse.Method, fn *ir.Func) (string, error) {
	table := map[string]rulesptx.Instruction{"rule_call": {Func: fn, Inputs: fn.Inputs}}
	var in, out []string
	for i := range fn.Inputs {
		in = append(in, fmt.Sprintf("%%in%d", i))
	}
	for i := range fn.Outputs {
		out = append(out, fmt.Sprintf("%%out%d", i))
	}
	code := "\trule_call " + strings.Join(append(out, in...), ", ") + ";\n"
	prepared := 0
	if m == parse.Fits {
		early, rest := fn.Split(ir.To)
		prepared = len(early.Outputs)
		table = map[string]rulesptx.Instruction{
			"rule_prepare": {Func: early, Inputs: fn.Inputs},
			"rule_fits":    {Func: rest, Inputs: append(append([]ir.Word(nil), fn.Inputs...), preparedWords(prepared)...)},
		}
		var middle []string
		for i := range prepared {
			middle = append(middle, fmt.Sprintf("%%mid%d", i))
		}
		code = "\trule_fits " + strings.Join(append(append(out, in...), middle...), ", ") + ";\n"
		if prepared > 0 {
			code = "\trule_prepare " + strings.Join(append(append([]string(nil), middle...), in...), ", ") + ";\n" + code
		}
	}
	var b strings.Builder
	b.WriteString(head)
	fmt.Fprintf(&b, "\t.reg .b32 %%in<%d>;\n\t.reg .b32 %%out<%d>;\n\t.reg .b32 %%mid<%d>;\n", len(in)+1, len(out)+1, prepared+1)
	fmt.Fprintf(&b, load, 4*len(in), 4*len(out))
	for i, r := range in {
		fmt.Fprintf(&b, "\tld.global.u32 %s, [%%rd4+%d];\n", r, 4*i)
	}
	b.WriteString(code)
	for i := range fn.Outputs {
		fmt.Fprintf(&b, "\tst.global.u32 [%%rd5+%d], %%out%d;\n", 4*i, i)
	}
	b.WriteString("\tret;\n}\n")
	return rulesptx.Splice(b.String(), table)
}

func preparedWords(n int) (out []ir.Word) {
	for i := range n {
		out = append(out, ir.Word{Source: ir.Prepared, Index: int32(i)})
	}
	return out
}

const head = `.version 7.5
.target sm_80
.address_size 64
.visible .entry rule(
	.param .u64 rule_param_0,
	.param .u64 rule_param_1
)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<8>;
`

const load = `	mov.u32 %%r0, %%tid.x;
	ld.param.u64 %%rd1, [rule_param_0];
	ld.param.u64 %%rd2, [rule_param_1];
	mul.wide.u32 %%rd3, %%r0, %d;
	add.s64 %%rd4, %%rd1, %%rd3;
	mul.wide.u32 %%rd3, %%r0, %d;
	add.s64 %%rd5, %%rd2, %%rd3;
`

// Call is rules.Form. It panics if the interpreter finds a fault: the text is Haul's own.
func (f *Form) Call(m parse.Method, frame *rules.Frame) []uint32 {
	k := f.kernels[m]
	in := k.words(nil, frame)
	f.out = k.launch(in, f.out, 1)
	return f.out
}

// words appends the kernel's input words.
func (k *kernel) words(to []uint32, frame *rules.Frame) []uint32 {
	for _, w := range k.inputs {
		to = append(to, frame[w.Source][w.Index])
	}
	return to
}

// Fits is rules.Form: a thread per node.
func (f *Form) Fits(frame *rules.Frame, in *rules.Instance, amounts []uint32, mask []uint64) {
	clear(mask)
	k, own := f.kernels[parse.Fits], *frame
	own[ir.To] = f.row
	var words []uint32
	count := f.p.Nodes(in.Customers)
	for j := range count {
		in.Row(f.row, j)
		if amounts != nil {
			f.row[f.p.Amount] = amounts[j]
		}
		words = k.words(words, &own)
	}
	f.out = k.launch(words, f.out, count)
	for j := range count {
		mask[j/64] |= uint64(f.out[j]&1) << (j % 64)
	}
}

// launch runs threads, each with its words, and returns their results.
func (k *kernel) launch(in, out []uint32, threads int) []uint32 {
	if len(in) == 0 {
		in = make([]uint32, 1)
	}
	if n := max(1, k.outputs*threads); cap(out) < n {
		out = make([]uint32, n)
	} else {
		out = out[:n]
	}
	var memory ptx.Memory
	var at [2]uint64
	for i, words := range [][]uint32{in, out} {
		at[i] = uint64(uintptr(unsafe.Pointer(&words[0])))
		memory.Add(at[i], 4*len(words))
	}
	params := make([][]byte, len(at))
	for i := range at {
		params[i] = unsafe.Slice((*byte)(unsafe.Pointer(&at[i])), 8)
	}
	_, err := ptx.Run(ptx.Launch{Program: k.program, Grid: [3]int{1, 1, 1}, Block: [3]int{threads, 1, 1}, Memory: &memory, Params: k.program.Lay(params), Workers: 1})
	runtime.KeepAlive(in)
	runtime.KeepAlive(out)
	if err != nil {
		panic("interpreted: " + err.Error())
	}
	return out[:k.outputs*threads]
}
