package ppo

import (
	"context"
	"math"

	"haul/internal/config"
	"haul/internal/rng"
	"haul/internal/world/grid"
)

// rollout is what a learner gathers between two updates, in streams that advance together. An
// episode may continue from one rollout to the next.
//
// What a reader could break: samples are ordered [step, stream], histories [stream, step].
type rollout struct {
	room     grid.Room
	states   []grid.State // of the room
	features int          // that the network sees of a state
	feature  [grid.NumStates][maxFeatures]float32
	next     [grid.NumActions][256]grid.Cell
	streams  int

	rule             grid.Rule // of the goal
	env              *grid.Batch
	done             int // steps of each stream since the goal began
	policy           policyTable
	samples          []sample
	ends             []bool // by step of the rollout: an episode ended with it
	actions, rewards []uint8
	carried          []float64 // by stream: the advantage of the step after, decayed
}

// sample is one transition and what it teaches.
type sample struct {
	state             grid.State
	action, reward    uint8
	logProb           float32 // of the action, when it was taken
	advantage, target float32
}

// policyTable is a policy and its critic, state by state.
type policyTable struct {
	logProb [grid.NumStates][grid.NumActions]float32
	// action k is taken by a draw under below[k] and not under an earlier one; else the last
	below [grid.NumStates][grid.NumActions - 1]float32
	value [grid.NumStates]float32
}

// maxFeatures is the most that the network sees of a state.
const maxFeatures = 2 + 2*3 // two flags, and the cell in each stage

// featuresOf is what the network sees of a state: where the cell lies, from -1 to 1. In a room of
// several stages it also sees whether the key is held and whether the door is open, and has inputs
// of its own for the cell in each stage. Without the flags a learner could walk one way alone from
// a cell that lies on the way to both; were the cell's inputs shared, the way to the key would be
// walked again once it is held, and a door far from it never found. The agent that reads the
// history sees none of this but the rewards.
func featuresOf(room grid.Room, s grid.State) []float32 {
	scale := func(v int) float32 { return 2*float32(v)/float32(room.Size-1) - 1 }
	x, y := scale(s.Cell().X()), scale(s.Cell().Y())
	if room.Stages() == 1 {
		return []float32{x, y}
	}
	out := make([]float32, 2+2*room.Stages())
	for stage := 1; stage < room.Stages(); stage++ {
		out[stage-1] = -1
		if int(s.Stage()) >= stage {
			out[stage-1] = 1
		}
	}
	out[2+2*s.Stage()], out[3+2*s.Stage()] = x, y
	return out
}

func newRollout(c *config.PPO) rollout {
	r := rollout{room: roomOf(c), streams: c.NStream,
		samples: make([]sample, c.NSteps*c.NStream), ends: make([]bool, c.NSteps),
		actions: make([]uint8, c.NStream), rewards: make([]uint8, c.NStream), carried: make([]float64, c.NStream)}
	r.states = r.room.States()
	for _, s := range r.states {
		r.features = copy(r.feature[s][:], featuresOf(r.room, s))
	}
	for _, cell := range r.room.Cells() {
		for a := range r.next {
			r.next[a][cell] = r.room.Move(cell, uint8(a))
		}
	}
	return r
}

// begin puts every stream at the start of a goal's history.
func (r *rollout) begin(goal grid.Goal) {
	goals := make([]grid.Goal, r.streams)
	for i := range goals {
		goals[i] = goal
	}
	r.env, r.rule, r.done = grid.NewBatch(r.room, goals), goal.Rule(), 0
}

// fill takes the network's output over the states: the actions' logits and a value, row by row.
func (p *policyTable) fill(states []grid.State, outs []float32) {
	for i, state := range states {
		row := outs[i*(grid.NumActions+1):][:grid.NumActions+1]
		p.value[state] = row[grid.NumActions]
		row = row[:grid.NumActions]
		most, sum := row[0], 0.0
		for _, v := range row {
			most = max(most, v)
		}
		for _, v := range row {
			sum += math.Exp(float64(v - most))
		}
		shift, total := float64(most)+math.Log(sum), 0.0
		for k, v := range row {
			lp := float64(v) - shift
			p.logProb[state][k] = float32(lp)
			if total += math.Exp(lp); k < len(p.below[state]) {
				p.below[state][k] = float32(total)
			}
		}
	}
}

