package agent

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"haul/internal/config"
	"haul/internal/kernel"
	"haul/internal/model"
	"haul/internal/rng"
	"haul/internal/world"
)

// Agents in another program's loop follow the same rules as agents that this program evaluates
// (context.go, batch.go). They act together: an agent that has read everything waits for agents
// that read a pruned context again. Meanwhile it reads its last token again, which writes the same
// keys and values to the same position.

// Live is a set of agents with separate contexts that act in external environments. Only one
// goroutine may use it.
type Live struct {
	World        world.World
	agent        *Agent
	space        world.Space
	net          forwarder
	close        func() error
	seed         uint64
	temperatures temperatures
	lives        []life
	width        int    // per row of logits
	note         string // the next result of Note
	noted        bool   // whether Note has returned it
}

// life is the state of one agent.
type life struct {
	context  agentContext
	steps    uint32
	action   int  // its last action
	hasActed bool // whether it has acted since its context was cleared
}

// LiveOptions configures how agents act.
type LiveOptions struct {
	Agents      int
	Temperature *float64 // nil: eval_temperature
	Search      *float64 // while a context holds no reward; nil: eval_search, or Temperature
	Seed        *uint64  // nil: seed
}

// NewLive compiles a checkpoint's agent for a device, for the number of agents in o.
func NewLive(dev kernel.Device, path string, o LiveOptions) (*Live, error) {
	if o.Agents < 1 {
		return nil, fmt.Errorf("%d agents: at least 1 is needed", o.Agents)
	}
	a, err := Load(dev, path)
	if err != nil {
		return nil, err
	}
	temperatures := (&EvalOptions{Temperature: o.Temperature, Search: o.Search}).temperatures(a.Config)
	if !(temperatures.use >= 0) || !(temperatures.search >= 0) {
		return nil, errors.Join(fmt.Errorf("a temperature of %g: it must not be below 0", min(temperatures.use, temperatures.search)), a.Close())
	}
	l := &Live{World: a.World, agent: a, space: a.World.Space(), temperatures: temperatures, seed: a.Config.Seed}
	if o.Seed != nil {
		l.seed = *o.Seed
	}
	rules, err := newContextRules(a.Config, len(l.space.Fields), a.World.Limit())
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	net, err := newNetwork(dev, a.model, a.store, o.Agents, o.Agents, rules.capacity, "--agents")
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	l.net, l.close = net, func() error { return errors.Join(net.runner.Close(), a.Close()) }
	l.begin(o.Agents, &rules)
	return l, nil
}

func (l *Live) begin(agents int, rules *contextRules) {
	l.width = l.space.Actions + model.TokenTypes
	l.lives = make([]life, agents)
	for i := range l.lives {
		l.lives[i].context = newAgentContext(rules)
	}
}

// Close frees the agents' memory on the device.
func (l *Live) Close() error { return l.close() }

// Settings returns the settings that the agent was trained with.
func (l *Live) Settings() *config.AD { return l.agent.Config }

// Agents returns the number of agents.
func (l *Live) Agents() int { return len(l.lives) }

// Temperatures returns the temperatures that agents act at: after a reward was found, and before.
func (l *Live) Temperatures() (use, search float64) { return l.temperatures.use, l.temperatures.search }

// ErrLine marks an error in a request to the agents. The agents remain usable after it.
var ErrLine = errors.New("")

