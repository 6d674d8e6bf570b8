package plan_test

import (
	"testing"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
)

// find returns the only op of type O in a program.
func find[O kernel.Op](t *testing.T, ops []kernel.Op) O {
	t.Helper()
	var found []O
	for _, op := range ops {
		if o, ok := op.(O); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d ops of type %T, want one", len(found), *new(O))
	}
	return found[0]
}

// TestLossesAreRecordedAsAsked: the options of a loss reach its op. The ops of a loss and of its
// gradient have the same options.
func TestLossesAreRecordedAsAsked(t *testing.T) {
	l := &kernel.Layout{}
	l.Add("w", kernel.InitUniform, 4, 5, 4)
	p := plan.New("losses", reference.New[float32](2), 6, 3, l)
	logits := p.Linear("logits", p.Rows("x", p.B(), 3, 4), p.Weight(0, 0), nil, nil)
	p.CrossEntropy("loss", logits, p.RowInts("labels", p.B(), 3, 2), []int{2, 3}, 0.125, true)
	p.PPO(p.Rows("out", p.B(), 5), p.Rows("sample", p.B(), 4), kernel.PPO{Clip: 0.3, ValueCoef: 0.7, EntropyCoef: 0.02})
	p.Backward()
	p.Optimize(&kernel.AdamW{Warmup: 7}, 3)
	prog := p.Program()
	if o := find[*kernel.CrossEntropy](t, prog.PerShard); o.Smoothing != 0.125 || o.Weight != 1/float32(18) || len(o.Columns) != 2 || o.DLogits == nil {
		t.Errorf("recorded %+v", o)
	}
	if o := find[*kernel.PPO](t, prog.PerShard); o.Clip != 0.3 || o.ValueCoef != 0.7 || o.EntropyCoef != 0.02 || o.Weight != 1/float32(6) {
		t.Errorf("recorded %+v", o)
	}
	if o := find[*kernel.Reduce](t, prog.Once); o.Every != 3 || o.Layout != l {
		t.Errorf("recorded %+v", o)
	}
	if o := find[*kernel.AdamW](t, prog.Once); o.Warmup != 7 || o.Layout != l {
		t.Errorf("recorded %+v", o)
	}
}

// TestLearnPPOSumsItsOwnColumns: each sum adds a separate column of the loss's results over all
// tokens, and the optimizer has the norm's limit.
func TestLearnPPOSumsItsOwnColumns(t *testing.T) {
	const tokens = 3
	l := &kernel.Layout{}
	l.Add("w", kernel.InitUniform, 4, 5, 4)
	p := plan.New("ppo", reference.New[float32](2), 6, tokens, l)
	out := p.Linear("out", p.Rows("x", p.B(), tokens, 4), p.Weight(0, 0), nil, nil)
	p.LearnPPO(out, p.Rows("sample", p.B(), tokens, 4), kernel.PPO{Clip: 0.3}, 0.7)
	prog := p.Program()
	sums := find[*kernel.PPO](t, prog.PerShard).Sums
	tally := find[*kernel.Tally](t, prog.Once)
	names := []string{plan.PPOPolicy, plan.PPOValue, plan.PPOEntropy, plan.PPOClipped}
	if len(tally.Sums) != len(names) {
		t.Fatalf("%d sums, want %d", len(tally.Sums), len(names))
	}
	for i, s := range tally.Sums {
		x := s.Terms[0].X
		if s.Name != names[i] || x.Root() != sums || x.Offset != sums.Offset+i*tokens || x.Cols() != tokens {
			t.Errorf("%s reads %d columns from %d on", s.Name, x.Cols(), x.Offset)
		}
	}
	if o := find[*kernel.AdamW](t, prog.Once); o.MaxNorm != 0.7 || o.Eps != 1e-5 || o.Beta2 != 0.999 {
		t.Errorf("recorded %+v", o)
	}
}

// TestLossesAreMeansOverAllRanks: a rank's losses are divided by the instances of the whole step,
// not by those of its own part.
func TestLossesAreMeansOverAllRanks(t *testing.T) {
	const batch, ranks, tokens, actions = 6, 3, 5, 2
	l := &kernel.Layout{}
	l.Add("w", kernel.InitUniform, 4, 2*actions+1, 4)
	p := plan.New("values", reference.New[float32](2), batch*ranks, tokens, l)
	if err := p.PartitionBatch(kernel.Share{Rank: 1, Size: ranks}); err != nil {
		t.Fatal(err)
	}
	values := p.Linear("values", p.Rows("x", p.B(), tokens, 4), p.Weight(0, 0), nil, nil)
	p.ImplicitQ("loss", values, 0.5, kernel.ImplicitQ{Labels: p.RowInts("labels", p.B(), tokens, 2), Index: p.RowInts("index", p.B(), tokens, 3), First: p.RowInts("first", p.B(), tokens)})
	p.Backward()
	if o := find[*kernel.ImplicitQ](t, p.Program().PerShard); o.Weight != 0.5/float32(batch*ranks*tokens) {
		t.Errorf("a token weighs %v, want %v", o.Weight, 0.5/float32(batch*ranks*tokens))
	}
}
