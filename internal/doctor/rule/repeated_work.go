package rule

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// repeatedWork looks for a sequence of operators with the same shapes and scalar inputs that
// repeats several times in succession. Scalars distinguish a repetition from a loop over samples,
// which selects another index each time.
//
// A stack of equal layers, a decoder's steps and an optimizer's parameters repeat too, with other
// weights or other state. So sequences with parameters, a product, a random draw or choice, or an
// update in place are excluded. The others may still depend on their previous result, since a trace
// does not identify tensors: the remedy covers both cases. The rule needs recorded shapes.
//
// Threshold: three repetitions, four kernels each, 5 % of the step beyond the first run.
var repeatedWork = Rule{
	ID: "repeated-work",
	remedy: "Where its inputs are the same each time, which a trace does not show, do it once and keep the result. Where each run takes another sample, make them one batch. Where each run goes on from the one before " +
		"(a solver's steps, layers), make the loop's body one kernel or one graph: torch.compile, mode=\"reduce-overhead\".",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		if !a.Shapes {
			return nil
		}
		if c := deadRuns(a, who); c != nil {
			return c
		}
		c := a.NewCharge()
		var best repetition
		for _, th := range a.Threads {
			for step := range a.CPUSteps {
				for _, r := range repetitions(a, th, step) {
					for _, o := range r.ops[r.period:] {
						c.Add(o, step)
					}
					if len(r.ops) > len(best.ops) {
						best = r
					}
				}
			}
		}
		ms := a.Ms(c.Ns)
		if a.Share(ms) < repeatShare {
			return nil
		}
		c.Take(who)
		ms = a.Ms(c.Ns)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("a run of %s (%s, …) comes %d times in a row, with the same shapes and arguments",
				phrase.Count1(best.period, "operator"), a.Names.List[best.ops[0].Name].Text, len(best.ops)/best.period),
			fmt.Sprintf("the GPU waits %s ms for all runs but the first: %s", phrase.Figure(ms), c.Top(4)),
			c.Where(),
		}}
	},
}

// repetition is an interval of free operators that repeats with a period.
type repetition struct {
	ops    []*trace.Op
	period int
}

const (
	minKernels   = 4
	periodsTried = 8
)

// repetitions finds the repetitions of one thread in one step. Candidate periods are the distances
// to the previous occurrence of four consecutive operators. The most frequent candidates are tried,
// longest first, so that a large repetition is found before small loops inside it.
func repetitions(a *analysis.Analysis, th *trace.Thread, step int) []repetition {
	var ops []*trace.Op
	from := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).Start >= a.CPUSteps[step].Start })
	for i := from; i < th.Ops.Len() && th.Ops.At(i).Start < a.CPUSteps[step].End; i++ {
		if o := th.Ops.At(i); o.Cause == 0 {
			ops = append(ops, o)
		}
	}
	var out []repetition
	taken := make([]bool, len(ops))
	for _, period := range periods(ops) {
		for i := period; i < len(ops); {
			n := 0
			for i+n < len(ops) && !taken[i+n] && !taken[i+n-period] && same(ops[i+n], ops[i+n-period]) {
				n++
			}
			repeats := n/period + 1
			if r := (repetition{ops[i-period : i-period+repeats*period], period}); repeats >= minRepeats && isRepeatedWork(a, r) {
				for k := range r.ops {
					taken[i-period+k] = true
				}
				out = append(out, r)
			}
			i += n + 1
		}
	}
	return out
}

func same(x, y *trace.Op) bool { return x.Name == y.Name && x.Inputs == y.Inputs }

func periods(ops []*trace.Op) []int {
	type key [4]uint64
	last := map[key]int{}
	votes := map[int]int{}
	for i := 0; i+4 <= len(ops); i++ {
		var k key
		for j := range k {
			k[j] = uint64(ops[i+j].Name)<<32 | uint64(ops[i+j].Inputs)
		}
		if at, ok := last[k]; ok {
			votes[i-at]++
		}
		last[k] = i
	}
	var out []int
	for p := range votes {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y int) int {
		if votes[x] != votes[y] {
			return votes[y] - votes[x]
		}
		return y - x
	})
	out = out[:min(len(out), periodsTried)]
	slices.Sort(out)
	slices.Reverse(out)
	return out
}

// isRepeatedWork excludes sequences that repeat for a reason.
func isRepeatedWork(a *analysis.Analysis, r repetition) bool {
	kernels := 0
	for _, o := range r.ops[:r.period] {
		kernels += int(o.Launches)
		name, ours := strings.CutPrefix(a.Names.List[o.Name].Text, "aten::")
		if !ours || changing[name] || strings.HasSuffix(name, "_") && !harmless[name] {
			return false
		}
	}
	return kernels >= minKernels
}

var (
	// changing operators may have parameters, draw at random, or choose the next operation.
	changing = map[string]bool{"matmul": true, "mm": true, "bmm": true, "mv": true, "einsum": true, "baddbmm": true, "addbmm": true, "linear": true, "addmm": true, "conv1d": true, "conv2d": true, "conv3d": true, "convolution": true,
		"layer_norm": true, "batch_norm": true, "group_norm": true, "rms_norm": true, "embedding": true, "lstm": true, "gru": true,
		"scaled_dot_product_attention": true, "multinomial": true, "argmax": true, "argmin": true, "topk": true, "sort": true,
		"bernoulli": true, "dropout": true, "rand": true, "randn": true, "randint": true, "randperm": true, "rand_like": true, "randn_like": true, "normal": true}
	// harmless operators have names like an update in place but overwrite no earlier value.
	harmless = map[string]bool{"detach_": true, "requires_grad_": true, "copy_": true, "fill_": true, "zero_": true, "squeeze_": true, "unsqueeze_": true}
)