// Act gives every agent its observation and the reward of its last action, and writes each agent's
// action. Agents with a true value in forget clear their context first, to start an unknown task;
// forget may be nil. The first reward after that is ignored. After an error no agent has changed.
func (l *Live) Act(actions []int, observed [][]float64, rewards []float64, forget []bool) error {
	if len(observed) != len(l.lives) || len(rewards) != len(l.lives) || len(actions) != len(l.lives) {
		return fmt.Errorf("%d observations and %d rewards: want one for each of %d agents%w", len(observed), len(rewards), len(l.lives), ErrLine)
	}
	fields := make([]int32, len(l.lives)*len(l.space.Fields))
	paid := make([]int, len(l.lives))
	for i := range l.lives {
		if err := l.read(fields[i*len(l.space.Fields):][:len(l.space.Fields)], observed[i], i); err != nil {
			return err
		}
		if !l.lives[i].hasActed || forget != nil && forget[i] {
			continue
		}
		if math.IsNaN(rewards[i]) {
			return fmt.Errorf("agent %d is not told what its last action paid: give reward, or let it forget%w", i, ErrLine)
		}
		if math.IsInf(rewards[i], 0) {
			return fmt.Errorf("the reward of agent %d is %v%w", i, rewards[i], ErrLine)
		}
		paid[i] = nearest(l.space.Rewards, rewards[i])
		l.strange(rewards[i], l.space.Rewards)
	}
	for i := range l.lives {
		x := &l.lives[i]
		if forget != nil && forget[i] {
			x.context.reset()
			x.hasActed = false
		}
		action, reward := -1, -1
		if x.hasActed {
			action, reward = x.action, paid[i]
		}
		copy(x.context.observe(action, reward), fields[i*len(l.space.Fields):])
	}
	logits, err := l.think()
	if err != nil {
		return err
	}
	for i := range l.lives {
		x := &l.lives[i]
		row := logits[i*l.width:][:l.width]
		w := rng.At(l.seed, uint64(i), x.steps, rng.Agent)
		temperature := l.temperatures.of(&x.context)
		x.action, x.hasActed = choose(row[:l.space.Actions], temperature, w[0]), true
		actions[i] = x.action
		x.steps++
		if c := &x.context; c.rules.compressed {
			types := row[l.space.Actions:]
			ends := [2]float32{types[model.TypeTransition], types[model.TypeEnd]}
			if c.region() >= c.rules.longest || choose(ends[:], temperature, w[1]) == 1 {
				c.end()
			}
		}
	}
	return nil
}

// think reads all unread tokens and returns the logits after each agent's last token.
func (l *Live) think() ([]float32, error) {
	index, at, _, logits := l.net.buffers()
	for behind := true; behind; {
		behind = false
		for i := range l.lives {
			c := &l.lives[i].context
			if c.fed == c.tokens() { // it waits
				c.fed--
			}
			n := c.rules.width + 1
			var acting bool
			if at[i], acting = c.next(index[i*n:][:n]); !acting {
				behind = true
			}
		}
		if err := l.net.forward(); err != nil {
			return nil, err
		}
	}
	return logits, nil
}

// read converts an observation to the integers of its fields.
func (l *Live) read(to []int32, observed []float64, agent int) error {
	if len(observed) != len(to) {
		return fmt.Errorf("the observation of agent %d has %d fields, the world has %d%w", agent, len(observed), len(to), ErrLine)
	}
	for i, v := range observed {
		f := &l.space.Fields[i]
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return fmt.Errorf("the observation of agent %d has %v in field %s%w", agent, v, f.Name, ErrLine)
		case f.Edges != nil:
			to[i] = int32(f.Level(v))
		case v != math.Trunc(v) || v < 0 || v >= float64(f.Size):
			return fmt.Errorf("the observation of agent %d has %v in field %s: want whole numbers from 0 to %d%w", agent, v, f.Name, f.Size-1, ErrLine)
		default:
			to[i] = int32(v)
		}
	}
	return nil
}

// fewRewards is the number of values up to which rewards count as exact. More values may be levels
// of continuous rewards, which usually lie between levels.
const fewRewards = 16

// strange notes the first reward that differs from all known ones: outside their range or, if there
// are few values, between two of them.
func (l *Live) strange(reward float64, known []float64) {
	least, most := known[0], known[len(known)-1]
	taken := known[nearest(known, reward)]
	beyond := reward < least || reward > most
	between := len(known) <= fewRewards && math.Abs(reward-taken) > 1e-3*(most-least)
	if l.noted || !beyond && !between {
		return
	}
	l.noted = true
	l.note = fmt.Sprintf("a reward of %g is none that the agent has learned from (%g to %g) and is taken for %g; so are others like it", reward, least, most, taken)
	if !beyond {
		l.note = fmt.Sprintf("a reward of %g is none of the %d that the agent has learned from and is taken for the nearest, %g; so are others like it", reward, len(known), taken)
	}
}

// Note returns a note on unknown input that the agents received, once; otherwise "".
func (l *Live) Note() string {
	note := l.note
	l.note = ""
	return note
}

// nearest returns the index of the value that is nearest to v.
func nearest(values []float64, v float64) int {
	i, found := slices.BinarySearch(values, v)
	if found || i == 0 {
		return i
	}
	if i == len(values) || v-values[i-1] <= values[i]-v {
		return i - 1
	}
	return i
}
