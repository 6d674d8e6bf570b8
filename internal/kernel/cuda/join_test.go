package cuda

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
	"haul/internal/kernel/cuda/bind"
	"haul/internal/kernel/cuda/dense"
	"haul/internal/kernel/cuda/fuse"
)

// TestJoins: which ops of a training step one kernel does, by size and precision. The step has two
// layers, a policy with gradients and a frozen one.
func TestJoins(t *testing.T) {
	joined := []string{"linear_rows_glu", "linear_rows_dx_glu", "feed_forward_16", "attention_layer_16", "glu4", "glu_grad4", "norm_grad_lanes",
		"feed_grad", "attention_layer_grad", "half_lanes", "head_forward", "head_grad"}
	for _, c := range []struct {
		name      string
		batch, n  int
		precision bind.Precision
		dropout   float32
		want      map[string]int
	}{
		{"many rows", 512, 101, bind.TF32, 0, map[string]int{"linear_rows_glu": 4, "linear_rows_dx_glu": 2, "norm_grad_lanes": 5}},
		{"many rows, dropout in the policy", 512, 101, bind.TF32, 0.1,
			map[string]int{"linear_rows_glu": 4, "linear_rows_dx_glu": 2, "norm_grad_lanes": 5}},
		{"few rows", 128, 11, bind.TF32, 0, map[string]int{"feed_forward_16": 4, "attention_layer_16": 4, "head_forward": 2, "feed_grad": 2,
			"attention_layer_grad": 2, "half_lanes": 5,
			"head_grad": 1}},
		{"few rows, dropout in the policy", 128, 11, bind.TF32, 0.1, map[string]int{"feed_forward_16": 2, "attention_layer_16": 2, "glu4": 2, "norm_grad_lanes": 4,
			"half_lanes": 1, "head_forward": 2, "head_grad": 1}},
		{"few rows in fp32", 128, 11, bind.FP32, 0, map[string]int{"glu4": 4, "norm_grad_lanes": 5}},
		{"many rows in bf16", 512, 101, bind.BF16, 0, map[string]int{"glu4": 4, "glu_grad4": 2, "norm_grad_lanes": 5}},
		{"many rows in fp32", 512, 101, bind.FP32, 0, map[string]int{"glu4": 4, "glu_grad4": 2, "norm_grad_lanes": 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]int{}
			for _, l := range bindStep(t, step(t, c.batch, c.n, 128, 4, 1, c.dropout), c.precision) {
				for _, name := range joined {
					if l.Kernel == name {
						got[name]++
					}
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("launches (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJoinsLeaveOutWhatNobodyReads: the frozen policy's gates have no gradient and are not written,
// the policy's are.
func TestJoinsLeaveOutWhatNobodyReads(t *testing.T) {
	written, left := 0, 0
	for _, l := range bindStep(t, step(t, 512, 101, 128, 4, 1, 0), bind.TF32) {
		if l.Kernel == "linear_rows_glu" {
			if l.Args[0].(uint64) == 0 {
				left++
			} else {
				written++
			}
		}
	}
	if written != 2 || left != 2 {
		t.Errorf("%d gates are written and %d left out, want two each", written, left)
	}
}

// TestJoinedOpsKeepTheirOrder: of any two ops that touch a tensor, one of them to write it, the
// kernel of the earlier reaches that of the later along the graph's edges.
func TestJoinedOpsKeepTheirOrder(t *testing.T) {
	keepOrder(t, step(t, 512, 101, 128, 4, 1, 0))
	few := step(t, 128, 11, 128, 4, 1, 0)
	keepOrder(t, few)
	keepOrder(t, fuse.JoinWayBack(few, bind.TF32, 132))
	keepOrder(t, fuse.JoinWayBack(step(t, 140, 11, 128, 4, 1, 0), bind.TF32, 132))
}

func keepOrder(t *testing.T, p *kernel.Program) {
	t.Helper()
	b := testBinder(p, bind.TF32)
	ops := append(append([]kernel.Op(nil), p.PerShard...), p.Once...)
	fuse.Find(b, ops)
	if len(b.Absorbed) == 0 {
		t.Fatal("nothing is joined")
	}
	// Nodes by op: its own last, or that of the op it is joined with.
	var before [][]int // what a node waits for
	var asides []int
	ends, node := make([][]int, len(ops)), map[kernel.Op]int{}
	deps, earlier := dependencies(p, false), ancestors[int]{}
	for i, op := range ops {
		ls, err := launchesOf(b, op)
		if err != nil {
			t.Fatal(err)
		}
		wait := waitFor(deps[i], ends)
		if _, flat := op.(kernel.Flat); flat {
			wait, asides = append(wait, asides...), nil
		}
		for _, l := range ls {
			wait = earlier.essential(wait)
			before = append(before, wait)
			earlier.add(len(before)-1, wait)
			if l.Aside { // ends a gradient, which only ops over the flat buffers read
				asides = append(asides, len(before)-1)
				continue
			}
			wait = []int{len(before) - 1}
			node[op] = len(before) - 1
		}
		ends[i] = wait
	}
	for other, launched := range b.Absorbed {
		node[other] = node[launched]
	}
	reaches := make([]map[int]bool, len(before)) // all that comes before a node
	for n, wait := range before {
		reaches[n] = map[int]bool{}
		for _, w := range wait {
			reaches[n][w] = true
			for m := range reaches[w] {
				reaches[n][m] = true
			}
		}
	}
	type use struct {
		op     kernel.Op
		writes bool
	}
	uses := map[*kernel.Tensor][]use{}
	for _, op := range ops {
		op.Args(func(tensor *kernel.Tensor, a kernel.Access) {
			root := tensor.Root()
			for _, u := range uses[root] {
				from, has := node[u.op]
				to, also := node[op]
				if (u.writes || a != kernel.Read) && has && also && from != to && !reaches[to][from] {
					t.Errorf("%s does not wait for %s, which touches %s before it", op.Kind(), u.op.Kind(), root.Name)
				}
			}
			uses[root] = append(uses[root], use{op, a != kernel.Read})
		})
	}
}

// TestTheWayBackIsJoined: which sublayers one kernel goes back through, by size and
// precision, and that their gradients of the residual stream are tensors of their own, read in
// turn.
func TestTheWayBackIsJoined(t *testing.T) {
	count := func(p *kernel.Program) (feed, attention int) {
		for _, op := range p.PerShard {
			if h, ok := op.(*fuse.SublayerGrad); ok {
				if _, glu := h.Between.(*kernel.GLUGrad); glu {
					feed++
				} else {
					attention++
				}
			}
		}
		return feed, attention
	}
	few := step(t, 128, 11, 128, 4, 1, 0)
	for _, c := range []struct {
		name      string
		p         *kernel.Program
		precision bind.Precision
		want      [2]int
	}{
		{"few rows", few, bind.TF32, [2]int{2, 2}},
		{"more instances than multiprocessors", step(t, 140, 11, 128, 4, 1, 0), bind.TF32, [2]int{2, 0}},
		{"many rows", step(t, 512, 101, 128, 4, 1, 0), bind.TF32, [2]int{}},
		{"other heads", step(t, 128, 11, 128, 8, 1, 0), bind.TF32, [2]int{2, 0}},
		{"other width", step(t, 128, 11, 64, 4, 1, 0), bind.TF32, [2]int{}},
		{"dropout", step(t, 128, 11, 128, 4, 1, 0.1), bind.TF32, [2]int{}},
		{"fp32", few, bind.FP32, [2]int{}},
		{"bf16", few, bind.BF16, [2]int{}},
	} {
		feed, attention := count(fuse.JoinWayBack(c.p, c.precision, 132))
		if got := [2]int{feed, attention}; got != c.want {
			t.Errorf("%s: %v sublayers, feed-forward and attention, want %v", c.name, got, c.want)
		}
	}
	var stream *kernel.Tensor
	joined := fuse.JoinWayBack(few, bind.TF32, 132)
	for _, op := range joined.PerShard {
		h, ok := op.(*fuse.SublayerGrad)
		if !ok {
			continue
		}
		if stream != nil && h.Dy != stream || h.Dx == h.Dy {
			t.Errorf("%s reads %s behind a half that left %s", h.Kind(), h.Dy.Name, stream.Name)
		}
		stream = h.Dx
	}
	for _, op := range joined.PerShard {
		if w, ok := op.(*kernel.LinearGradW); ok && w.X.Cols() == dense.ThinTerms && w.DY != stream {
			t.Errorf("the first layer's weights have their gradient from %s, want %s", w.DY.Name, stream.Name)
		}
	}
}
