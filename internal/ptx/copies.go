package ptx

import (
	"fmt"
	"math/bits"
	"unsafe"
)

// Asynchronous copies complete when the thread waits for them, or when a thread queries the phase
// of a barrier that counts them, and not before: earlier reads of the destination return its old
// content. Each thread counts its own groups.

// asyncCopy is a copy that has been issued.
type asyncCopy struct {
	to      uint64 // address in shared memory
	from    uint64 // the host's address; 0: zeros
	n, real int32
	lane    int32
	group   int32
	serial  uint64
	in      *inst
}

var copies = map[string]func(x *decoder) error{
	"cp": func(x *decoder) (err error) {
		if !x.has("async") {
			return x.unknown()
		}
		in := x.in
		if x.has("bulk") {
			return x.bulk()
		}
		switch {
		case x.is("mbarrier.arrive.noinc.shared.b64"):
			in.f = arriveCopied
			if err := x.count(1); err != nil {
				return err
			}
			return x.address(0, shared)
		case x.is("commit_group"):
			in.f = closeGroup
			return x.count(0)
		case x.is("wait_group"):
			if err := x.count(1); err != nil {
				return err
			}
			if x.s.args[0].kind != number {
				return x.unknown()
			}
			in.f, in.imm = awaitGroups, int64(x.s.args[0].bits)
			return nil
		case x.is("wait_all"):
			in.f, in.imm = awaitGroups, -1
			return x.count(0)
		}
		if x.any("cg", "ca") == "" || !x.is("shared.global") || len(x.s.args) < 3 || len(x.s.args) > 4 || x.s.args[2].kind != number {
			return x.unknown()
		}
		// [to], [from], bytes: the second address is stored in b, its offset in imm2
		o := x.s.args[1]
		sp := global
		if in.b, in.narrow, in.imm2, err = x.base(o, &sp); err != nil {
			return err
		}
		if o.kind != memory || in.b == none || in.narrow {
			return fmt.Errorf("no global address")
		}
		in.imm2 += int64(o.bits)
		if in.size = int32(x.s.args[2].bits); in.size != 4 && in.size != 8 && in.size != 16 {
			return fmt.Errorf("copies %d bytes", in.size)
		}
		if len(x.s.args) == 4 {
			if in.c, err = x.from(3, 4); err != nil {
				return err
			}
		}
		in.f = copyAsync
		return x.address(0, shared)
	},
}

func copyAsync(w *warp, in *inst) {
	b := reg[uint64](w, in.b)
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		real := uint32(in.size)
		if in.c != none {
			real = reg[uint32](w, in.c)[i]
			if real > uint32(in.size) {
				w.failLane(in, i, "reads %d of %d bytes", real, in.size)
			}
		}
		to := w.address(in, i)
		races := w.b.races
		w.b.races = nil // races are checked when the copy completes
		w.reach(in, shared, to, i, uint64(in.size), true)
		w.b.races = races
		from := b[i] + uint64(in.imm2)
		if real > 0 {
			if from&uint64(in.size-1) != 0 {
				w.failLane(in, i, "reads %d bytes at %#x, which is no multiple of it", in.size, from)
			}
			if !w.near.holds(from, uint64(real)) {
				s, ok := w.b.l.memory.find(from)
				if !ok || !s.holds(from, uint64(real)) {
					w.failLane(in, i, "reads outside of all allocations: %d bytes at %#x, %s", real, from, w.b.l.memory.describe(from))
				}
				w.near = s
			}
		}
		w.copies = append(w.copies, asyncCopy{to - sharedBase, from, in.size, int32(real), int32(i), int32(w.closed[i]), w.issued, in})
		w.issued++
	}
}

// arriveCopied makes a thread arrive at a barrier when its copies have completed.
func arriveCopied(w *warp, in *inst) {
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		b := w.barrier(in, i)
		b.delayedArrival = append(b.delayedArrival, delayedArrival{int32(w.index), int32(i), w.issued})
		w.b.events++
	}
}

func closeGroup(w *warp, _ *inst) {
	for i := range w.closed {
		w.closed[i] += int(w.mask >> i & 1)
	}
}

// awaitGroups completes all copies except those of the thread's last groups; -1: also copies
// outside of a group.
func awaitGroups(w *warp, in *inst) {
	kept := w.copies[:0]
	for _, c := range w.copies {
		done := in.imm < 0 || int64(c.group) < int64(w.closed[c.lane])-in.imm
		if w.mask>>c.lane&1 == 0 || !done {
			kept = append(kept, c)
			continue
		}
		w.land(&c)
	}
	w.copies = kept
}

func (w *warp) land(c *asyncCopy) {
	to := w.b.shared[c.to : c.to+uint64(c.n)]
	if w.b.races != nil {
		w.b.races.access(w, c.in, int(c.lane), int(c.to), int(c.n), true)
	}
	if w.b.proxy != nil {
		w.b.proxy.wrote(w.index, int(c.to), int(c.n))
	}
	if c.real > 0 {
		copy(to, unsafe.Slice((*byte)(pointer(c.from)), c.real))
	}
	clear(to[c.real:])
}
