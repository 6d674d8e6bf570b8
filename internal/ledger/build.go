package ledger

import (
	"cmp"
	"maps"
	"slices"

	"haul/internal/kernel"
)

// New returns the ledger of a profile. actions is the mean number of decode steps of a route, 0 if
// unknown: the work of a rollout depends on the sampled routes.
func New(p *kernel.Profile, roof kernel.Roof, actions float64) *Ledger {
	prog := p.Program
	l := &Ledger{Program: prog.Name, Workers: p.Workers, Batch: prog.Batch, Shards: prog.Shards(), Plain: p.Plain.Seconds(), Wall: p.Wall.Seconds(),
		Peak: roof.FLOPs, Stream: roof.Bytes, Actions: actions, profile: p, stageOf: Stages(prog), work: works(prog, actions, p.Halved)}
	if p.Plain > 0 {
		l.Overhead = l.Wall/l.Plain - 1
	}
	type key struct {
		stage Stage
		op    string
	}
	lines := map[key]*Line{}
	kinds := kindsOf(prog)
	for _, s := range p.Spans {
		k := key{stage: Idle}
		if s.Op != kernel.Idle {
			k = key{l.stageOf[s.Op], kinds[s.Op]}
		}
		line, ok := lines[k]
		if !ok {
			line = &Line{Stage: k.stage, Op: k.op}
			lines[k] = line
		}
		line.Seconds += (s.End - s.Start).Seconds()
		if s.Op != kernel.Idle {
			line.Calls++
		}
	}
	for i, c := range l.work {
		if line, ok := lines[key{l.stageOf[i], kinds[i]}]; ok {
			line.FLOPs += c.FLOPs
			line.Bytes += c.Bytes
		}
	}
	total := l.Wall * float64(p.Workers)
	byStage := map[Stage]*Line{}
	// The lines are sorted by pointers: the program then has one sort function for all structs.
	longest := slices.SortedFunc(maps.Values(lines), func(a, b *Line) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Op, b.Op))
	})
	for _, line := range longest {
		l.rate(line, total)
		s, ok := byStage[line.Stage]
		if !ok {
			s = &Line{Stage: line.Stage}
			byStage[line.Stage] = s
		}
		s.Calls += line.Calls
		s.Seconds += line.Seconds
		s.FLOPs += line.FLOPs
		s.Bytes += line.Bytes
		if line.Stage != Idle {
			l.Ops = append(l.Ops, *line)
		}
	}
	for _, s := range ordered(l.stageOf) {
		if line, ok := byStage[s]; ok {
			l.rate(line, total)
			l.Stages = append(l.Stages, *line)
		}
	}
	return l
}

// rate computes the figures that follow from a line's sums. A worker's rate is compared with its
// fraction of the device's roofline.
func (l *Ledger) rate(line *Line, total float64) {
	if total > 0 {
		line.Share = line.Seconds / total
	}
	if line.Seconds <= 0 {
		return
	}
	all := line.Seconds / float64(l.Workers) // seconds on all workers together
	line.Rate = float64(line.FLOPs) / all
	if l.Peak <= 0 || l.Stream <= 0 || line.FLOPs+line.Bytes == 0 {
		return
	}
	arithmetic, memory := float64(line.FLOPs)/l.Peak, float64(line.Bytes)/l.Stream
	line.Bound = "arithmetic"
	if memory > arithmetic {
		line.Bound = "memory"
	}
	line.Roof = max(arithmetic, memory) / all
}

// kindsOf returns the names of the ops, PerShard then Once.
func kindsOf(p *kernel.Program) []string {
	var out []string
	for _, op := range p.PerShard {
		out = append(out, op.Kind())
	}
	for _, op := range p.Once {
		out = append(out, op.Kind())
	}
	return out
}

// works returns each op's work for the whole batch. A last shard that is partly idle counts with
// the instances that it has.
func works(p *kernel.Program, actions float64, halved bool) []kernel.Cost {
	scale := float64(p.Batch) / float64(p.Shard)
	var out []kernel.Cost
	for _, op := range p.PerShard {
		c := op.Cost()
		if halved {
			c.Bytes -= kernel.HalvedBytes(op)
		}
		out = append(out, kernel.Cost{FLOPs: int64(actualFLOPs(op, float64(c.FLOPs), actions) * scale), Bytes: int64(float64(c.Bytes) * scale)})
	}
	for _, op := range p.Once {
		out = append(out, op.Cost())
	}
	return out
}

// actualFLOPs returns an op's FLOPs for the actual number of steps, if its formula assumes another
// number.
func actualFLOPs(op kernel.Op, flops, actions float64) float64 {
	if o, ok := op.(kernel.Varying); ok && actions > 0 {
		fixed := float64(o.Fixed())
		return fixed + (flops-fixed)*actions/float64(o.Expected())
	}
	return flops
}
