package plan

import (
	"sort"

	"haul/internal/kernel"
)

// span is the lifetime of a shard tensor: from the op that first writes it to the op that last uses
// it.
type span struct {
	t           *kernel.Tensor
	first, last int
	size        int
}

// place assigns offsets to shard tensors so that tensors with overlapping lifetimes do not overlap
// in memory. It goes from the largest to the smallest tensor and takes the lowest free offset.
func place(prog *kernel.Program) {
	spans := spansOf(prog)
	sort.SliceStable(spans, func(i, j int) bool { return spans[i].size > spans[j].size })
	var done []span
	prog.ShardLen = 0
	for _, s := range spans {
		var busy []span
		for _, d := range done {
			if d.first <= s.last && s.first <= d.last {
				busy = append(busy, d)
			}
		}
		sort.Slice(busy, func(i, j int) bool { return busy[i].t.Offset < busy[j].t.Offset })
		at := 0
		for _, b := range busy {
			if at+s.size <= b.t.Offset {
				break
			}
			at = max(at, b.t.Offset+b.size)
		}
		s.t.Offset = at
		done = append(done, s)
		prog.ShardLen = max(prog.ShardLen, at+s.size)
	}
}

// spansOf returns the lifetimes of shard tensors. It panics if a tensor is read before it is
// written.
func spansOf(prog *kernel.Program) []span {
	live := map[*kernel.Tensor]*span{}
	var order []*kernel.Tensor
	for i, op := range prog.PerShard {
		op.Args(func(t *kernel.Tensor, a kernel.Access) {
			t = t.Root()
			if t.Space != kernel.Shard {
				return
			}
			s, ok := live[t]
			if !ok {
				if a != kernel.Write {
					panic("plan: " + op.Kind() + " reads " + t.Name + " before anything wrote it")
				}
				s = &span{t: t, first: i, size: (t.Len() + 15) &^ 15}
				live[t] = s
				order = append(order, t)
			}
			s.last = i
		})
	}
	out := make([]span, len(order))
	for i, t := range order {
		out[i] = *live[t]
	}
	return out
}
