package analysis

import (
	"encoding/binary"
	"hash/fnv"
	"slices"

	"haul/internal/doctor/trace"
)

// Ranks that run the same operators on the same shapes have the same work. If one rank sometimes
// takes longer for the same operator, the machine is the cause: other programs use the cores too.
// If it always takes longer, its core is slower.

// steadyRank is a ratio over all operators: the lower quartile of an operator's durations divided
// by their median. Ranks above it have their cores for themselves.
const steadyRank = 0.9

// Jitter returns the excess time of each rank's main thread in its operators, by step, in ns. The
// excess is relative to the median, over the rank's own steps if these are steady, otherwise over
// all ranks and steps. With GPUs it is the excess of kernels that sometimes run longer. It returns
// nil if this is unknown: with few steps, without shapes, or if the operators differ between steps
// or ranks.
func Jitter(ranks []*Analysis) [][]float64 {
	out := make([][]float64, len(ranks))
	for r, a := range ranks {
		if out[r] = a.Spikes(); out[r] == nil || len(out[r]) != len(out[0]) {
			return operatorJitter(ranks)
		}
	}
	return out
}

// operatorJitter is Jitter for ranks without GPUs.
func operatorJitter(ranks []*Analysis) [][]float64 {
	out := make([][]float64, len(ranks))
	durs := make([][][]float32, len(ranks)) // by rank, step and position
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
	steady := make([]bool, len(ranks))
	for r := range durs {
		var quarter, middle float64
		for place := range durs[0][0] {
			list := column(nil, durs[r], place)
			slices.Sort(list)
			quarter += float64(list[len(list)/4])
			middle += float64(list[len(list)/2])
		}
		steady[r] = quarter >= steadyRank*middle
	}
	var all, own []float32
	for place := range durs[0][0] {
		all = all[:0]
		for r := range durs {
			all = column(all, durs[r], place)
		}
		usual := Median(all)
		for r := range durs {
			middle := usual
			if steady[r] {
				own = column(own[:0], durs[r], place)
				middle = Median(own)
			}
			for step := range durs[r] {
				out[r][step] += float64(durs[r][step][place] - middle)
			}
		}
	}
	return out
}

// column appends the entries at one position of all steps to a list.
func column(list []float32, steps [][]float32, place int) []float32 {
	for _, durs := range steps {
		list = append(list, durs[place])
	}
	return list
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
