package ptx

// races finds accesses of different warps to shared memory that no barrier orders, if one of them
// is a write. Every warp has a vector clock. After a barrier, all its warps know what each has done
// before. Lanes of one warp count as ordered.
type races struct {
	b      *threadBlock
	warps  int
	clocks [][]uint32 // by warp: the latest time of each warp that it knows
	wrote  []stamp    // last write, by two bytes
	others []uint64   // warps that have read since the last write
	times  []uint32   // of reads, by two bytes and warp
}

type stamp struct {
	time uint32
	warp int32
	line int32
}

func newRaces(b *threadBlock) *races {
	r := &races{b: b, warps: len(b.warps), wrote: make([]stamp, len(b.shared)/2+1), others: make([]uint64, len(b.shared)/2+1)}
	r.times = make([]uint32, len(r.wrote)*r.warps)
	for i := range b.warps {
		clock := make([]uint32, r.warps)
		clock[i] = 1
		r.clocks = append(r.clocks, clock)
	}
	return r
}

// access checks an access of n bytes.
func (r *races) access(w *warp, in *inst, lane, at, n int, writes bool) {
	me := w.index
	clock := r.clocks[me]
	for i := at / 2; i <= (at+n-1)/2; i++ {
		if s := r.wrote[i]; s.time > clock[s.warp] && int(s.warp) != me {
			w.failLane(in, lane, "races: %s shared memory at %d, which warp %d wrote at +%d with nothing between", verb(writes), at, s.warp, s.line)
		}
		if !writes {
			r.times[i*r.warps+me] = clock[me]
			r.others[i] |= 1 << me
			continue
		}
		for o := range r.warps {
			if o != me && r.others[i]>>o&1 != 0 && r.times[i*r.warps+o] > clock[o] {
				w.failLane(in, lane, "races: writes shared memory at %d, which warp %d has read with nothing between", at, o)
			}
		}
		r.others[i] = 0
		r.wrote[i] = stamp{clock[me], int32(me), in.line}
	}
}

// meet makes all the warps know what each of them has done.
func (r *races) meet(warps []int) {
	latest := make([]uint32, r.warps)
	for _, i := range warps {
		for j, t := range r.clocks[i] {
			latest[j] = max(latest[j], t)
		}
	}
	for _, i := range warps {
		copy(r.clocks[i], latest)
		r.clocks[i][i]++
	}
}
