package policy

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"haul/internal/kernel"
	"haul/internal/kernel/reference"
	"haul/internal/plan"
	"haul/internal/rng"
	"haul/internal/run"
	"haul/internal/vrp"
)

// Simulation-guided beam search (Choo et al. 2022). A hypothesis is the beginning of a solution
// together with the policy's completion of it. In each step, every hypothesis of the beam is
// extended by the policy's most likely nodes, and the device completes all of them greedily. The
// shortest hypotheses stay, one of each state.
//
// One child of a hypothesis is the continuation that it already has, which needs no completion:
// width·(expand-1) rows are completed per step. The host chooses likely nodes by the reference's
// decoder from the projections that the device has computed. Only the device completes solutions,
// so that its choices and lengths agree with all other decoders.

// beamSearch improves the routes that a batch has decoded from its starts.
type beamSearch struct {
	width, expand        int
	kept                 kernel.Decoder // decoder of the batch's program
	context, pairContext []float32
	proj, pointer, graph []float32
	given                kernel.Decoder // decoder of the program that completes solutions
	routes               *plan.Routes
	runner               kernel.Runner
	actions              []int32
	lengths              []float32
	slots                int
}

// hypothesis is a solution whose first actions are fixed; all hypotheses of a beam have the same
// number of fixed actions.
type hypothesis struct {
	tour   []int32 // as many actions as the largest solution has
	length float32
	slot   int // index of the device's row that completes it; -1: it is complete
}

// newBeam compiles the program that completes solutions, for the rows of a batch. The batch must
// keep its decoder's projections.
func newBeam(p *Policy, s *batch, d Decode) (*beamSearch, error) {
	kept := s.decoder
	b := &beamSearch{width: d.Beam, expand: d.Expand, kept: kept}
	b.slots = max(1, b.width*(b.expand-1))
	rows, nodes, width := s.size*s.sym, s.count, p.Config.Model.HiddenDim
	pl := plan.New("beam", p.dev, rows, nodes, p.model.Layout())
	in := kernel.Instances{Rules: kept.Rules, PosX: pl.Rows("x", pl.B(), nodes), PosY: pl.Rows("y", pl.B(), nodes),
		Nodes: pl.RowInts("nodes", pl.B(), kept.Nodes.Cols())}
	b.given = p.model.Decoder(pl, 0, kernel.Decoder{Instances: in, Proj: pl.Rows("proj", pl.B(), nodes, kept.Proj.Cols()),
		Pointer: pl.Rows("pointer", pl.B(), nodes, width), Graph: pl.Rows("graph", pl.B(), width)})
	b.routes = pl.Rollout("routes", b.given, plan.RolloutSpec{Choice: kernel.Extend, Starts: b.slots, MaxStep: s.steps, Keep: true}, rng.Actions)
	var err error
	if b.runner, err = run.CompileWithHost("--decode pomo, which keeps no beam", routeBytes(rows, b.slots, s.steps), pl, p.dev, p.store); err != nil {
		return nil, err
	}
	flat := make([]float32, p.model.Layout().Len)
	if err := errors.Join(b.runner.SetControl(evalControl(1)), p.store.ReadWeights(flat)); err != nil {
		return nil, errors.Join(err, b.runner.Close())
	}
	b.context, b.pairContext = p.model.ContextOf(flat)
	b.proj, b.pointer, b.graph = make([]float32, rows*nodes*kept.Proj.Cols()), make([]float32, rows*nodes*width), make([]float32, rows*width)
	b.actions, b.lengths = make([]int32, rows*b.slots*s.steps), make([]float32, rows*b.slots)
	return b, nil
}

