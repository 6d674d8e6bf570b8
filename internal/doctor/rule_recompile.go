package doctor

import "fmt"

// recompile looks for torch.compile at work in the run: a compiled function that meets a shape, a
// type or a Python value that its guards do not know is compiled anew, for seconds, while nothing
// is launched. PyTorch marks that time itself. In the first recorded step it is the start, and told
// as such.
//
// Threshold: 5 % of the step's time, and in a later step than the first.
const compileShare = 0.05

var recompile = rule{
	id: "recompile",
	remedy: "Compile once: tell the compiler which sizes change (dynamic=True, torch._dynamo.mark_dynamic) or pad to a few fixed ones, and keep Python values " +
		"that change out of compiled functions. TORCH_LOGS=recompiles names the guard that failed each time.",
	find: func(a *analysis, _ cause) *cost {
		ms := a.ms(a.idle[idleCompile])
		if a.share(ms) < compileShare || !a.compilesLate() {
			return nil
		}
		in := clip(a.compiling, a.steps)
		steps := map[int]bool{}
		var longest int64
		for _, s := range in {
			step, _ := within(a.steps, s.start)
			steps[step] = true
			longest = max(longest, s.end-s.start)
		}
		return &cost{ms: ms, places: spansOf(in), evidence: []string{
			fmt.Sprintf("torch.compile compiles in %d of %s, for up to %s ms at a time", len(steps), count1(len(a.steps), "step"), figure(float64(longest)/1e6)),
		}}
	},
}

// compilesLate tells code that is compiled past the first step.
func (a *analysis) compilesLate() bool {
	n := len(a.compiling)
	return len(a.cpuSteps) > 1 && n > 0 && a.compiling[n-1].start >= a.cpuSteps[1].start
}
