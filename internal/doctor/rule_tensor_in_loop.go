package doctor

import "fmt"

// tensorInLoop looks for tensors of a value or two made on the device over and over:
// torch.tensor(x, device=...), which is an upload and a wait, or torch.zeros and its kin, which is
// a kernel. In a loop over tokens or samples the tensor costs more than what is done with it.
//
// The loop around the tensor exists because the tensor is made one at a time: what runs from one to
// the next, where that is at most bodyLaunches kernels, and its backward, is charged with it.
//
// Threshold: 64 per step and 2 % of the time. A model makes a few such tensors per forward pass.
var tensorInLoop = rule{
	id:     "tensor-in-loop",
	remedy: "Make the tensor once, before the loop, and apply it to all tokens or samples in one operation; a loop body that creates nothing can be a tensor operation.",
	find: func(a *analysis, who cause) *cost {
		c := a.newCharge()
		made, ns := 0, 0.0
		for _, th := range a.threads {
			n, own := a.collectMade(th, c)
			made, ns = made+n, ns+own
		}
		ms := a.ms(c.ns)
		if a.perStep(float64(made)) < tensorsMade || a.share(ms) < tensorShare {
			return nil
		}
		c.take(who)
		ms = a.ms(c.ns)
		return &cost{ms: ms, places: c.placed(), evidence: []string{
			fmt.Sprintf("%s tensors of a value or two made on the device per step, %s ms for the making alone", perStepCount(a.perStep(float64(made))), figure(a.ms(ns))),
			fmt.Sprintf("the GPU waits %s ms for them, the loop around them and its backward: %s", figure(ms), c.top(4)),
			c.where(),
		}}
	},
}

const (
	tensorsMade  = 64
	tensorShare  = 0.02
	bodyLaunches = 4
)

// makers are the operators that bring a tensor into being: by upload and by a kernel.
var (
	uploaders = map[string]bool{"aten::to": true, "aten::_to_copy": true, "aten::scalar_tensor": true, "aten::tensor": true}
	factories = map[string]bool{"aten::zeros": true, "aten::ones": true, "aten::full": true, "aten::scalar_tensor": true,
		"aten::new_zeros": true, "aten::new_ones": true, "aten::new_full": true, "aten::new_tensor": true}
)

// collectMade charges one thread's makings with the loop bodies between them; it returns how many
// there are and what the making alone takes.
func (a *analysis) collectMade(th *thread, c *charge) (made int, ns float64) {
	var body []*op
	launches, open := 0, false
	for i := range th.ops.len() {
		o := th.ops.at(i)
		step, ok := within(a.cpuSteps, o.start)
		if !ok || o.cause != 0 {
			open = false
			continue
		}
		name := a.names.list[o.name].text
		if uploaders[name] && o.holds&holdsSingle != 0 || factories[name] && o.launches == 1 {
			if open && launches <= bodyLaunches {
				for _, b := range body {
					c.add(b, step)
				}
			}
			c.add(o, step)
			made, ns = made+1, ns+float64(o.dur)
			body, launches, open = body[:0], 0, true
			continue
		}
		if o.holds&holdsWait != 0 {
			open = false
		}
		if open { // views too: their backward launches
			launches += int(o.launches)
			body = append(body, o)
		}
	}
	return made, ns
}