// search improves the routes that the batch has just decoded from its starts.
func (b *beamSearch) search(ctx context.Context, s *batch, problems []*vrp.Problem, out []Routed) error {
	if err := b.take(s); err != nil {
		return err
	}
	rows, steps := len(problems)*s.sym, s.steps
	beams := make([][]hypothesis, rows)
	for row := range beams {
		beams[row] = b.first(s, row)
	}
	shortest := make([]float32, len(problems))
	for i := range shortest {
		shortest[i] = slices.Min(s.lengths[i*s.sym*s.starts:][:s.sym*s.starts])
	}
	// An unused slot holds a complete solution, which costs the device no time: at first that of a
	// start, later the slot's last one.
	for row := range s.size * s.sym {
		for slot := range b.slots {
			copy(b.actions[(row*b.slots+slot)*steps:][:steps], s.actions[row*s.starts*steps:][:steps])
		}
	}
	for depth := 1; depth < steps; depth++ {
		children := make([][]hypothesis, rows)
		asked := eachRow(rows, func(row int) bool {
			var any bool
			children[row], any = b.expandRow(s, row, beams[row], depth)
			return any
		})
		if asked {
			if err := errors.Join(ctx.Err(), b.runner.WriteBatch(b.routes.Actions, b.actions), b.runner.SetState(kernel.State{})); err != nil {
				return err
			}
			if err := run.Replay(ctx, b.runner); err != nil {
				return err
			}
			if err := errors.Join(b.runner.ReadBatch(b.routes.Actions, b.actions), b.runner.ReadBatch(b.routes.Length, b.lengths)); err != nil {
				return err
			}
		}
		under := eachRow(rows, func(row int) bool {
			beams[row] = b.keep(s, row, children[row], depth+1)
			return !ended(beams[row], depth+1)
		})
		if err := b.report(s, problems, beams, shortest, out); err != nil {
			return err
		}
		if !under {
			break
		}
	}
	return nil
}

// take copies the projections to the host and to the program that completes solutions.
func (b *beamSearch) take(s *batch) error {
	if err := errors.Join(s.runner.ReadBatch(b.kept.Proj, b.proj), s.runner.ReadBatch(b.kept.Pointer, b.pointer), s.runner.ReadBatch(b.kept.Graph, b.graph)); err != nil {
		return err
	}
	g := &b.given
	return errors.Join(b.runner.WriteBatch(g.Proj, b.proj), b.runner.WriteBatch(g.Pointer, b.pointer), b.runner.WriteBatch(g.Graph, b.graph),
		b.runner.WriteBatch(g.PosX, s.x), b.runner.WriteBatch(g.PosY, s.y), b.runner.WriteBatch(g.Nodes, s.nodes))
}

// first returns the beam after one action: the shortest of the row's starts.
func (b *beamSearch) first(s *batch, row int) []hypothesis {
	steps := s.steps
	all := make([]hypothesis, s.starts)
	for k := range all {
		at := row*s.starts + k
		all[k] = hypothesis{tour: slices.Clone(s.actions[at*steps:][:steps]), length: s.lengths[at], slot: -1}
	}
	return b.shortest(all)
}

// shortest returns the shortest hypotheses, at most the beam's width. The sort is stable.
func (b *beamSearch) shortest(all []hypothesis) []hypothesis {
	slices.SortStableFunc(all, func(x, y hypothesis) int { return cmp.Compare(x.length, y.length) })
	return slices.Clip(all[:min(b.width, len(all))])
}

