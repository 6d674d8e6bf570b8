package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// tensorInLoop looks for tensors of a value or two that are made on the device repeatedly:
// torch.tensor(x, device=...), which is an upload and a wait, or torch.zeros and the like, which is
// a kernel. In a loop over tokens or samples the tensor costs more than its use.
//
// The loop exists because the tensors are made one at a time. So the operators from one tensor to
// the next, if they launch at most bodyLaunches kernels, and their backward are charged too.
//
// Threshold: 64 per step and 2 % of the time. A model makes a few such tensors per forward pass.
var tensorInLoop = Rule{
	ID:     "tensor-in-loop",
	remedy: "Make the tensor once, before the loop, and apply it to all tokens or samples in one operation; a loop body that creates nothing can be a tensor operation.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		c := a.NewCharge()
		made, ns := 0, 0.0
		for _, th := range a.Threads {
			n, own := collectMade(a, th, c)
			made, ns = made+n, ns+own
		}
		ms := a.Ms(c.Ns)
		if a.PerStep(float64(made)) < tensorsMade || a.Share(ms) < tensorShare {
			return nil
		}
		c.Take(who)
		ms = a.Ms(c.Ns)
		return &cost{ms: ms, places: c.Placed(), evidence: []string{
			fmt.Sprintf("%s tensors of a value or two made on the device per step, %s ms for the making alone", phrase.PerStepCount(a.PerStep(float64(made))), phrase.Figure(a.Ms(ns))),
			fmt.Sprintf("the GPU waits %s ms for them, the loop around them and its backward: %s", phrase.Figure(ms), c.Top(4)),
			c.Where(),
		}}
	},
}

const (
	tensorsMade  = 64
	tensorShare  = 0.02
	bodyLaunches = 4
)

// makers are the operators that create a tensor: by upload and by a kernel.
var (
	uploaders = map[string]bool{"aten::to": true, "aten::_to_copy": true, "aten::scalar_tensor": true, "aten::tensor": true}
	factories = map[string]bool{"aten::zeros": true, "aten::ones": true, "aten::full": true, "aten::scalar_tensor": true,
		"aten::new_zeros": true, "aten::new_ones": true, "aten::new_full": true, "aten::new_tensor": true}
)

// collectMade charges one thread's tensors and the loop bodies between them. It returns the number
// of tensors and the time of making them.
func collectMade(a *analysis.Analysis, th *trace.Thread, c *analysis.Charge) (made int, ns float64) {
	var body []*trace.Op
	launches, open := 0, false
	for i := range th.Ops.Len() {
		o := th.Ops.At(i)
		step, ok := trace.Within(a.CPUSteps, o.Start)
		if !ok || o.Cause != 0 {
			open = false
			continue
		}
		name := a.Names.List[o.Name].Text
		if uploaders[name] && o.Holds&trace.HoldsSingle != 0 || factories[name] && o.Launches == 1 {
			if open && launches <= bodyLaunches {
				for _, b := range body {
					c.Add(b, step)
				}
			}
			c.Add(o, step)
			made, ns = made+1, ns+float64(o.Dur)
			body, launches, open = body[:0], 0, true
			continue
		}
		if o.Holds&trace.HoldsWait != 0 {
			open = false
		}
		if open { // views too, because their backward launches
			launches += int(o.Launches)
			body = append(body, o)
		}
	}
	return made, ns
}
