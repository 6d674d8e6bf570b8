package ptx

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"
)

// warp is 32 threads that run together. Lanes that have diverged form groups with separate
// positions in the code. The group with the lowest position runs, and groups at equal positions
// merge. A group that repeats a loop counts as behind all groups that are still in the loop. At an
// instruction that needs all lanes, a group waits for the others.
type warp struct {
	frame     unsafe.Pointer // registers
	consts    unsafe.Pointer
	pred      []uint32
	mask      uint32 // lanes of the present instruction
	active    uint32 // lanes of the group that runs
	live      uint32 // lanes that have not ended
	pc        int32
	meets     int32 // the lowest position of the other groups
	state     state
	wide      [lanes]uint64 // results of an instruction of some lanes, before they are merged
	tile      tile
	near      span // the allocation of the last access
	b         *threadBlock
	index     int
	groups    []laneGroup
	code      []inst
	ran       int // number of instructions
	local     []byte
	copies    []asyncCopy // asynchronous copies in the order of issue
	issued    uint64      // number of copies since the block began
	registers int32       // registers per thread, which setmaxnreg changes
	products  products
	closed    [lanes]int
	waits     waiting
}

// laneGroup is a group of lanes that does not run.
type laneGroup struct {
	pc, key int32 // the group with the least key runs: its position, the end of a loop, or nowhere if it waits for lanes
	lanes   uint32
}

type state uint8

const (
	ready   state = iota
	yielded       // after a query that returned false
	parked        // at a barrier
	ended
)

// waiting describes the barrier at which a warp is parked.
type waiting struct {
	barrier int
	line    int32
}

const nowhere = math.MaxInt32

// reg returns the 32 lanes of a register.
func reg[T any](w *warp, o int32) *[lanes]T {
	if o < 0 {
		return (*[lanes]T)(unsafe.Add(w.consts, ^o))
	}
	return (*[lanes]T)(unsafe.Add(w.frame, o))
}

// result returns where an instruction writes d: a buffer if not all lanes take part, else the
// register.
func result[T any](w *warp, in *inst) *[lanes]T {
	if w.mask != full {
		return (*[lanes]T)(unsafe.Pointer(&w.wide))
	}
	return (*[lanes]T)(unsafe.Add(w.frame, in.d))
}

// merge copies the buffer of result into the lanes that take part.
func (w *warp) merge(in *inst) {
	if in.wide == 4 {
		d, t := reg[uint32](w, in.d), (*[lanes]uint32)(unsafe.Pointer(&w.wide))
		for m := w.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros32(m)
			d[i] = t[i]
		}
		return
	}
	d := reg[uint64](w, in.d)
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m)
		d[i] = w.wide[i]
	}
}

// run executes up to n instructions, until the warp must wait or has ended.
func (w *warp) run(n int) {
	code := w.code
	for ; n > 0; n-- {
		if w.pc >= w.meets {
			w.regroup()
		}
		in := &code[w.pc]
		m := w.active
		if in.guard >= 0 {
			g := w.pred[in.guard]
			if in.unless {
				g = ^g
			}
			m &= g
			if m == 0 {
				w.pc++
				continue
			}
		}
		if in.sync && m != w.live {
			if w.meet(in, m) {
				continue
			}
		}
		w.mask = m
		w.pc++
		w.ran++
		in.f(w, in)
		if m != full && in.wide != 0 {
			w.merge(in)
		}
		if w.state != ready {
			return
		}
	}
}

// regroup adds the running group to the others and selects the group with the lowest key, merged
// with all groups at its position.
func (w *warp) regroup() {
	w.groups = append(w.groups, laneGroup{w.pc, w.pc, w.active})
	w.pick()
}

