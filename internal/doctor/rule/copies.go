package rule

import (
	"fmt"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/trace"
)

// copies looks for a job that spends its time moving tensors: contiguous() and clone() after
// transposes, repeated conversions, and on a GPU the kernels that change the layout of images
// around convolutions. Copies compute nothing.
//
// Threshold: 25 % of the step. Models copy a few percent; a quarter shows a layout that the next
// operator does not support. On a GPU a note from 10 % on.
// operator does not like. On a GPU a note from 10 % on.
const (
	movedShare = 0.25
	movedNote  = 0.10
)

var copies = Rule{
	ID: "copies",
	remedy: "Keep one layout: write the tensor the way the next operator reads it, let products take transposed views as they are, drop contiguous() where nothing needs it, " +
		"and convert types once, at the edge.",
	find: func(a *analysis.Analysis, who trace.Cause) *cost {
		switch {
		case len(a.Devices) > 0:
			return copiesOnGPU(a)
		case a.OnHost():
			return copiesOnHost(a, who)
		}
		return nil
	},
}

func copiesOnHost(a *analysis.Analysis, who trace.Cause) *cost {
	c := a.NewCharge()
	var ns float64
	a.EachOp(func(_ *trace.Thread, _, step int, o *trace.Op) {
		if o.Cause == 0 && copiers[a.Names.List[o.Name].Text] {
			c.Add(o, step)
			ns += float64(o.Dur)
		}
	})
	ms := a.Ms(ns)
	if a.Share(ms) < movedShare {
		return nil
	}
	c.Take(who)
	return &cost{ms: ms, places: c.Placed(), evidence: []string{
		fmt.Sprintf("%s operators per step only move tensors, %s ms: %s", phrase.PerStepCount(a.PerStep(float64(len(c.Placed())))), phrase.Figure(ms), c.TopBy(4, (*analysis.Named).OnCPU)),
		c.Where(),
	}}
}

// copiesOnGPU counts the kernels of operators that only move tensors, and kernels inside other
// operators that change a layout.
func copiesOnGPU(a *analysis.Analysis) *cost {
	c := a.NewCharge()
	moved := map[uint32]bool{} // correlation numbers of such operators' launches
	a.EachOp(func(th *trace.Thread, _, step int, o *trace.Op) {
		if o.GPU == 0 || !copiers[a.Names.List[o.Name].Text] {
			return
		}
		for _, n := range a.CallsIn(th, trace.Span{Start: o.Start, End: o.End()}) {
			moved[n] = true
		}
		c.CountFor(o, float64(o.GPU))
	})
	layouts := 0
	var issued []analysis.Place
	alone := a.Alone(func(g *trace.Work) bool {
		return a.Names.List[g.Name].Layout || g.Correlation != 0 && moved[g.Correlation]
	}, func(g *trace.Work) {
		if a.Names.List[g.Name].Layout {
			layouts++
		}
		issued = append(issued, a.IssuedAt(g)...)
	})
	ms := a.Ms(alone.NS)
	if a.Share(ms) < movedNote {
		return nil
	}
	out := &cost{ms: ms, places: issued, evidence: []string{
		fmt.Sprintf("%s kernels per step only move tensors, %s ms with nothing beside them: %s of the kernels' time", phrase.PerStepCount(a.PerStep(float64(alone.N))), phrase.Figure(ms), phrase.Percent(alone.Total/a.Kernel)),
	}}
	if !c.Empty() {
		out.evidence = append(out.evidence, "in "+c.TopBy(4, (*analysis.Named).OnCPU))
	}
	if layouts > 0 {
		out.evidence = append(out.evidence, fmt.Sprintf("%s of them turn a layout into another inside operators, around convolutions mostly", phrase.PerStepCount(a.PerStep(float64(layouts)))))
		out.remedy = "Keep one layout: model.to(memory_format=torch.channels_last) and the same for the input, so that convolutions take tensors as they are; drop contiguous() where nothing needs it."
	}
	if a.Share(ms) < movedShare {
		out.most = Note
	}
	return out
}

var copiers = map[string]bool{"aten::contiguous": true, "aten::clone": true, "aten::copy_": true, "aten::to": true, "aten::_to_copy": true,
	"aten::reshape": true, "aten::cat": true, "aten::stack": true, "aten::repeat": true, "aten::flatten": true}
