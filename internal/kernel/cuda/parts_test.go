package cuda

import (
	"slices"
	"testing"

	"haul/internal/kernel/cuda/attention"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/fuse"
)

// TestEndings: a part waits for the same part of ops in parts and for all of others, and what is
// whole waits for every part, each once.
func TestEndings(t *testing.T) {
	e := newEndings[string](4)
	e.set(0, 0, []string{"all"})
	e.set(1, 1, []string{"b1"})
	e.set(1, 2, []string{"b2"})
	e.set(2, 1, []string{"c1"})
	e.set(2, 2, []string{"c2"})
	for _, c := range []struct {
		part int
		want []string
	}{{0, []string{"all", "b1", "b2", "c1", "c2"}}, {1, []string{"all", "b1", "c1"}}, {2, []string{"all", "b2", "c2"}}} {
		if got := e.wait([]int{0, 1, 2, 0}, c.part); !slices.Equal(got, c.want) {
			t.Errorf("part %d waits for %v, want %v", c.part, got, c.want)
		}
	}
}

// TestPartsCoverTheBatch: the passes and the attention of a large batch are done in parts that have
// every row once, on their shares of the card; a small batch, long rows and other programs in one.
func TestPartsCoverTheBatch(t *testing.T) {
	for _, c := range []struct{ batch, tokens, parts int }{{1024, 164, bind.BatchParts}, {1023, 164, bind.BatchParts}, {205, 164, 0}, {1024, 200, 0}} {
		j := fuse.JoinLayers(agentStep(t, c.batch, c.tokens, agentShape(2, 0.1)))
		j = fuse.KeepMasks(j)
		b := testBinder(j, bind.BF16)
		all, err := launchesOfAll(b, j.PerShard)
		if err != nil {
			t.Fatal(err)
		}
		for i, op := range j.PerShard {
			rows, per := 0, 0 // and of them per unit of what is counted
			switch op.(type) {
			case *fuse.LayerTail, *fuse.LayerTailGrad:
				per = 1
			case *fuse.KeptCausal:
				per = c.tokens * attention.ShortHeads
			case *fuse.KeptCausalGrad:
				per = c.tokens
			default:
				if slices.ContainsFunc(all[i], func(l bind.Launch) bool { return l.Part != 0 }) {
					t.Errorf("%+v: %s is in parts", c, op.Kind())
				}
				continue
			}
			if len(all[i]) != max(1, c.parts) && per == 1 {
				t.Errorf("%+v: %s has %d launches", c, op.Kind(), len(all[i]))
			}
			blocks := 0
			for n, l := range all[i] {
				if c.parts > 0 && l.Part != n+1 || c.parts == 0 && l.Part != 0 {
					t.Errorf("%+v: launch %d of %s is part %d", c, n, op.Kind(), l.Part)
				}
				if blocks += l.Grid[0] * l.Grid[1]; per == 1 {
					const count = 11 // its place among the pass's arguments; the gradient's is one on
					at := count
					if _, ok := op.(*fuse.LayerTailGrad); ok {
						at++
					}
					rows += int(l.Args[at].(int32))
				}
			}
			if per == 1 && (rows != c.batch*c.tokens || blocks > b.SMs) || per > 1 && c.parts > 0 && blocks*per != 8*c.batch*c.tokens {
				t.Errorf("%+v: %s has %d rows in %d blocks", c, op.Kind(), rows, blocks)
			}
		}
	}
	if p := bind.New(step(t, 512, 101, 128, 4, 1, 0)).Portions(4096, 164); len(p) != 1 {
		t.Errorf("without joined layers there are %d parts", len(p))
	}
}

// TestManyInstances: attention of short rows takes more instances than a grid has rows of blocks in
// several launches, each instance once.
func TestManyInstances(t *testing.T) {
	for _, count := range []int{1, attention.GridRows - 1, attention.GridRows, attention.GridRows + 1, 3 * attention.GridRows} {
		next := 7
		for _, p := range attention.InLaunches([]bind.Portion{{Part: 1, From: 7, Count: count}}) {
			if p.Part != 1 || p.From != next || p.Count < 1 || p.Count > attention.GridRows {
				t.Errorf("%d instances: %+v, from %d on", count, p, next)
			}
			next = p.From + p.Count
		}
		if next != 7+count {
			t.Errorf("%d instances end at %d", count, next-7)
		}
	}
}
