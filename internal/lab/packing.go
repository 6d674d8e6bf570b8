package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/loader"
	"haul/internal/model"
	"haul/internal/plan"
)

// packedSequences is the number of sequences of a step: enough to keep a device busy.
var packedSequences = map[string]int{"CPU": 256, "GPU": 8192}

// packedLongest is the number of the longest sequences that fit into a packed row. With more, less
// space is wasted at the ends of rows.
const packedLongest = 3

// packRows writes sequences into rows of a slab, contiguously in each row. The rest of a row is
// part of its last sequence, without content and labels.
func packRows(items [][3][]int32, rows [][]int, tokens int) *kernel.Slab {
	s := loader.NewSlabs([]int{tokens * fieldWords[0], tokens * fieldWords[1], tokens * fieldWords[2]}, len(rows), 1)[0]
	for _, part := range s.Ints[:2] {
		for i := range part {
			part[i] = -1
		}
	}
	for r, members := range rows {
		at := 0
		for _, i := range members {
			n := len(items[i][2])
			for f, w := range fieldWords[:2] {
				copy(s.Ints[f][(r*tokens+at)*w:], items[i][f])
			}
			for t := at; t < tokens; t++ {
				s.Ints[2][r*tokens+t] = int32(at)
			}
			at += n
		}
	}
	return s
}

// pack assigns sequences to few rows by first-fit decreasing: each sequence, longest first, goes
// into the first row with enough space.
func pack(items [][3][]int32, tokens int) (rows [][]int) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	length := func(i int) int { return len(items[i][2]) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(length(b), length(a)) })
	var room []int
	for _, i := range order {
		r := slices.IndexFunc(room, func(left int) bool { return left >= length(i) })
		if r < 0 {
			r, room, rows = len(room), append(room, tokens), append(rows, nil)
		}
		room[r] -= length(i)
		rows[r] = append(rows[r], i)
	}
	return rows
}

func packing(ctx context.Context, e *env, r *Result) error {
	a, err := newAgent(10, 40)
	if err != nil {
		return err
	}
	r.note("one layer of width 32, sequences of two regions of 10 to 40 transitions, forward, backward and update; the loader itself cuts a row's last sequence off and leaves nothing empty")
	return e.everywhere(ctx, "", func(dev kernel.Device, name string) error { return r.packOn(ctx, a, dev, name) })
}

func (r *Result) packOn(ctx context.Context, a *agent, dev kernel.Device, name string) (err error) {
	n, used := packedSequences[name], 0
	items, alone := make([][3][]int32, n), make([][]int, n)
	for i := range items {
		items[i], alone[i] = sequence(&a.spec, a.history, uint64(i)), []int{i}
		used += len(items[i][2])
	}
	packed := pack(items, packedLongest*a.spec.Tokens)
	var runs []*agentRun
	var sums []plan.HeadSums
	defer func() {
		for _, run := range runs {
			err = errors.Join(err, run.close())
		}
	}()
	layouts := []struct {
		way    string
		rows   [][]int
		tokens int
	}{{"padded", alone, a.spec.Tokens}, {"packed", packed, packedLongest * a.spec.Tokens}}
	for _, l := range layouts {
		store, err := a.store(dev)
		if err != nil {
			return err
		}
		run, err := a.compile(dev, store, len(l.rows), l.tokens, true)
		if err != nil {
			return errors.Join(err, store.Close())
		}
		run.store = store
		runs = append(runs, run)
		if err := errors.Join(run.write(packRows(items, l.rows, l.tokens)), run.runner.Run()); err != nil {
			return err
		}
		m, err := run.runner.TakeMetrics()
		if err != nil {
			return err
		}
		sums = append(sums, plan.HeadOf(m, model.HeadAction))
	}
	if err := sameLoss(sums[0], sums[1]); err != nil {
		return err
	}
	t, err := race(ctx, stepRounds, replay(runs[0].runner), replay(runs[1].runner))
	if err != nil {
		return err
	}
	r.row("tokens", float64(used), "%s, in %s sequences", name, thousands(int64(n)))
	for i, l := range layouts {
		computed := float64(len(l.rows) * l.tokens)
		r.row("tokens", computed, "%s, computed, %s: %.1f %% of them content", name, l.way, 100*float64(used)/computed)
		r.row("s", t[i], "%s, a step, %s", name, l.way)
	}
	r.finds(direction("004", "its collate function pads every sample to the longest; packed end to end, the same step takes less time ("+name+")"), t[0]/t[1])
	return nil
}

// sameLoss compares sums over the same tokens in another order, in float32 and on devices of
// different precision.
func sameLoss(a, b plan.HeadSums) error {
	if a.Labels != b.Labels || !(math.Abs(a.Loss-b.Loss) <= 1e-3*math.Abs(a.Loss)) {
		return fmt.Errorf("padded, %d labels have a loss of %v; packed, %d have %v", a.Labels, a.Loss, b.Labels, b.Loss)
	}
	return nil
}
