// Package world defines a world of the in-context agent: fields of integers that the agent sees,
// a number of actions, and the values that a reward takes. Network, files and evaluation read
// this declaration and know no game; the games are packages below.
//
// What a reader could break: the order of a space's fields is that of the embedding tables in
// every checkpoint, and the network knows a reward by its index in Rewards.
package world

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Limits of a space. A record holds a field in a byte.
const (
	MaxFields  = 64
	MaxSize    = 256
	MaxActions = 64
	MaxRewards = 256
)

// Field is one integer of an observation: 0 to Size-1. A field that measures a number has Size-1
// edges, ascending, and its integer is how many of them are at or below the number: none of them
// where all numbers are one, which nil Edges would not say.
type Field struct {
	Name  string    `json:"name"`
	Size  int       `json:"size"`
	Edges []float64 `json:"edges,omitzero"`
}

// Space is what an agent sees, does and is paid.
type Space struct {
	Fields  []Field   `json:"fields"` // of an observation
	Actions int       `json:"actions"`
	Rewards []float64 `json:"rewards"` // the values of a reward, ascending; a token holds the index
}

// Check refuses a space that no token can hold.
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

// Task is one of a world's: what an agent has to find out. Implementations can be compared with ==,
// and their JSON tells them apart.
type Task interface {
	fmt.Stringer
	json.Marshaler
}

// World is a family of tasks with one space. Its JSON, which names it as env, is what checkpoints
// and files keep of it.
type World interface {
	fmt.Stringer
	Name() string     // as settings and files have it
	Describe() string // in words, for a banner
	Space() Space
	Limit() int // the most steps of an episode
}

// Game is a world that this program can play.
type Game interface {
	World
	Best(Task) float64 // the best return of an episode
	NewEnv(Task) Env   // of the world's own tasks
}

// Env is one task being played. It belongs to one goroutine and allocates nothing.
type Env interface {
	Reset()                                      // begins an episode
	Observe(fields []int32)                      // writes what the agent sees
	Step(action int) (reward int, finished bool) // the reward's index; finished: call Reset next
}

// Seeded is an Env whose episodes do not all begin alike: Seed begins a life, its first episode
// included, as that seed and number say.
type Seeded interface{ Seed(seed, life uint64) }

// Named is a world in which some values of observations differ by name alone: where two of them
// swap names in all fields of a whole life, it is a life in the same world.
type Named interface {
	Names() [][]int32 // sets of such values
}

// Staged is a world whose task is so many places to find, one after the other in every episode, of
// which each pays. A single one may pay again for as long as an agent stays.
type Staged interface{ Places() int }

// Map is a world whose first two fields are a column and a row of a square, which can be drawn.
type Map interface {
	Side() int
	// Marks are the cells that a picture points at; key is nil where there is none.
	Marks(Task) (goal [2]int, key *[2]int)
}
