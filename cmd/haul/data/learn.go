package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/device"
	"haul/internal/recipe"
)

// learnFlags say what learns, and in what.
type learnFlags struct {
	shown     recipe.Shown
	learning  recipe.Recurrent
	device    string
	precision string
	workers   int
	seed      uint64
}

func (a *app) newDataLearn() *cobra.Command {
	f := learnFlags{learning: recipe.DefaultLiveLearner()}
	cmd := &cobra.Command{
		Use:   "learn",
		Short: "Let a learner live in environments that another program runs",
		Long: `A recurrent neural network learns one task after another by proximal policy optimization, each from nothing. The environments are
another program's, which keeps what happens in them; haul data import makes a file of it. Both exchange lines of JSON.

haul data learn first writes what it expects:

  {"envs": 2, "steps": 8192, "fields": 2, "actions": 4}

The other program begins a task by its number (whole), with the first observation of every environment:

  {"task": 7, "obs": [[4, 4], [4, 4]]}

haul data learn answers with an action for each environment:

  {"action": [1, 3]}

The other program takes that step and says what it led to. "obs" is what the next action is chosen by: after an episode's end the first
observation of the next episode.

  {"obs": [[4, 5], [3, 4]], "reward": [0, 1], "end": [false, true]}

"end" marks episodes that are over, "cut" (in its place or beside it) those that a limit of time ended; "last" may hold what a cut episode
showed last, null for the others. "idle" marks environments that only began an episode, whatever the action; their reward counts for
nothing. After --steps steps in each
environment the answer is, for each of them, the actions that the learner holds best in hindsight, step by step (best_actions of haul
data import):

  {"best": [[0, 2, ...], [1, 1, ...]]}

The next line begins another task. A line that cannot be read is answered by {"error": "..."} and changes nothing. The end of input ends
the program.

An observation has whole numbers (--sizes says how many values each takes) or as many measured numbers as --measured says. These, and the
rewards, are shown to the network in multiples of their spread so far.

In Python: haul.record(make_env, ..., learner="ppo").`,
		Example: "  haul data learn --envs 8 --measured 4 --actions 2\n  haul data learn --envs 4 --sizes 9,9 --actions 5 --steps 4096",
		Args:    cli.AtMost(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.dataLearn(cmd, &f) },
	}
	fs := cmd.Flags()
	s := &f.learning
	fs.IntSliceVar(&f.shown.Sizes, "sizes", nil, "number of values of each whole number of an observation, such as 9,9")
	fs.IntVar(&f.shown.Measured, "measured", 0, "measured numbers of an observation")
	fs.IntVar(&f.shown.Actions, "actions", 0, "number of actions")
	fs.IntVar(&s.Envs, "envs", s.Envs, "environments of a task")
	fs.IntVar(&s.Steps, "steps", s.Steps, "steps of each environment")
	fs.IntVar(&s.Rollout, "rollout", s.Rollout, "steps between two updates, and how far back a gradient reaches")
	fs.IntVar(&s.Hidden, "hidden", s.Hidden, "recurrent units, and width of the layers before them")
	fs.Float64Var(&s.Rate, "rate", s.Rate, "learning rate")
	fs.Float64Var(&s.Discount, "discount", s.Discount, "what a reward one step later counts")
	fs.Float64Var(&s.Entropy, "entropy", s.Entropy, "weight of the policy's entropy in the loss")
	fs.Uint64Var(&f.seed, "seed", 0, "random seed of the learners")
	fs.StringVar(&f.device, "device", "cpu", "where the network computes: cpu or cuda:K")
	fs.StringVar(&f.precision, "precision", "", "fp32, or tf32 (on a GPU)")
	fs.IntVar(&f.workers, "workers", 1, "cores that the network uses")
	return cmd
}

// learnInput is a line of the other program: a task's begin, or what a step led to.
type learnInput struct {
	task, obs, reward, end, cut, last, idle json.RawMessage
}

// parts are its keys.
func (in *learnInput) parts() []cli.LinePart {
	return []cli.LinePart{{Key: "task", Value: &in.task}, {Key: "obs", Value: &in.obs}, {Key: "reward", Value: &in.reward}, {Key: "end", Value: &in.end}, {Key: "cut", Value: &in.cut}, {Key: "last", Value: &in.last}, {Key: "idle", Value: &in.idle}}
}

const (
	sampleBegin = `{"task": 7, "obs": [[4, 4]]}`
	sampleStep  = `{"obs": [[4, 5]], "reward": [0], "end": [false]}`
)

