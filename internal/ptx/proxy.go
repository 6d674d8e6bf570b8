package ptx

import "math/bits"

// proxy tracks writes to shared memory that are not visible to the async proxy, the path by which
// the copy engine and the products of a warpgroup access it. A thread's writes become visible to
// them by fence.proxy.async. Only kernels that use that path have a proxy.
type proxy struct {
	unsealed []uint32  // by 16 bytes of shared memory: warps with writes before a fence
	written  [][]int32 // by warp: indices of its bits in unsealed
}

const proxyBytes = 16

func newProxy(b *threadBlock) *proxy {
	return &proxy{unsealed: make([]uint32, len(b.shared)/proxyBytes+1), written: make([][]int32, len(b.warps))}
}

func (p *proxy) begin() {
	clear(p.unsealed)
	for i := range p.written {
		p.written[i] = p.written[i][:0]
	}
}

// wrote records n bytes that a warp has written.
func (p *proxy) wrote(warp int, at, n int) {
	for i := at / proxyBytes; i <= (at+n-1)/proxyBytes; i++ {
		if p.unsealed[i]>>warp&1 == 0 {
			p.unsealed[i] |= 1 << warp
			p.written[warp] = append(p.written[warp], int32(i))
		}
	}
}

// seal is fence.proxy.async.
func seal(w *warp, _ *inst) {
	p := w.b.proxy
	for _, i := range p.written[w.index] {
		p.unsealed[i] &^= 1 << w.index
	}
	p.written[w.index] = p.written[w.index][:0]
}

// async checks an access of n bytes by the async proxy.
func (w *warp) async(in *inst, lane, at, n int, writes bool) {
	if at < 0 || at+n > len(w.b.shared) {
		w.failLane(in, lane, "%s outside of the block's shared memory: %d bytes at %d of %d", verb(writes), n, at, len(w.b.shared))
	}
	for i := at / proxyBytes; i <= (at+n-1)/proxyBytes; i++ {
		if m := w.b.proxy.unsealed[i]; m != 0 {
			w.failLane(in, lane, "%s shared memory at %d, which warp %d has written without fence.proxy.async", verb(writes), at, bits.TrailingZeros32(m))
		}
	}
	if w.b.races != nil {
		w.b.races.access(w, in, lane, at, n, writes)
	}
}
