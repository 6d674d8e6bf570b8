package lab

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"haul/internal/device"
	"haul/internal/model"
	"haul/internal/plan"
)

func TestEveryWayOfCollatingGivesTheSame(t *testing.T) {
	s := newSamples(9)
	want, slab := s.lists(), s.fresh()
	for f := range slab {
		for i := range slab[f] {
			slab[f][i] = 99 // content of the previous batch
		}
	}
	s.into(slab)
	for f, fresh := range s.fresh() {
		if !slices.Equal(want[f], fresh) || !slices.Equal(want[f], slab[f]) {
			t.Errorf("array %d differs", f)
		}
	}
	e := newEmbedding(7)
	out := make([]float32, len(e.input))
	if e.once(out); !slices.Equal(e.perToken(), out) {
		t.Error("the two ways of embedding differ")
	}
}

// Packing keeps every sequence whole and in one row, and every row within its length.
func TestPackingKeepsEverySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tokens = 40
		var items [][3][]int32
		for range rapid.IntRange(1, 60).Draw(t, "sequences") {
			items = append(items, [3][]int32{2: make([]int32, rapid.IntRange(1, tokens).Draw(t, "length"))})
		}
		var seen []int
		rows := pack(items, tokens)
		for r, members := range rows {
			sum := 0
			for _, i := range members {
				sum += len(items[i][2])
			}
			if sum > tokens {
				t.Fatalf("row %d has %d tokens", r, sum)
			}
			seen = append(seen, members...)
		}
		if slices.Sort(seen); len(seen) != len(items) || len(slices.Compact(seen)) != len(items) {
			t.Fatalf("%d sequences went in, %v came out", len(items), seen)
		}
	})
}

func TestPackedAndPaddedSequencesHaveTheSameLoss(t *testing.T) {
	dev, err := device.Open("cpu", device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	a, err := newAgent(10, 40)
	if err != nil {
		t.Fatal(err)
	}
	var items [][3][]int32
	var alone [][]int
	for i := range 40 {
		items, alone = append(items, sequence(&a.spec, a.history, uint64(i))), append(alone, []int{i})
	}
	packed := pack(items, packedLongest*a.spec.Tokens)
	if packedLongest*len(packed) >= len(alone) {
		t.Errorf("%d rows packed, %d padded", len(packed), len(alone))
	}
	var sums []plan.HeadSums
	for i, rows := range [][][]int{alone, packed} {
		tokens := []int{a.spec.Tokens, packedLongest * a.spec.Tokens}[i]
		store, err := a.store(dev)
		if err != nil {
			t.Fatal(err)
		}
		run, err := a.compile(dev, store, len(rows), tokens, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := run.write(packRows(items, rows, tokens)); err != nil {
			t.Fatal(err)
		}
		if err := run.runner.Run(); err != nil {
			t.Fatal(err)
		}
		m, err := run.runner.TakeMetrics()
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, plan.HeadOf(m, model.HeadAction))
	}
	if err := sameLoss(sums[0], sums[1]); err != nil {
		t.Error(err)
	}
	sums[1].Loss *= 1.01
	if sameLoss(sums[0], sums[1]) == nil {
		t.Error("a wrong loss passed the check")
	}
}

// The experiments' agent learns the behaviour in its histories.
func TestTheAgentLearns(t *testing.T) {
	dev, err := device.Open("cpu", device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	a, err := newAgent(10, 10)
	if err != nil {
		t.Fatal(err)
	}
	before, err := a.learn(context.Background(), dev, 2048, 0)
	if err != nil {
		t.Fatal(err)
	}
	after, err := a.learn(context.Background(), dev, 2048, 3e-3)
	if err != nil {
		t.Fatal(err)
	}
	if !(after < 0.95*before) {
		t.Errorf("loss %v before, %v after", before, after)
	}
}
