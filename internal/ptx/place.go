package ptx

import (
	"cmp"
	"math/bits"
	"slices"
)

// PTX has any number of registers. Registers that are not needed at the same time share a slot, so
// that a warp's registers fit into the host's fast caches.

// place assigns slots to virtual registers and replaces the operands by offsets.
func (c *compiler) place() {
	n := len(c.classes)
	from, to := make([]int32, n), make([]int32, n)
	blocks := c.blocks()
	c.loops(blocks)
	for i := range from {
		from[i], to[i] = int32(len(c.p.code)), -1
	}
	reach := func(v int32, at int) {
		from[v], to[v] = min(from[v], int32(at)), max(to[v], int32(at))
	}
	for _, v := range c.pinned {
		reach(v, 0)
		reach(v, len(c.p.code))
	}
	c.spans(blocks, reach)
	offsets := c.slots(from, to)
	fix := func(o *int32) {
		if *o >= 0 {
			*o = offsets[*o]
		}
	}
	for i := range c.p.code {
		in := &c.p.code[i]
		fix(&in.d)
		fix(&in.a)
		fix(&in.b)
		fix(&in.c)
		for j := range in.outs {
			fix(&in.outs[j])
		}
		for j := range in.ins {
			fix(&in.ins[j])
		}
	}
	for i := range c.p.specials {
		fix(&c.p.specials[i].slot)
	}
}

// slots assigns slots along the code: a register gets a slot that is free where the register is
// first used.
func (c *compiler) slots(from, to []int32) []int32 {
	order := make([]int32, 0, len(from))
	for v := range from {
		if to[v] >= 0 {
			order = append(order, int32(v))
		}
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(from[a], from[b]), cmp.Compare(a, b)) })
	offsets := make([]int32, len(from))
	for _, k := range []class{word, double} {
		var free []int32
		var busy []int32 // sorted by the end of their use
		for _, v := range order {
			if c.classes[v] != k {
				continue
			}
			for len(busy) > 0 && to[busy[0]] < from[v] {
				free = append(free, offsets[busy[0]])
				busy = busy[1:]
			}
			if len(free) > 0 {
				offsets[v] = free[len(free)-1]
				free = free[:len(free)-1]
			} else {
				offsets[v] = int32(c.p.frame)
				c.p.frame += lanes * 4 << (k - word)
			}
			i, _ := slices.BinarySearchFunc(busy, to[v], func(b, t int32) int { return cmp.Compare(to[b], t) })
			busy = slices.Insert(busy, i, v)
		}
	}
	return offsets
}

type block struct {
	from, to   int // instructions [from, to)
	next       []int
	need, kill []uint64 // sets of registers
	in, out    []uint64
}

// uses calls f for every register that an instruction reads, and writes for every register that it
// writes.
func (in *inst) uses(f func(v int32)) {
	for _, v := range [...]int32{in.a, in.b, in.c} {
		if v >= 0 {
			f(v)
		}
	}
	for _, v := range in.ins {
		if v >= 0 {
			f(v)
		}
	}
}

func (in *inst) writes(f func(v int32)) {
	if in.d >= 0 {
		f(in.d)
	}
	for _, v := range in.outs {
		if v >= 0 {
			f(v)
		}
	}
}

// spans reports where every register is live, by backward data flow over basic blocks.
func (c *compiler) spans(blocks []block, reach func(v int32, at int)) {
	words := (len(c.classes) + 63) / 64
	for i := range blocks {
		b := &blocks[i]
		room := make([]uint64, 4*words)
		b.need, b.kill, b.in, b.out = room[:words], room[words:2*words], room[2*words:3*words], room[3*words:]
		for at := b.from; at < b.to; at++ {
			in := &c.p.code[at]
			use := func(v int32) {
				if b.kill[v/64]>>(v%64)&1 == 0 {
					b.need[v/64] |= 1 << (v % 64)
				}
				reach(v, at)
			}
			in.uses(use)
			in.writes(func(v int32) {
				if in.guard != none {
					use(v)
				}
				b.kill[v/64] |= 1 << (v % 64)
				reach(v, at)
			})
		}
	}
	for changed := true; changed; {
		changed = false
		for i := len(blocks) - 1; i >= 0; i-- {
			b := &blocks[i]
			for w := range b.out {
				var out uint64
				for _, n := range b.next {
					out |= blocks[n].in[w]
				}
				b.out[w] = out
				if in := b.need[w] | out&^b.kill[w]; in != b.in[w] {
					b.in[w], changed = in, true
				}
			}
		}
	}
	for i := range blocks {
		b := &blocks[i]
		for w := range b.in {
			for m := b.in[w]; m != 0; m &= m - 1 {
				reach(int32(64*w+bits.TrailingZeros64(m)), b.from)
			}
			for m := b.out[w]; m != 0; m &= m - 1 {
				reach(int32(64*w+bits.TrailingZeros64(m)), b.to-1)
			}
		}
	}
}

// blocks divides the code into basic blocks.
func (c *compiler) blocks() []block {
	code := c.p.code
	leads := make([]bool, len(code)+1)
	leads[0], leads[len(code)] = true, true
	for i := range code {
		if code[i].jumps {
			leads[i+1] = true
			if code[i].target >= 0 {
				leads[code[i].target] = true
			}
		}
	}
	var all []block
	index := make([]int, len(code)+1)
	for i := range code {
		if leads[i] {
			all = append(all, block{from: i})
		}
		index[i] = len(all) - 1
		all[len(all)-1].to = i + 1
	}
	for i := range all {
		last := &code[all[i].to-1]
		if last.jumps && last.target >= 0 {
			all[i].next = append(all[i].next, index[last.target])
		}
		if all[i].to < len(code) && !(last.jumps && last.guard == none) {
			all[i].next = append(all[i].next, i+1)
		}
	}
	return all
}

// loops gives every backward branch the end of its loop: the end of the last block from which the
// branch can be reached without passing the branch's target.
func (c *compiler) loops(blocks []block) {
	before := make([][]int, len(blocks))
	first := map[int32]int{}
	for i, b := range blocks {
		first[int32(b.from)] = i
		for _, n := range b.next {
			before[n] = append(before[n], i)
		}
	}
	ends := make([]int, len(blocks))    // end of the loop that begins with a block
	begins := make([]bool, len(blocks)) // the block ends with a backward branch
	inside := make([]int, len(blocks))
	for i, b := range blocks {
		last := &c.p.code[b.to-1]
		if !last.jumps || last.target < 0 || int(last.target) > b.from {
			continue
		}
		head := first[last.target]
		end, left := b.to, []int{i}
		begins[i] = true
		for len(left) > 0 {
			at := left[len(left)-1]
			left = left[:len(left)-1]
			if inside[at] == i+1 {
				continue
			}
			inside[at] = i + 1
			end = max(end, blocks[at].to)
			if at != head {
				left = append(left, before[at]...)
			}
		}
		ends[head] = max(ends[head], end)
	}
	for i, b := range blocks {
		if last := &c.p.code[b.to-1]; begins[i] {
			last.imm = int64(ends[first[last.target]])
		}
	}
}
