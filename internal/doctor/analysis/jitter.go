package analysis

import (
	"encoding/binary"
	"hash/fnv"

	"haul/internal/doctor/trace"
)

// Ranks that run the same operators on the same shapes have the same work. What one of them takes
// longer for the same operator is the machine's doing: cores that others use too, or that change
// their clock.

// Jitter is how much longer each rank's main thread is in its operators, by step, than these take
// in the middle over all ranks and steps, ns. It is nil where that cannot be told: with a GPU,
// without shapes, or where the operators are not the same in all steps of all ranks.
func Jitter(ranks []*Analysis) [][]float64 {
	out := make([][]float64, len(ranks))
	durs := make([][][]float32, len(ranks)) // by rank, step and place
	var work uint64
	for r, a := range ranks {
		if len(a.Devices) > 0 || a.Main == nil || !a.Shapes || len(a.CPUSteps) != len(ranks[0].CPUSteps) {
			return nil
		}
		durs[r] = make([][]float32, len(a.CPUSteps))
		hashes := make([]uint64, len(a.CPUSteps))
		a.EachOp(func(th *trace.Thread, _, step int, o *trace.Op) {
			if th == a.Main {
				durs[r][step] = append(durs[r][step], o.Dur)
				hashes[step] = a.chain(hashes[step], o)
			}
		})
		for _, h := range hashes {
			if work == 0 {
				work = h
			}
			if h == 0 || h != work {
				return nil
			}
		}
		out[r] = make([]float64, len(a.CPUSteps))
	}
	var all []float32
	for place := range durs[0][0] {
		all = all[:0]
		for r := range durs {
			for step := range durs[r] {
				all = append(all, durs[r][step][place])
			}
		}
		middle := Median(all)
		for r := range durs {
			for step := range durs[r] {
				out[r][step] += float64(durs[r][step][place] - middle)
			}
		}
	}
	return out
}

// chain adds an operator and its shapes to a fingerprint.
func (a *Analysis) chain(h uint64, o *trace.Op) uint64 {
	f := fnv.New64a()
	var b [8]byte
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(b[:], v)
		f.Write(b[:])
	}
	put(h)
	f.Write([]byte(a.Names.List[o.Name].Text))
	if o.Form != 0 {
		for _, in := range a.Forms[o.Form].Inputs {
			put(uint64(len(in.Dims))<<8 | uint64(in.Width))
			for _, d := range in.Dims {
				put(uint64(d))
			}
		}
	}
	return f.Sum64()
}