// draw picks an action by a number in [0, 1).
func (p *policyTable) draw(state grid.State, u float32) uint8 {
	for k, bound := range p.below[state] {
		if u < bound {
			return uint8(k)
		}
	}
	return grid.NumActions - 1
}

// collect acts for so many steps and appends them to the streams of history, which may be nil. The
// end of the context is heeded before each.
func (r *rollout) collect(ctx context.Context, key uint64, steps int, history []grid.Step) error {
	each := len(history) / r.streams
	for t := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		row := r.samples[t*r.streams:][:r.streams]
		for s, state := range r.env.States() {
			u := rng.Float(rng.At(key, uint64(s), uint32(r.done), rng.Learner)[0])
			a := r.policy.draw(state, u)
			r.actions[s] = a
			row[s] = sample{state: state, action: a, logProb: r.policy.logProb[state][a]}
		}
		r.ends[t] = r.env.Step(r.rewards, r.actions)
		for s := range row {
			row[s].reward = r.rewards[s]
			if history != nil {
				history[s*each+r.done] = grid.MakeStep(row[s].state.Cell(), row[s].action, row[s].reward)
			}
		}
		r.done++
	}
	return nil
}

// spreadFloor is added to the spread that advantages are divided by, as a share of the largest
// value. Where no stream is paid, or all walk the best way, what is left of advantages is the
// critic's error. Kept small it loses to the entropy bonus, and a learner that has strayed from a
// far goal explores again; blown up to the size of a lesson it holds the learner where it is.
const spreadFloor = 0.05

// advantages fills in advantages (generalized advantage estimation) and the critic's targets.
//
// The end of an episode is a limit of time that the agent cannot see, so the critic's word for what
// would follow stands in for it: the value of a state is the same at every step. Advantages are
// divided by their spread over the rollout, not the minibatch, which may hold no reward while they
// are rare. Their mean stays: once every stream walks the same way, taking it away turns the
// critic's error in one cell into a lesson against the only action that was tried there, and the
// policy falls apart. For the same reason the critic should still be short of the truth when the
// history ends: until then staying on the goal is better than it expects. It comes nearer by about
// (1-γ)/(1-γλ) of the way an update, so long histories want a smaller λ or a larger γ.
func (r *rollout) advantages(c *config.PPO) {
	unit := rewardUnit(c)
	clear(r.carried)
	var sum, squares float64
	for t := len(r.ends) - 1; t >= 0; t-- {
		row := r.samples[t*r.streams:][:r.streams]
		for s := range row {
			m := &row[s]
			if r.ends[t] {
				r.carried[s] = 0
			}
			next, _ := r.rule.Enter(m.state, r.next[m.action][m.state.Cell()])
			v, after := float64(r.policy.value[m.state]), float64(r.policy.value[next])
			a := unit*float64(m.reward) + c.Gamma*after - v + c.Gamma*c.GAELambda*r.carried[s]
			r.carried[s] = a
			m.advantage, m.target = float32(a), float32(a+v)
			sum += a
			squares += a * a
		}
	}
	n := float64(len(r.samples))
	spread := math.Sqrt(max(0, squares/n-sum*sum/(n*n))) + spreadFloor
	for i := range r.samples {
		r.samples[i].advantage /= float32(spread)
	}
}

// rewardUnit is what a reward of 1 counts. The critic shares its layers with the actor, and its
// errors must not outweigh the actor's: up to a discount of 1-1/horizon the unit is 1-γ and values
// stay within 0 to 1. Past that it would shrink a single reward to nothing, so it stays 1/horizon,
// and the goal's value goes towards 1/(horizon·(1-γ)): 5 at horizon 20 and γ 0.99. At γ 1 there
// would be no such value to go towards; the settings refuse it. A key and a door pay once each:
// half a unit each keeps values within 0 to 1 whatever the discount.
func rewardUnit(c *config.PPO) float64 {
	if c.Env == config.EnvKeyDoor {
		return 0.5
	}
	return max(1-c.Gamma, 1/float64(c.Horizon))
}
