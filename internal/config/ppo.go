package config

import (
	"fmt"
	"math"
)

// PPO holds the settings that generate learning histories: the grid room and the learner. The yaml
// tags are the keys of ppo_keys.go. Name is the file's base name without its extension.
type PPO struct {
	Name string `yaml:"-"`

	Env           string  `yaml:"env"`
	GridSize      int     `yaml:"grid_size"`
	DimStates     int     `yaml:"dim_states"`
	DimActions    int     `yaml:"dim_actions"`
	NumActions    int     `yaml:"num_actions"`
	Horizon       int     `yaml:"horizon"`
	Goal          int     `yaml:"goal"`
	NGoal         int     `yaml:"n_goal"` // as written; Goals replaces 0
	EnvSplitSeed  uint64  `yaml:"env_split_seed"`
	TrainEnvRatio float64 `yaml:"train_env_ratio"`

	Alg                  string  `yaml:"alg"`
	Policy               string  `yaml:"policy"`
	NSteps               int     `yaml:"n_steps"`
	BatchSize            int     `yaml:"batch_size"`
	NEpochs              int     `yaml:"n_epochs"`
	AlgSeed              uint64  `yaml:"alg_seed"`
	TotalSourceTimesteps int     `yaml:"total_source_timesteps"`
	NStream              int     `yaml:"n_stream"`
	SourceLR             float64 `yaml:"source_lr"`
	NProcess             int     `yaml:"n_process"` // as written; Workers replaces 0
	Gamma                float64 `yaml:"gamma"`
	GAELambda            float64 `yaml:"gae_lambda"`
	ClipRange            float64 `yaml:"clip_range"`
	EntCoef              float64 `yaml:"ent_coef"`
	VFCoef               float64 `yaml:"vf_coef"`
	MaxGradNorm          float64 `yaml:"max_grad_norm"`
	Hidden               int     `yaml:"hidden"`
	TargetKL             float64 `yaml:"target_kl"`
}

// The values of env.
const (
	EnvDarkRoom = "darkroom"
	EnvKeyDoor  = "keydoor"
)

// AllGoals returns the number of tasks of the room: its cells, or the pairs of a cell for the key
// and one for the door.
func (c *PPO) AllGoals() int {
	n := c.GridSize * c.GridSize
	if c.Env == EnvKeyDoor {
		n *= n - 1
	}
	return n
}

// Goals returns the number of tasks of the histories.
func (c *PPO) Goals() int {
	if c.NGoal == 0 {
		return c.AllGoals()
	}
	return c.NGoal
}

// TrainGoals returns how many tasks the agent is trained on; the others are held out.
func (c *PPO) TrainGoals() int { return int(math.Round(c.TrainEnvRatio * float64(c.Goals()))) }

// Workers returns the number of learners that run concurrently on a machine with this many cores.
func (c *PPO) Workers(cores int) int {
	if c.NProcess == 0 {
		return cores
	}
	return min(c.NProcess, cores)
}

// YAML returns all keys that have an effect. ParsePPO parses it to an equal PPO.
func (c *PPO) YAML() ([]byte, error) { return marshal(c) }

// Recipe returns RecipePPO.
func (c *PPO) Recipe() string { return RecipePPO }

// Title returns the name of the settings.
func (c *PPO) Title() string { return c.Name }

// Named returns a copy with another name.
func (c *PPO) Named(name string) Settings {
	own := *c
	own.Name = name
	return &own
}

// conflicts returns the faults of combinations of keys, if each value is valid by itself.
func (c *PPO) conflicts() []conflict {
	var out []conflict
	if n := c.TrainGoals(); n < 1 || n >= c.Goals() {
		keys, of := []string{"train_env_ratio", "grid_size"}, fmt.Sprintf("grid_size %d", c.GridSize)
		if c.NGoal > 0 {
			keys, of = []string{"train_env_ratio", "n_goal"}, fmt.Sprintf("n_goal %d", c.NGoal)
		}
		out = append(out, clash(keys, "train_env_ratio %g of %s leaves %d goals to train on and %d held out; both need one", c.TrainEnvRatio, of, n, c.Goals()-n))
	}
	if all := c.AllGoals(); c.NGoal > all {
		out = append(out, clash([]string{"n_goal", "grid_size", "env"}, "n_goal %d is over the %d goals of %s with grid_size %d; 0 takes them all", c.NGoal, all, c.Env, c.GridSize))
	}
	switch all := c.AllGoals(); {
	case c.Goal >= all && c.Env == EnvKeyDoor:
		out = append(out, clash([]string{"goal", "grid_size", "env"}, "goal %d is outside of the room: keydoor with grid_size %d has goals 0 to %d", c.Goal, c.GridSize, all-1))
	case c.Goal >= all:
		out = append(out, clash([]string{"goal", "grid_size"}, "goal %d is outside of the room: grid_size %d has cells 0 to %d", c.Goal, c.GridSize, all-1))
	}
	rollout := c.NSteps * c.NStream
	if c.BatchSize > rollout {
		out = append(out, clash([]string{"batch_size", "n_steps", "n_stream"},
			"batch_size %d is over the %d steps that n_steps %d and n_stream %d gather", c.BatchSize, rollout, c.NSteps, c.NStream))
	}
	if c.TotalSourceTimesteps < rollout {
		out = append(out, clash([]string{"total_source_timesteps", "n_steps", "n_stream"},
			"total_source_timesteps %d is less than the %d steps of n_steps %d and n_stream %d: the learner would never learn", c.TotalSourceTimesteps, rollout, c.NSteps, c.NStream))
	}
	if c.TotalSourceTimesteps < c.NStream*c.Horizon {
		out = append(out, clash([]string{"total_source_timesteps", "n_stream", "horizon"},
			"total_source_timesteps %d gives each of n_stream %d less than an episode of horizon %d", c.TotalSourceTimesteps, c.NStream, c.Horizon))
	}
	return out
}
