package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// recompile looks for compilation by torch.compile during the run. A compiled function is compiled
// again, for seconds and without launches, if its guards do not cover a shape, a type or a Python
// value. PyTorch marks that time. Compilation in the first recorded step belongs to the start and
// is reported as such.
//
// Threshold: 5 % of the step's time, and in a later step than the first.
const compileShare = 0.05

var recompile = Rule{
	ID: "recompile",
	remedy: "Compile once: tell the compiler which sizes change (dynamic=True, torch._dynamo.mark_dynamic) or pad to a few fixed ones, and keep Python values " +
		"that change out of compiled functions. TORCH_LOGS=recompiles names the guard that failed each time.",
	find: func(a *analysis.Analysis, _ trace.Cause) *cost {
		ms := a.Ms(a.Idle[analysis.IdleCompile])
		if a.Share(ms) < compileShare || !compilesLate(a) {
			return nil
		}
		in := trace.Clip(a.Compiling, a.Steps)
		steps := map[int]bool{}
		var longest int64
		for _, s := range in {
			step, _ := trace.Within(a.Steps, s.Start)
			steps[step] = true
			longest = max(longest, s.End-s.Start)
		}
		return &cost{ms: ms, places: analysis.SpansOf(in), evidence: []string{
			fmt.Sprintf("torch.compile compiles in %d of %s, for up to %s ms at a time", len(steps), phrase.Count1(len(a.Steps), "step"), phrase.Figure(float64(longest)/1e6)),
		}}
	},
}

// compilesLate reports whether code is compiled after the first step.
func compilesLate(a *analysis.Analysis) bool {
	n := len(a.Compiling)
	return len(a.CPUSteps) > 1 && n > 0 && a.Compiling[n-1].Start >= a.CPUSteps[1].Start
}
