package run

import (
	"fmt"

	"haul/internal/kernel"
)

// Binder turns ops into closures over resolved memory and collects what scratch they need.
type Binder struct {
	Runner    *Runner
	scratch   int // floats, the largest need of any op
	words     int // 64-bit words, likewise
	bits      int // 32-bit words of dropout masks, all of them
	drops     map[dropKey]*Dropper
	Rotations map[int][]float32 // by a head's width
	seen      map[int]bool      // gradient offsets that an earlier op of the shard writes
}

func (b *Binder) Need(floats, words int) {
	b.scratch = max(b.scratch, floats)
	b.words = max(b.words, words)
}

// grad resolves a gradient that the op sums into. The first op of the first shard of a lane writes
// it; add tells whether to add instead.
type GradRef struct {
	Ref
	again bool // an earlier op of the same shard has written it
}

func (b *Binder) Grad(t *kernel.Tensor) GradRef {
	if t == nil {
		return GradRef{}
	}
	g := GradRef{b.Ref(t), b.seen[t.Offset]}
	b.seen[t.Offset] = true
	return g
}

func (g *GradRef) Add(w *Worker) bool { return g.again || !w.fresh }

// Start returns the gradient's memory, cleared when nothing has been summed into it.
func (g *GradRef) Start(w *Worker) []float32 {
	d := g.Of(w)
	if !g.Add(w) {
		clear(d)
	}
	return d
}

// Covered checks that every parameter's gradient is written, since lanes are never cleared.
func (b *Binder) Covered() error {
	for _, p := range b.Runner.Program.Layout.Params {
		if !b.seen[p.Offset] {
			return fmt.Errorf("no op writes the gradient of %s", p.Name)
		}
	}
	return nil
}
