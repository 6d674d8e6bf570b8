package ptx

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unsafe"
)

// TensorMap describes a tensor of 16-bit numbers in global memory for the copy engine. NVIDIA does
// not publish the hardware's encoding; this package uses a different one.
type TensorMap struct {
	Address uint64
	Rank    int
	Sizes   [3]uint64 // numbers per dimension, the innermost first
	Strides [2]uint64 // bytes between neighbouring indices of the second and of the third dimension
	Box     [3]uint32 // numbers of a copy, per dimension
}

// TensorMapBytes is the size of an encoded TensorMap.
const TensorMapBytes = 128

const tensorMapMagic = 0x70616d726f736e74

// Encode writes the map in the form that kernels receive.
func (m *TensorMap) Encode(to *[TensorMapBytes]byte) {
	words := append([]uint64{tensorMapMagic, m.Address, uint64(m.Rank)}, m.Sizes[:]...)
	words = append(words, m.Strides[:]...)
	for _, n := range m.Box {
		words = append(words, uint64(n))
	}
	clear(to[:])
	for i, v := range words {
		binary.LittleEndian.PutUint64(to[8*i:], v)
	}
}

func decodeTensorMap(from []byte) (m TensorMap, ok bool) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(from[8*i:]) }
	if word(0) != tensorMapMagic {
		return m, false
	}
	m.Address, m.Rank = word(1), int(word(2))
	for i := range 3 {
		m.Sizes[i], m.Box[i] = word(3+i), uint32(word(8+i))
	}
	m.Strides = [2]uint64{word(6), word(7)}
	return m, true
}

// bulkCopy is a copy in flight.
type bulkCopy struct {
	to     int    // offset in shared memory
	from   uint64 // address of n contiguous bytes
	n      int
	tensor *TensorMap // instead of from: a box of this tensor, beginning at these indices
	at     [3]int32
}

// bytes returns the size of the destination. A box counts completely, also outside of the tensor.
func (c *bulkCopy) bytes() int {
	if c.tensor == nil {
		return c.n
	}
	b := c.tensor.Box
	return int(2 * b[0] * b[1] * b[2])
}

// bulk decodes cp.async.bulk.
func (x *decoder) bulk() (err error) {
	in := x.in
	switch {
	case x.is("prefetch.L2.global"):
		if err := x.count(2); err != nil {
			return err
		}
		if in.b, err = x.from(1, 4); err != nil {
			return err
		}
		in.f = prefetchBulk
		return x.address(0, global)
	case x.is("shared::cluster.global.mbarrier::complete_tx::bytes"):
		if err := x.count(4); err != nil {
			return err
		}
		if in.c, err = x.from(2, 4); err != nil {
			return err
		}
	case x.is("tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"), x.is("tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"):
		if err := x.count(3); err != nil {
			return err
		}
		o := x.s.args[1]
		n := 2
		if x.s.op[len("cp.async.bulk.tensor."):][:1] == "3" {
			n = 3
		}
		if in.ins, err = x.readAll(operand{kind: vector, list: o.list}, n, 4); err != nil {
			return err
		}
	default:
		return x.unknown()
	}
	last := x.s.args[len(x.s.args)-1]
	if last.kind != memory || last.bits != 0 {
		return x.unknown()
	}
	barrier, err := x.read(operand{kind: named, name: last.name}, 4)
	if err != nil {
		return err
	}
	in.ins = append(in.ins, barrier)
	from := x.s.args[1]
	var sp space
	var narrow bool
	if in.b, narrow, in.imm2, err = x.base(from, &sp); err != nil {
		return err
	}
	if from.kind != memory || in.b == none || narrow {
		return fmt.Errorf("no global address")
	}
	in.imm2 += int64(from.bits)
	in.f, x.c.p.async = copyBulk, true
	return x.address(0, shared)
}

func prefetchBulk(w *warp, in *inst) {
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		w.source(in, i, w.address(in, i), uint64(reg[uint32](w, in.b)[i]))
	}
}

// source checks a read of the copy engine.
func (w *warp) source(in *inst, lane int, at, n uint64) {
	if at%16 != 0 || n%16 != 0 || n == 0 {
		w.failLane(in, lane, "reads %d bytes at %#x: multiples of 16", n, at)
	}
	if s, ok := w.b.l.memory.find(at); !ok || !s.holds(at, n) {
		w.failLane(in, lane, "reads outside of all allocations: %d bytes at %#x, %s", n, at, w.b.l.memory.describe(at))
	}
}