// pick selects the group with the lowest key.
func (w *warp) pick() {
	best, least := int32(0), int32(nowhere)
	for _, g := range w.groups {
		// of groups that wait for the end of the same loop, those inside of it come first
		if g.key < least || g.key == least && g.pc > best && least != nowhere {
			best, least = g.pc, g.key
		}
	}
	if least == nowhere {
		w.blocked()
		return
	}
	w.pc, w.active, w.meets = best, 0, nowhere
	kept := w.groups[:0]
	for _, g := range w.groups {
		if g.pc == best {
			w.active |= g.lanes
		} else {
			kept = append(kept, g)
			w.meets = min(w.meets, g.key)
		}
	}
	w.groups = kept
}

// meet parks a group before an instruction that needs all lanes, and reports whether the warp
// continues with another group. When the last group arrives, all of them merge.
func (w *warp) meet(in *inst, m uint32) bool {
	if m != w.active {
		w.fail(in, "is for all lanes of a warp, its guard leaves %08x of %08x", m, w.live)
	}
	at := w.pc
	for i := 0; i < len(w.groups); {
		if w.groups[i].pc != at {
			i++
			continue
		}
		w.active |= w.groups[i].lanes
		w.groups[i] = w.groups[len(w.groups)-1]
		w.groups = w.groups[:len(w.groups)-1]
	}
	if w.active == w.live {
		w.meets = nowhere
		return true // run selects again, with all lanes
	}
	w.groups = append(w.groups, laneGroup{at, nowhere, w.active})
	w.pick()
	return true
}

// blocked fails: all groups wait for each other at different positions.
func (w *warp) blocked() {
	g := w.groups[0]
	in := &w.code[g.pc]
	w.mask = g.lanes
	text := ""
	for _, o := range w.groups[1:] {
		text += fmt.Sprintf("; lanes %08x wait at +%d (%s)", o.lanes, w.code[o.pc].line, w.code[o.pc].op)
	}
	w.fail(in, "is for all lanes of a warp, only %08x are here%s", g.lanes, text)
}

// part splits off the lanes that take a branch.
func (w *warp) part(target int32, taken uint32) {
	rest := w.active &^ taken
	if rest == 0 {
		w.pc = target
		return
	}
	w.groups = append(w.groups, laneGroup{target, target, taken})
	w.active = rest
	w.meets = min(w.meets, target)
}

// branch is bra.
func branch(w *warp, in *inst) {
	if in.imm == 0 || w.mask == w.live {
		w.part(in.target, w.mask)
		return
	}
	// the loop is repeated: lanes that are still in it run first
	w.groups = append(w.groups, laneGroup{in.target, int32(in.imm), w.mask})
	if w.active &^= w.mask; w.active != 0 {
		w.groups = append(w.groups, laneGroup{w.pc, w.pc, w.active})
	}
	w.pick()
}

// leave is exit, and ret of a kernel.
func leave(w *warp, in *inst) {
	w.live &^= w.mask
	w.active &^= w.mask
	if w.active != 0 {
		return
	}
	if len(w.groups) == 0 {
		w.state = ended
		return
	}
	// groups that waited for lanes which have ended continue
	for i := range w.groups {
		w.groups[i].key = w.groups[i].pc
	}
	w.pick()
}

// Fault is an error of a kernel.
type Fault struct {
	Kernel        string
	Line          int // counted from the line with the kernel's name
	Op            string
	Block, Thread [3]int
	Text          string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("kernel %s +%d, block %v, thread %v: %s %s", f.Kernel, f.Line, f.Block, f.Thread, f.Op, f.Text)
}

// fail ends the launch with a fault of the first active thread.
func (w *warp) fail(in *inst, format string, args ...any) {
	w.failLane(in, bits.TrailingZeros32(w.mask|1<<31), format, args...)
}

func (w *warp) failLane(in *inst, lane int, format string, args ...any) {
	panic(&Fault{Kernel: w.b.l.p.Name, Line: int(in.line), Op: in.op, Block: w.b.at, Thread: w.b.l.thread(w.index*lanes + lane),
		Text: fmt.Sprintf(format, args...)})
}
