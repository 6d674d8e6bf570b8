package cuda

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
)

// TestJoins: which ops of a training step one kernel does, by size and precision. The step has two layers, a policy with gradients and a
// frozen one.
func TestJoins(t *testing.T) {
	joined := []string{"linear_rows_glu", "linear_rows_dx_glu", "glu4", "glu_grad4"}
	for _, c := range []struct {
		name      string
		batch, n  int
		precision Precision
		dropout   float32
		want      map[string]int
	}{
		{"many rows", 512, 101, TF32, 0, map[string]int{"linear_rows_glu": 4, "linear_rows_dx_glu": 2}},
		{"many rows, dropout in the policy", 512, 101, TF32, 0.1, map[string]int{"linear_rows_glu": 4, "linear_rows_dx_glu": 2}},
		{"few rows", 128, 11, TF32, 0, map[string]int{"glu4": 4, "glu_grad4": 2}},
		{"many rows in bf16", 512, 101, BF16, 0, map[string]int{"glu4": 4, "glu_grad4": 2}},
		{"many rows in fp32", 512, 101, FP32, 0, map[string]int{"glu4": 4, "glu_grad4": 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := map[string]int{}
			for _, l := range bindStep(t, step(t, c.batch, c.n, 128, 4, 1, c.dropout), c.precision) {
				for _, name := range joined {
					if l.kernel == name {
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

// TestJoinsLeaveOutWhatNobodyReads: the frozen policy's gates have no gradient and are not written, the policy's are.
func TestJoinsLeaveOutWhatNobodyReads(t *testing.T) {
	written, left := 0, 0
	for _, l := range bindStep(t, step(t, 512, 101, 128, 4, 1, 0), TF32) {
		if l.kernel == "linear_rows_glu" {
			if l.args[0].(uint64) == 0 {
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

// TestJoinedOpsKeepTheirOrder: of any two ops that touch a tensor, one of them to write it, the kernel of the earlier reaches that of the
// later along the graph's edges.
func TestJoinedOpsKeepTheirOrder(t *testing.T) {
	p := step(t, 512, 101, 128, 4, 1, 0)
	b := testBinder(p, TF32)
	ops := append(append([]kernel.Op(nil), p.PerShard...), p.Once...)
	b.join(ops)
	if len(b.joins.done) == 0 {
		t.Fatal("nothing is joined")
	}
	// Nodes by op: its own last, or that of the op it is joined with.
	var before [][]int // what a node waits for
	ends, node := make([][]int, len(ops)), map[kernel.Op]int{}
	deps := dependencies(p, false)
	for i, op := range ops {
		ls, err := b.bind(op)
		if err != nil {
			t.Fatal(err)
		}
		wait := waitFor(deps[i], ends)
		for range ls {
			before = append(before, wait)
			wait = []int{len(before) - 1}
		}
		if ends[i] = wait; len(ls) > 0 {
			node[op] = len(before) - 1
		}
	}
	for launched, other := range b.joins.with {
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
