package ppo

import (
	"context"
	"math"

	"haul/internal/config"
	"haul/internal/rng"
	"haul/internal/world/grid"
)

// rollout holds the samples that a learner collects between two updates. Its streams are
// environments that step together. An episode may continue in the next rollout.
//
// samples are ordered [step, stream]. A history is ordered [stream, step].
type rollout struct {
	room     grid.Room
	states   []grid.State // all states of the room
	features int          // number of inputs of the network
	feature  [grid.NumStates][maxFeatures]float32
	next     [grid.NumActions][256]grid.Cell
	streams  int

	rule             grid.Rule // of the goal
	env              *grid.Batch
	done             int // steps of each stream since the goal began
	policy           policyTable
	samples          []sample
	ends             []bool // by step of the rollout: reports whether an episode ended with it
	actions, rewards []uint8
	carried          []float64 // by stream: the advantage of the following step, decayed
}

// sample is one transition and the targets derived from it.
type sample struct {
	state             grid.State
	action, reward    uint8
	logProb           float32 // of the action, at the time that it was taken
	advantage, target float32
}

// policyTable holds the policy and the critic's value for every state.
type policyTable struct {
	logProb [grid.NumStates][grid.NumActions]float32
	// cumulative probabilities: action k is the first whose bound exceeds the random number, or the
	// last action
	below [grid.NumStates][grid.NumActions - 1]float32
	value [grid.NumStates]float32
}

// maxFeatures is the largest number of inputs that a state has.
const maxFeatures = 2 + 2*3 // two flags, and the cell in each stage

// featuresOf returns the network's inputs for a state: the coordinates of the cell, from -1 to 1. A
// room with several stages adds a flag for the key and one for the open door, and gives each stage
// separate inputs for the cell. Without the flags the policy could take only one action in a cell
// that lies on the path to the key and on the path to the door. With shared inputs for the cell,
// the learner would repeat the path to the key after taking it, and miss a door far from it. The
// agent that reads the history sees only the rewards.
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

// begin sets every stream to the start of a goal's history.
func (r *rollout) begin(goal grid.Goal) {
	goals := make([]grid.Goal, r.streams)
	for i := range goals {
		goals[i] = goal
	}
	r.env, r.rule, r.done = grid.NewBatch(r.room, goals), goal.Rule(), 0
}

// fill computes the table from the network's output for the states: per row the logits of the
// actions, then the value.
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

// draw returns the action that a random number in [0, 1) selects.
func (p *policyTable) draw(state grid.State, u float32) uint8 {
	for k, bound := range p.below[state] {
		if u < bound {
			return uint8(k)
		}
	}
	return grid.NumActions - 1
}

// collect takes the given number of steps in each stream and appends them to the streams of
// history, which may be nil. It checks ctx before each step.
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

// spreadFloor is added to the standard deviation that advantages are divided by, in units of the
// largest value. If no stream gets a reward, or all streams take the best path, advantages consist
// of the critic's error alone. The floor keeps them small: the entropy bonus then outweighs them,
// and a policy that has lost a distant goal explores again. Without the floor the error would count
// as much as a reward and keep the policy where it is.
const spreadFloor = 0.05

// advantages computes the advantages (generalized advantage estimation) and the critic's targets.
//
// The agent cannot see the time limit that ends an episode, so the value of a state is the same at
// every step, and the critic's value of the next state also follows the last step of an episode.
//
// Advantages are divided by their standard deviation over the whole rollout, because a minibatch
// may hold no reward while rewards are rare. Their mean is not subtracted. Once every stream takes
// the same path, subtracting it would turn the critic's error in a cell into an advantage against
// the only action taken there, and the policy would collapse.
//
// For the same reason the critic should still underestimate when the history ends: until then,
// staying on the goal is better than it predicts. Each update closes about (1-γ)/(1-γλ) of its
// error, so long histories need a smaller λ or a larger γ.
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

// rewardUnit returns the value that a reward of 1 counts in training. The critic shares its layers
// with the actor, so its errors must not outweigh the actor's. Up to a discount of 1-1/horizon the
// unit is 1-γ and values stay within 0 to 1. For larger γ, 1-γ would make a single reward too
// small, so the unit is 1/horizon and the goal's value approaches 1/(horizon·(1-γ)): 5 at horizon
// 20 and γ 0.99. For γ 1 that limit does not exist; the settings refuse it. The key and the door
// give one reward each: a unit of one half keeps values within 0 to 1 for every discount.
func rewardUnit(c *config.PPO) float64 {
	if c.Env == config.EnvKeyDoor {
		return 0.5
	}
	return max(1-c.Gamma, 1/float64(c.Horizon))
}
