// Package vec runs compiled rules over blocks of 64 nodes: one operation at a time on all nodes of
// a block. It is the form of a CPU.
//
// Fits is split into what depends on the candidate and what does not (ir.Func.Split). The latter is
// computed once per step. Of the former, numbers are arrays of 64 words and bools are masks of 64
// bits, so that operations on bools cost one instruction per block. Arrays are computed by AVX-512
// where the processor has it, else by plain Go.
package vec

import (
	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/ir"
	"haul/internal/rules/parse"
)

// Block is a number for each of 64 nodes.
type Block [64]uint32

// Form is the vector form of a problem's rules. Fits runs on blocks; the other methods run plainly.
type Form struct {
	*eval.Form
	p        *rules.Problem
	set      *set
	prepare  *ir.Func
	steps    []step
	result   int32    // the register of the outcome
	uniform  bool     // the outcome is the same for all nodes
	blocks   []*Block // the blocks of columns point into the instance
	masks    []uint64
	prepared []word // words of prepare that steps read
	// constants that steps read: their registers are written once
	constants []word
	columns   []column
	out       []uint32
}

// word is a word that all nodes share and the register that takes it.
type word struct {
	from int32  // output of prepare
	bits uint32 // of a constant
	to   int32
	mask bool // the register is a mask
}

// put writes a word that all nodes share into its register.
func (f *Form) put(w *word, bits uint32) {
	if w.mask {
		f.masks[w.to] = -uint64(bits & 1)
	} else {
		f.set.fill(f.blocks[w.to], bits)
	}
}

// column is a word of the nodes and the register that takes it.
type column struct {
	from, to int32
	mask     bool
}

// New returns the vector form of a problem, by the instructions of this processor.
func New(p *rules.Problem) *Form { return newForm(p, fastest()) }

// NewPlain returns the vector form in plain Go.
func NewPlain(p *rules.Problem) *Form { return newForm(p, &plain) }

func newForm(p *rules.Problem, s *set) *Form {
	f := &Form{Form: eval.New(p), p: p, set: s}
	early, rest := p.Func(parse.Fits).Split(ir.To)
	f.prepare = early
	f.translate(rest)
	for i := range f.constants {
		f.put(&f.constants[i], f.constants[i].bits)
	}
	return f
}

// Prepare returns the part of Fits that runs once per step of a route.
func (f *Form) Prepare() *ir.Func { return f.prepare }

// Fits is rules.Form.
func (f *Form) Fits(frame *rules.Frame, in *rules.Instance, amounts []uint32, mask []uint64) {
	f.out = f.Run(f.prepare, frame, f.out[:0])
	f.FitsPrepared(f.out, in, amounts, mask)
}

// FitsPrepared is Fits where the caller has run Prepare: words are its outputs.
func (f *Form) FitsPrepared(words []uint32, in *rules.Instance, amounts []uint32, mask []uint64) {
	for i := range f.prepared {
		f.put(&f.prepared[i], words[f.prepared[i].from])
	}
	count := f.p.Nodes(in.Customers)
	for i := range mask {
		if i == 0 || !f.uniform {
			f.block(in, amounts, i)
		}
		mask[i] = f.masks[f.result]
		if rest := count - i*64; rest < 64 {
			mask[i] &= 1<<rest - 1
		}
	}
}

// block runs the steps on nodes 64·i to 64·i + 63.
func (f *Form) block(in *rules.Instance, amounts []uint32, i int) {
	for _, c := range f.columns {
		from := in.Nodes[c.from]
		if amounts != nil && int(c.from) == f.p.Amount {
			from = amounts
		}
		words := (*Block)(from[i*64:])
		if c.mask {
			f.masks[c.to] = truths(words)
		} else {
			f.blocks[c.to] = words
		}
	}
	for k := range f.steps {
		f.do(&f.steps[k])
	}
}

// truths returns the mask of the words that are not 0.
func truths(words *Block) (mask uint64) {
	for i, w := range words {
		mask |= uint64(w&1) << i
	}
	return mask
}

func fill(to *Block, word uint32) {
	for i := range to {
		to[i] = word
	}
}

// Steps returns the number of operations that Fits runs per step of a route, and per block of
// nodes.
func (f *Form) Steps() (prepare, block int) { return f.prepare.Cost(), len(f.steps) }

// Words returns the number of words that the preparation hands to the blocks.
func (f *Form) Words() int { return len(f.prepare.Outputs) }