func (a *app) dataLearn(cmd *cobra.Command, f *learnFlags) (failed error) {
	switch {
	case f.shown.Sizes == nil && f.shown.Measured == 0:
		return cli.Usagef("--sizes or --measured is missing: say what an observation holds")
	case f.shown.Sizes != nil && f.shown.Measured != 0:
		return cli.Usagef("--sizes and --measured: an observation holds whole numbers or measured ones, not both")
	case f.shown.Actions == 0:
		return cli.Usagef("--actions is missing: say how many there are")
	case f.device == "auto":
		return cli.Usagef("--device is auto: use cpu or cuda:K")
	}
	if err := checkNetworkDevice(f.device, f.precision); err != nil {
		return cli.AsUsage(err)
	}
	if err := recipe.CheckLiveLearner(f.learning, f.shown); err != nil {
		return cli.AsUsage(err)
	}
	a.noteUnlearned(&f.learning)
	workers, err := a.Cores(f.workers)
	if err != nil {
		return err
	}
	dev, err := device.Open(f.device, device.Options{Precision: f.precision, Workers: workers})
	if err != nil {
		return err
	}
	defer func() { failed = cli.FirstOf(failed, dev.Close()) }()
	fields := max(len(f.shown.Sizes), f.shown.Measured)
	t := &lessons{Conversation: cli.NewConversation(cmd.InOrStdin(), a.Stdout, f.learning.Envs*(2*fields+5)), envs: f.learning.Envs}
	if t.live, err = recipe.NewLiveLearner(dev, f.learning, f.shown, f.seed, t.act); err != nil {
		return err
	}
	defer func() { failed = cli.FirstOf(failed, t.live.Close()) }()
	if err := t.Say(map[string]any{"envs": t.envs, "steps": f.learning.Steps, "fields": fields, "actions": f.shown.Actions}); err != nil {
		return err
	}
	if err := t.teach(cmd.Context()); !errors.Is(err, io.EOF) {
		return err
	}
	if t.steps > 0 {
		fmt.Fprintf(a.Stderr, "the input ended at step %d of %d of a task: what was learned of it is lost\n", t.steps, f.learning.Steps)
	}
	return nil
}

// lessons are a learner's tasks, as the other program tells of them.
type lessons struct {
	*cli.Conversation
	live  *recipe.LiveLearner
	envs  int
	steps int // begun of the task under way
}

// teach takes task after task, until the input ends.
func (t *lessons) teach(ctx context.Context) error {
	for {
		task, observed, err := t.begin()
		if err != nil {
			return err
		}
		best, err := t.live.Learn(ctx, task, observed)
		if err != nil {
			return err
		}
		t.steps = 0
		out := make([][]int, len(best)) // bytes would be written as text
		for e, steps := range best {
			for _, a := range steps {
				out[e] = append(out[e], int(a))
			}
		}
		if err := t.Say(map[string]any{"best": out}); err != nil {
			return err
		}
	}
}

// begin hears a task's number and first observations.
func (t *lessons) begin() (task int64, observed [][]float64, err error) {
	err = t.understand(sampleBegin, func(in *learnInput) (err error) {
		for _, p := range in.parts()[2:] {
			if *p.Value != nil || in.task == nil {
				return fmt.Errorf("a task begins with a line such as %s", sampleBegin)
			}
		}
		if err := json.Unmarshal(in.task, &task); err != nil || !cli.Holds(in.task) {
			return errors.New("task: want a whole number")
		}
		if observed, err = t.observed(in); err != nil {
			return err
		}
		return t.live.Check(observed)
	})
	return task, observed, err
}

// act tells what to do, and hears what that led to.
func (t *lessons) act(_ context.Context, actions []uint8) (*recipe.StepResult, error) {
	acts := make([]int, len(actions))
	for e, a := range actions {
		acts[e] = int(a)
	}
	t.steps++
	if err := t.Say(map[string]any{"action": acts}); err != nil {
		return nil, err
	}
	told := &recipe.StepResult{}
	err := t.understand(sampleStep, func(in *learnInput) (err error) {
		if in.task != nil {
			return fmt.Errorf("a task is under way: want what the step led to, a line such as %s", sampleStep)
		}
		*told = recipe.StepResult{}
		if told.Observed, err = t.observed(in); err != nil {
			return err
		}
		var ok bool
		if told.Rewards, ok = cli.ListOf[float64](in.reward, t.envs); !ok {
			return fmt.Errorf("reward: want a list of %d numbers", t.envs)
		}
		for _, marks := range []struct {
			key   string
			text  json.RawMessage
			where *[]bool
		}{{"end", in.end, &told.Terminated}, {"cut", in.cut, &told.Truncated}, {"idle", in.idle, &told.Idle}} {
			if *marks.where, err = cli.TruthsOf(marks.key, marks.text, t.envs); err != nil {
				return err
			}
		}
		if cli.Holds(in.last) {
			if told.FinalObs, ok = cli.RowsOf(in.last, t.envs, true); !ok {
				return fmt.Errorf("last: want a list of %d observations, null where there is none", t.envs)
			}
		}
		return t.live.CheckStep(told)
	})
	return told, err
}

func (t *lessons) observed(in *learnInput) ([][]float64, error) {
	rows, ok := cli.RowsOf(in.obs, t.envs, false)
	if !ok {
		return nil, fmt.Errorf("obs: want a list of %d observations, each a list of numbers", t.envs)
	}
	return rows, nil
}

// understand hears lines until one makes sense, and answers those that do not.
func (t *lessons) understand(sample string, take func(*learnInput) error) error {
	for {
		line, err := t.Hear()
		if err != nil {
			return err
		}
		in := &learnInput{}
		if err = cli.DecodeLine(line, sample, in.parts()...); err == nil {
			if err = take(in); err == nil {
				return nil
			}
		}
		if err := t.Refuse(err); err != nil {
			return err
		}
	}
}