// expandRow returns the children of a row's hypotheses after `depth` fixed actions. asked is true
// if the device must complete any of them.
func (b *beamSearch) expandRow(s *batch, row int, beam []hypothesis, depth int) (children []hypothesis, asked bool) {
	d := b.decoder(s, row)
	steps, slot := s.steps, 0
	for _, h := range beam {
		h.slot = -1
		children = append(children, h)
		tour := stateAfter(d, h.tour[:depth])
		if tour.Done() {
			continue
		}
		says := d.Decide(tour)
		for range min(b.expand-1, len(says.Allowed)-1) {
			best := -1
			for i, a := range says.Allowed {
				if int32(a) != h.tour[depth] && !math.IsInf(float64(says.LogProb[i]), -1) && (best < 0 || says.LogProb[i] > says.LogProb[best]) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			says.LogProb[best] = float32(math.Inf(-1))
			at := b.actions[(row*b.slots+slot)*steps:][:steps]
			copy(at, h.tour[:depth])
			at[depth] = int32(says.Allowed[best])
			for k := depth + 1; k < steps; k++ {
				at[k] = -1
			}
			children = append(children, hypothesis{slot: slot})
			slot++
		}
	}
	return children, slot > 0
}

// stateAfter returns the state of a solution after its fixed actions.
func stateAfter(d *reference.Decoder[float32], actions []int32) *reference.Tour {
	tour := d.Depart()
	for _, a := range actions {
		if !tour.Done() {
			tour.Visit(int(a))
		}
	}
	return tour
}

// decoder returns the reference's decoder of a row.
func (b *beamSearch) decoder(s *batch, row int) *reference.Decoder[float32] {
	nodes, words, wide, width := s.count, b.kept.Nodes.Cols(), b.kept.Proj.Cols(), b.kept.Pointer.Cols()
	proj := reference.Matrix[float32]{Data: b.proj[row*nodes*wide:][:nodes*wide], Rows: nodes, Cols: wide, Stride: wide}
	d := &reference.Decoder[float32]{
		Proj:    proj,
		Pointer: reference.Matrix[float32]{Data: b.pointer[row*nodes*width:][:nodes*width], Rows: nodes, Cols: width, Stride: width},
		Graph:   b.graph[row*width:][:width], Context: b.context, Rules: b.kept.Rules, Nodes: s.nodes[row*words:][:words], Heads: b.kept.Heads, Temperature: 1,
		PosX: s.x[row*nodes:][:nodes], PosY: s.y[row*nodes:][:nodes], Near: b.kept.Near}
	if v := b.kept.Pair; v != nil {
		d.Pair, d.PairContext = reference.Matrix[float32]{Data: proj.Data[v.Offset:], Rows: nodes, Cols: v.Cols(), Stride: wide}, b.pairContext
	}
	return d
}

// keep reads the completed solutions and returns the shortest hypotheses, one of each state. The
// best continuation depends only on the state after the fixed actions: of two hypotheses in one
// state the longer one cannot win.
func (b *beamSearch) keep(s *batch, row int, children []hypothesis, settled int) []hypothesis {
	steps := s.steps
	for i := range children {
		if h := &children[i]; h.slot >= 0 {
			at := row*b.slots + h.slot
			h.length = b.lengths[at]
			h.tour = b.actions[at*steps:][:steps]
		}
	}
	slices.SortStableFunc(children, func(x, y hypothesis) int { return cmp.Compare(x.length, y.length) })
	d := b.decoder(s, row)
	var kept []hypothesis
	var states []*reference.Tour
	for _, h := range children {
		if len(kept) == b.width {
			break
		}
		tour := stateAfter(d, h.tour[:settled])
		if !slices.ContainsFunc(states, tour.Same) {
			kept, states = append(kept, h), append(states, tour)
		}
	}
	for i := range kept {
		if kept[i].slot >= 0 {
			kept[i].tour = slices.Clone(kept[i].tour) // the slot will be overwritten
		}
	}
	return kept
}

// ended reports whether all solutions of a beam are complete after `depth` actions. A complete
// solution is padded with the depot.
func ended(beam []hypothesis, depth int) bool {
	for _, h := range beam {
		if depth < len(h.tour) && slices.Max(h.tour[depth:]) > 0 {
			return false
		}
	}
	return true
}

// report stores solutions in out that became shorter.
func (b *beamSearch) report(s *batch, problems []*vrp.Problem, beams [][]hypothesis, shortest []float32, out []Routed) error {
	for i, prob := range problems {
		var tours []int32
		var lengths []float32
		for _, beam := range beams[i*s.sym:][:s.sym] {
			for _, h := range beam {
				if h.slot >= 0 && (h.length < shortest[i] || prob.Metric != vrp.Exact) {
					tours, lengths = append(tours, h.tour...), append(lengths, h.length)
				}
			}
		}
		if len(lengths) == 0 {
			continue
		}
		shortest[i] = min(shortest[i], slices.Min(lengths))
		if err := out[i].take(prob, tours, lengths); err != nil {
			return err
		}
	}
	return nil
}
