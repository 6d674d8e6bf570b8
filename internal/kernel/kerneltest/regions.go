package kerneltest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
)

// histories are transitions of any kind: what is drawn does not depend on their sense. Where labels
// wait for a reward, one of twelve pays.
func histories(s *kernel.RegionSpec, size, actions int) []int32 {
	random := rand.New(rand.NewPCG(uint64(s.Streams), uint64(s.Steps)))
	out := make([]int32, s.Len())
	seldom := 2
	if s.Later != nil {
		seldom = 12
	}
	for i := range out {
		out[i] = int32(random.IntN(size) | random.IntN(size)<<8 | random.IntN(actions)<<16 | random.IntN(seldom)/(seldom-1)<<24)
	}
	return out
}

// regionSpecs are rows with and without markers, of one length and of many, that end with a
// sequence and within one.
func regionSpecs() []kernel.RegionSpec {
	var out []kernel.RegionSpec
	for tokens := 1; tokens <= 40; tokens++ {
		out = append(out,
			model.Transitions(kernel.RegionSpec{Streams: 3, Steps: 47, Horizon: 4, Tokens: tokens, Seed: 9, Purpose: rng.Regions}, 2),
			model.Transitions(kernel.RegionSpec{Streams: 1 + tokens%4, Steps: 60, Horizon: 1 + tokens%5, Tokens: tokens, Compressed: true, Shortest: 1 + tokens%3, Longest: 2 + tokens%9,
				Ahead: tokens % 4, Seed: 1<<34 + 1, Purpose: rng.TestRegions}, 2),
			relabelled(kernel.RegionSpec{Streams: 1 + tokens%4, Steps: 60, Horizon: 1 + tokens%5, Tokens: tokens, Compressed: tokens%3 > 0, Shortest: 1 + tokens%3, Longest: 2 + tokens%9,
				Ahead: tokens % 4, Seed: 5, Purpose: rng.Regions}, 2+tokens%3))
	}
	return append(out,
		model.Transitions(kernel.RegionSpec{Streams: 11, Steps: 400, Horizon: 20, Tokens: 80, Seed: 2, Purpose: rng.Regions}, 2),
		model.Transitions(kernel.RegionSpec{Streams: 11, Steps: 400, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 80, Longest: 80, Ahead: 2, Seed: 2, Purpose: rng.Regions}, 2),
		model.Transitions(kernel.RegionSpec{Streams: 11, Steps: 400, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 20, Longest: 100, Ahead: 9, Seed: 2, Purpose: rng.Regions}, 2),
		relabelled(kernel.RegionSpec{Streams: 11, Steps: 400, Horizon: 20, Tokens: 164, Compressed: true, Shortest: 20, Longest: 80, Ahead: 9, Seed: 2, Purpose: rng.Regions}, 2))
}

// relabelled draws from records of several words, of which the last one has the label once a record
// has paid.
func relabelled(s kernel.RegionSpec, words int) kernel.RegionSpec {
	s = model.Transitions(s, 2)
	s.Record, s.Later = words, &kernel.Later{Paid: 3, Label: 4*words - 4}
	return s
}

func testRegions(t *testing.T, dev kernel.Device) {
	for i, s := range regionSpecs() {
		if !tries(dev, i) {
			continue
		}
		n := s.Tokens
		check(t, s.Check())
		c := trial{what: fmt.Sprintf("regions %+v", s), nodes: n, state: kernel.State{Instances: 1<<32 - 3}}
		c.record = func(r *recording) {
			r.do(&kernel.Regions{Index: r.outInts("index", n, model.TokenFields(2)), Labels: r.outInts("labels", n, 2), First: r.outInts("first", n),
				Records: r.data("history", histories(&s, 9, 5)), RegionSpec: s})
		}
		c.try(t, dev)
	}
}
