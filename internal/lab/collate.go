package lab

import (
	"context"
	"fmt"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/host"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world/grid"
)

// Sizes of the batch that is collated and embedded: that of one of report 004's four GPUs.
const (
	collatedRows = 128
	embedWidth   = 128
	embedTokens  = 80 // tokens of a sample
)

// samples is the input of a collate function: items of a data set, each with separate arrays of its
// own length.
type samples struct {
	tokens int          // of the longest item
	items  [][3][]int32 // index, labels, first
	pad    []int32      // zeros for padding
}

// fieldWords is the number of 32-bit words per token in each array of a sample.
var fieldWords = [3]int{model.TokenFields(2), 2, 1}

// newSamples generates sequences of two regions of 20 to 80 transitions.
func newSamples(n int) *samples {
	spec := loadedSpec()
	spec.Streams, spec.Shortest = 100, 20
	history := walks(&spec, grid.Room{Size: 9, Horizon: spec.Horizon})
	s := &samples{tokens: spec.Tokens, pad: make([]int32, spec.Tokens*model.TokenFields(2))}
	for g := range n {
		s.items = append(s.items, sequence(&spec, history, uint64(g)))
	}
	return s
}

// sequence returns the first sequence of row g.
func sequence(spec *kernel.RegionSpec, history []int32, g uint64) (item [3][]int32) {
	for f, w := range fieldWords {
		item[f] = make([]int32, spec.Tokens*w)
	}
	host.Row(spec, item[0], item[1], item[2], history, g)
	n := slices.IndexFunc(item[2], func(begin int32) bool { return begin > 0 })
	if n < 0 {
		n = spec.Tokens
	}
	for f, w := range fieldWords {
		item[f] = item[f][: n*w : n*w]
	}
	return item
}

// lists pads every array into a new one, collects these in a list and concatenates it.
func (s *samples) lists() (out [3][]int32) {
	for f, w := range fieldWords {
		var list [][]int32
		for i := range s.items {
			item := s.items[i][f]
			list = append(list, slices.Concat(item, s.pad[:s.tokens*w-len(item)]))
		}
		for _, padded := range list {
			out[f] = append(out[f], padded...)
		}
	}
	return out
}

// fresh allocates zeros for the whole batch once and copies every array into them.
func (s *samples) fresh() (out [3][]int32) {
	for f, w := range fieldWords {
		out[f] = make([]int32, len(s.items)*s.tokens*w)
		for i := range s.items {
			copy(out[f][i*s.tokens*w:], s.items[i][f])
		}
	}
	return out
}

// into is fresh with memory that exists already.
func (s *samples) into(out [3][]int32) {
	for f, w := range fieldWords {
		for i := range s.items {
			row := out[f][i*s.tokens*w:][:s.tokens*w]
			clear(row[copy(row, s.items[i][f]):])
		}
	}
}

func collate(ctx context.Context, _ *env, r *Result) error {
	s := newSamples(collatedRows)
	slab := s.fresh()
	s.into(slab)
	for f, want := range s.lists() {
		if !slices.Equal(want, s.fresh()[f]) || !slices.Equal(want, slab[f]) {
			return fmt.Errorf("the ways of collating differ in array %d", f)
		}
	}
	var kept [3][]int32
	t, err := race(ctx, cpuRounds, plain(func() { kept = s.lists() }), plain(func() { kept = s.fresh() }), plain(func() { s.into(slab) }))
	if err != nil {
		return err
	}
	_ = kept
	for i, way := range []string{"padded one by one, listed, stacked", "laid out once per batch", "laid out once for all batches"} {
		r.row("s", t[i], "128 samples of 44 to 164 tokens, three arrays: %s", way)
	}
	r.finds(faster("004", "a batch laid out beforehand collates 1.5–2× as fast as lists", 1.5, 2), t[0]/t[1])
	r.finds(direction("004", "fewer allocations are faster: one layout for all batches against one per batch"), t[1]/t[2])
	r.finds(takes("004", "collating was a root cause of 7 s per iteration", slowIteration), t[0])
	r.note("compiled code on one core both ways; an interpreter adds its own time to every call of the lists")
	return nil
}

// embedding adds a vector, chosen by its type, to every token of a batch.
type embedding struct {
	tokens       int
	width        int // a field, so that the compiler must allocate tensors of this width on the heap
	table, input []float32
}

func newEmbedding(tokens int) *embedding {
	e := &embedding{tokens: tokens, width: embedWidth, table: make([]float32, model.TokenTypes*embedWidth), input: make([]float32, tokens*embedWidth)}
	for i := range e.input {
		e.input[i] = float32(rng.Below(rng.At(42, uint64(i), 0, rng.Weights)[0], 1<<20)) / (1 << 20)
	}
	for i := range e.table {
		e.table[i] = float32(i%7) / 7
	}
	return e
}

// perToken is the loop of report 004: it allocates an index, its vector and a sum for each token,
// and concatenates a list of them.
func (e *embedding) perToken() []float32 {
	var list [][]float32
	for t := range e.tokens {
		index := make([]int32, e.width/embedWidth)
		vector := make([]float32, e.width)
		copy(vector, e.table[int(index[0])*e.width:])
		sum := make([]float32, e.width)
		for i, v := range e.input[t*e.width:][:e.width] {
			sum[i] = v + vector[i]
		}
		list = append(list, sum)
	}
	var out []float32
	for _, sum := range list {
		out = append(out, sum...)
	}
	return out
}

// once writes all sums into out and allocates nothing.
func (e *embedding) once(out []float32) {
	vector := e.table[:e.width]
	for t := range e.tokens {
		sum := out[t*e.width:][:len(vector)]
		in := e.input[t*e.width:][:len(vector)]
		for i, v := range vector {
			sum[i] = in[i] + v
		}
	}
}

func tensorsCPU(ctx context.Context, _ *env, r *Result) error {
	e := newEmbedding(collatedRows * embedTokens)
	out := make([]float32, len(e.input))
	if e.once(out); !slices.Equal(e.perToken(), out) {
		return fmt.Errorf("the two ways of embedding differ")
	}
	var kept []float32
	t, err := race(ctx, 15, plain(func() { kept = e.perToken() }), plain(func() { e.once(out) }))
	if err != nil {
		return err
	}
	_ = kept
	r.row("s", t[0], "128 × 80 tokens of width 128: three tensors per token, then stacked")
	r.row("s", t[1], "the same into memory that is there")
	r.finds(faster("004", "tensors made once instead of for every token make the forward pass 5–10× as fast (its embedding, CPU)", 5, 10), t[0]/t[1])
	r.finds(takes("004", "making them was the primary bottleneck of 7 s per iteration (CPU, compiled)", slowIteration), t[0])
	r.note("compiled code on one core both ways; an interpreter adds its own time to every tensor")
	return nil
}
