// Package world declares the environments of the in-context agent: fields of integers that the
// agent observes, a number of actions, and the values of the reward. The agent's network, files and
// evaluation use this declaration only. The games are the packages in its folders.
//
// The fields of a space are in the order of the embedding tables in every checkpoint. The network
// encodes a reward by its index in Rewards.
package world

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Limits of a space. A record stores a field in a byte.
const (
	MaxFields  = 64
	MaxSize    = 256
	MaxActions = 64
	MaxRewards = 256
)

// Field is one integer of an observation: 0 to Size-1. The field of a real number has Size-1
// ascending edges, and its integer is the number of edges at or below the number. If all numbers
// are equal, Edges is empty, but not nil: nil marks a field of integers.
type Field struct {
	Name  string    `json:"name"`
	Size  int       `json:"size"`
	Edges []float64 `json:"edges,omitzero"`
}

// Space describes the observations, actions and rewards of an agent.
type Space struct {
	Fields  []Field   `json:"fields"` // per observation
	Actions int       `json:"actions"`
	Rewards []float64 `json:"rewards"` // the values of a reward, ascending; a token holds the index
}

// Check returns an error if tokens cannot hold the space.
func (s Space) Check() error {
	switch {
	case len(s.Fields) < 1 || len(s.Fields) > MaxFields:
		return fmt.Errorf("%d fields of an observation: want 1 to %d", len(s.Fields), MaxFields)
	case s.Actions < 2 || s.Actions > MaxActions:
		return fmt.Errorf("%d actions: want 2 to %d", s.Actions, MaxActions)
	case len(s.Rewards) < 1 || len(s.Rewards) > MaxRewards:
		return fmt.Errorf("%d values of a reward: want 1 to %d", len(s.Rewards), MaxRewards)
	}
	names := map[string]bool{"action": true, "reward": true, "type": true, "position": true}
	for i, f := range s.Fields {
		switch {
		case f.Name == "" || names[f.Name]:
			return fmt.Errorf("field %d is called %q: want a name that no other field of a token has", i, f.Name)
		case f.Size < 1 || f.Size > MaxSize:
			return fmt.Errorf("field %s takes %d values: want 1 to %d", f.Name, f.Size, MaxSize)
		}
		if f.Edges != nil && (len(f.Edges) != f.Size-1 || !slices.IsSorted(f.Edges)) {
			return fmt.Errorf("field %s has %d values and %d edges: want one edge less, ascending", f.Name, f.Size, len(f.Edges))
		}
		names[f.Name] = true
	}
	for i, r := range s.Rewards {
		if math.IsNaN(r) || math.IsInf(r, 0) || i > 0 && r <= s.Rewards[i-1] {
			return fmt.Errorf("reward value %d is %v: want finite values in ascending order", i, r)
		}
	}
	return nil
}

// Task is a task of a world: what an agent has to find out. Tasks of a world can be compared with
// ==, and differ in their JSON.
type Task interface {
	fmt.Stringer
	json.Marshaler
}

// World is a family of tasks with the same space. Checkpoints and files store its JSON, which
// contains the kind as env.
type World interface {
	fmt.Stringer
	Name() string     // as in settings and files
	Describe() string // description for a banner
	Space() Space
	Limit() int // largest number of steps of an episode
}

// Game is a world that this program can play.
type Game interface {
	World
	Best(Task) float64 // the best return of an episode
	NewEnv(Task) Env   // for a task of this world
}

// Env plays one task. Only one goroutine may use it. It allocates nothing.
type Env interface {
	Reset()                                      // begins an episode
	Observe(fields []int32)                      // writes the observation
	Step(action int) (reward int, finished bool) // reward is an index; after finished, call Reset
}

// Seeded is an Env whose episodes have random starts. Seed(seed, life) selects the random numbers
// and begins the first episode.
type Seeded interface{ Seed(seed, life uint64) }

// Named is a world in which some values of observations differ only by name: if two of them are
// swapped in all fields of all episodes of a task, the result is a valid history of the same world.
type Named interface {
	Names() [][]int32 // sets of such values
}

// Staged is a world whose tasks have several places to find, in the same order in every episode.
// Each gives a reward. A single place may give a reward on every step that the agent stays there.
type Staged interface{ Places() int }

// Map is a world whose first two fields are a column and a row of a square, which can be drawn.
type Map interface {
	Side() int
	// Marks returns the cells to mark in a picture; key is nil if there is no key.
	Marks(Task) (goal [2]int, key *[2]int)
}
