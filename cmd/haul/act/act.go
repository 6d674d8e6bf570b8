// Package act is the verb haul act.
package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/seeds"
	"haul/internal/config"
	"haul/internal/recipe"
)

// actFlags are the flags of haul act.
type actFlags struct {
	cli.DeviceFlags
	checkpoint          string
	agents              int
	temperature, search float64
	seed                uint64
}

// app is the program that the verb is a part of.
type app struct{ *cli.App }

// New returns the verb.
func New(program *cli.App) *cobra.Command {
	a := &app{program}
	var f actFlags
	cmd := &cobra.Command{
		Use:   "act",
		Short: "Let trained in-context agents act in a world that another program runs",
		Long: `Each agent keeps its context in this process, so that what it learns of a task in one episode helps it in the next. The other
program and haul act exchange lines of JSON.

haul act first writes what it expects:

  {"agents": 2, "fields": ["x", "y"], "actions": 5, "temperature": 0.4, "search_temperature": 1}

The other program then writes one line per step, with the observation of every agent and the reward of its last action (ignored before
the first action):

  {"obs": [[4, 4], [4, 4]], "reward": [0, 0]}

haul act answers with one action per agent, and a "note" if a reward is unlike those of training:

  {"action": [1, 3]}

When an episode ends, the next line holds the first observation of the next episode and the reward that ended the last one.
"forget": [true, false] empties the context of the first agent before its observation is read, for a new task. A line that cannot
be read is answered by {"error": "..."} and changes no agent. The end of input ends the program.

In Python: haul.Agent(run).act(obs, reward).`,
		Example: "  haul act --checkpoint runs/ad_dr_compressed-001 --agents 8",
		Args:    cli.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.act(cmd, &f) },
	}
	f.DeviceFlags.Register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.checkpoint, "checkpoint", "", "run folder or .safetensors file of the trained agent")
	fs.IntVar(&f.agents, "agents", 1, "number of agents, each with its own context")
	fs.Float64Var(&f.temperature, "temperature", 0, "sampling temperature of actions; 0 takes the most likely action (default: what the run chose, else eval_temperature)")
	fs.Float64Var(&f.search, "search", 0, "sampling temperature while an agent's context holds no reward yet (default: --temperature; without it what the run chose, else eval_search)")
	fs.Uint64Var(&f.seed, "seed", 0, "random seed of the actions, instead of the settings'")
	return cmd
}

func (a *app) act(cmd *cobra.Command, f *actFlags) (err error) {
	switch {
	case f.checkpoint == "":
		return cli.Usagef("--checkpoint is missing: name a run folder or a .safetensors file")
	case f.agents < 1 || f.agents > 1<<20:
		return cli.Usagef("--agents is %d: it must be 1 to %d", f.agents, 1<<20)
	case !(f.temperature >= 0) || !(f.search >= 0) || math.IsInf(f.temperature, 0) || math.IsInf(f.search, 0):
		return cli.Usagef("--temperature and --search must be finite and not below 0")
	}
	if err := f.Check(a.App); err != nil {
		return err
	}
	path, ck, err := cli.CheckpointOf(f.checkpoint)
	if err != nil {
		return err
	}
	if r := ck.Settings.Recipe(); r != config.RecipeAD {
		return fmt.Errorf("%s holds a model of %s: only in-context agents, of %s, act", path, r, config.RecipeAD)
	}
	r, err := recipe.Find(config.RecipeAD)
	if err != nil {
		return err
	}
	o := recipe.LiveOptions{Agents: f.agents}
	if result, err := seeds.ReadResult(filepath.Dir(path)); err == nil {
		o.Temperature, o.Search = &result.HeldOut.Temperature, &result.HeldOut.Search
	}
	if cmd.Flags().Changed("temperature") {
		o.Temperature, o.Search = &f.temperature, nil
	}
	if cmd.Flags().Changed("search") {
		o.Search = &f.search
	}
	if cmd.Flags().Changed("seed") {
		o.Seed = &f.seed
	}
	dev, err := a.OpenFor(cmd.Context(), &f.DeviceFlags, r, ck.Settings)
	if err != nil {
		return err
	}
	defer func() { err = cli.FirstOf(err, dev.Close()) }()
	live, err := recipe.NewLive(dev, path, o)
	if err != nil {
		return err
	}
	defer func() { err = cli.FirstOf(err, live.Close()) }()
	return a.converse(cmd.InOrStdin(), live)
}

// Converse answers line by line until the input ends.
func (a *app) converse(in io.Reader, live *recipe.Live) error {
	space := live.World.Space()
	c := cli.NewConversation(in, a.Stdout, live.Agents()*(len(space.Fields)+2))
	var fields []string
	for _, f := range space.Fields {
		fields = append(fields, f.Name)
	}
	use, search := live.Temperatures()
	if err := c.Say(map[string]any{"agents": live.Agents(), "fields": fields, "actions": space.Actions, "temperature": use, "search_temperature": search}); err != nil {
		return err
	}
	actions := make([]int, live.Agents())
	for {
		line, err := c.Hear()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		said := answer(live, actions, line)
		if said != nil && !errors.Is(said, recipe.ErrLine) {
			return said
		}
		if said != nil {
			err = c.Refuse(said)
		} else {
			reply := map[string]any{"action": actions}
			if note := live.Note(); note != "" {
				reply["note"] = note
			}
			err = c.Say(reply)
		}
		if err != nil {
			return err
		}
	}
}

// answer lets agents act on one line.
func answer(live *recipe.Live, actions []int, line []byte) error {
	const sample = `{"obs": [[4, 4]], "reward": [0]}`
	// done is of use to whoever reads along: a context needs none
	var seen, earned, begins, done json.RawMessage
	if err := cli.DecodeLine(line, sample, cli.LinePart{Key: "obs", Value: &seen}, cli.LinePart{Key: "reward", Value: &earned}, cli.LinePart{Key: "forget", Value: &begins}, cli.LinePart{Key: "done", Value: &done}); err != nil {
		return err
	}
	if seen == nil {
		return cli.Unlike(sample)
	}
	n := live.Agents()
	obs, ok := cli.RowsOf(seen, n, true) // one that is missing has no fields
	if !ok {
		return fmt.Errorf("obs: want a list of %d observations, each a list of numbers%w", n, recipe.ErrLine)
	}
	paid := make([]*float64, n)
	if cli.Holds(earned) {
		if err := json.Unmarshal(earned, &paid); err != nil || len(paid) != n {
			return fmt.Errorf("reward: want a list of %d numbers%w", n, recipe.ErrLine)
		}
	}
	rewards := make([]float64, n)
	for i, p := range paid {
		if rewards[i] = math.NaN(); p != nil { // which is not read of a life's first step
			rewards[i] = *p
		}
	}
	forget, err := cli.TruthsOf("forget", begins, n)
	if err != nil {
		return err
	}
	return live.Act(actions, obs, rewards, forget)
}
