package run

import "haul/internal/kernel"

// Ref is a tensor resolved as far as compiling can.
type Ref struct {
	space  kernel.Space
	buf    []float32 // Batch and Weight
	offset int       // Shard and Grad
	n      int       // elements from the tensor's start to the end of its root
	rowLen int       // Batch: elements per instance
	Stride int
}

// Ref resolves a tensor of the program; nil is absent.
func (b *Binder) Ref(t *kernel.Tensor) Ref { return newRef(b.Runner, t) }

func newRef(r *Runner, t *kernel.Tensor) Ref {
	if t == nil {
		return Ref{}
	}
	root, at := t.Root(), 0
	if t.Parent != nil {
		at = t.Offset
	}
	rf := Ref{space: root.Space, offset: root.Offset + at, n: root.Len() - at, Stride: t.Stride}
	switch root.Space {
	case kernel.Batch:
		rf.buf, rf.rowLen, rf.offset = r.Batch[root], root.Len()/root.Shape[0], at
	case kernel.Weight:
		rf.buf = r.Sets[root.Set].Weights
	case kernel.Data:
		rf.buf = r.Batch[root]
	}
	return rf
}

// Of is the tensor's memory for the shard the worker runs; nil for an absent tensor.
func (f *Ref) Of(w *Worker) []float32 {
	if f.n == 0 {
		return nil
	}
	switch f.space {
	case kernel.Shard:
		return w.arena[f.offset:][:f.n]
	case kernel.Grad:
		return w.grads[f.offset:][:f.n]
	case kernel.Batch:
		return f.buf[w.at*f.rowLen+f.offset:][:f.n]
	default:
		return f.buf[f.offset:][:f.n]
	}
}