// copyBulk starts a copy. Its destination holds NaNs until the phase of its barrier is over.
func copyBulk(w *warp, in *inst) {
	for m := w.mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		c := bulkCopy{from: reg[uint64](w, in.b)[i] + uint64(in.imm2), to: int(w.address(in, i)) - sharedBase}
		barrier := in.ins[len(in.ins)-1]
		at := w.barrierAt(in, uint64(reg[uint32](w, barrier)[i]), i)
		b := w.b.mbarriers[at]
		if b == nil || !b.visible {
			w.failLane(in, i, "names a barrier at %d that the copy engine does not see: no init, or no fence.mbarrier_init behind it", at)
		}
		aligned := 16
		if len(in.ins) > 1 {
			aligned = 128
			c.box(w, in, i)
		} else {
			c.n = int(reg[uint32](w, in.c)[i])
			w.source(in, i, c.from, uint64(c.n))
		}
		if c.to%aligned != 0 {
			w.failLane(in, i, "copies to %d, which is no multiple of %d", c.to, aligned)
		}
		w.async(in, i, c.to, c.bytes(), true)
		for j := range c.bytes() {
			w.b.shared[c.to+j] = 0xff
		}
		w.b.inform(b, w.index)
		b.copies = append(b.copies, c)
	}
}

// box reads the tensor's description at `from` and the lane's indices.
func (c *bulkCopy) box(w *warp, in *inst, lane int) {
	data, err := w.b.l.memory.Bytes(c.from, TensorMapBytes)
	if err != nil || c.from%64 != 0 {
		w.failLane(in, lane, "finds no description of a tensor at %#x: %v", c.from, err)
	}
	t, ok := decodeTensorMap(data)
	if !ok || t.Rank != len(in.ins)-1 {
		w.failLane(in, lane, "finds no description of a tensor of %d dimensions at %#x", len(in.ins)-1, c.from)
	}
	end := t.Address + 2*t.Sizes[0] + (t.Sizes[1]-1)*t.Strides[0]
	if t.Rank > 2 {
		end += (t.Sizes[2] - 1) * t.Strides[1]
	}
	if s, ok := w.b.l.memory.find(t.Address); !ok || !s.holds(t.Address, end-t.Address) {
		w.failLane(in, lane, "has a tensor outside of all allocations: %d bytes at %#x, %s", end-t.Address, t.Address, w.b.l.memory.describe(t.Address))
	}
	c.tensor = &t
	for d := range t.Rank {
		c.at[d] = reg[int32](w, in.ins[d])[lane]
	}
}

// swizzle maps a byte's offset in rows of 128 bytes to its address: bits 4 to 6 are xored with bits
// 7 to 9.
func swizzle(at int) int { return at ^ at>>3&0x70 }

// land completes the copy. Numbers outside of the tensor are zeros. Rows of a box have 128 bytes
// and are swizzled by their address.
func (c *bulkCopy) land(r *threadBlock) {
	if c.tensor == nil {
		copy(r.shared[c.to:c.to+c.n], unsafe.Slice((*byte)(pointer(c.from)), c.n))
		return
	}
	t := c.tensor
	inside := func(d int, i int) (uint64, bool) {
		at := int(c.at[d]) + i
		return uint64(at), at >= 0 && uint64(at) < t.Sizes[d]
	}
	to := c.to
	for z := range int(t.Box[2]) {
		for y := range int(t.Box[1]) {
			row := t.Address
			ok := true
			if t.Rank > 2 {
				i, in := inside(2, z)
				row, ok = row+i*t.Strides[1], in
			}
			i, in := inside(1, y)
			row, ok = row+i*t.Strides[0], ok && in
			for x := range int(t.Box[0]) {
				at := sharedBase + to
				place := r.shared[swizzle(at)-sharedBase:]
				var v uint16
				if i, in := inside(0, x); ok && in {
					v = *(*uint16)(pointer(row + 2*i))
				}
				binary.LittleEndian.PutUint16(place, v)
				to += 2
			}
		}
	}
}
