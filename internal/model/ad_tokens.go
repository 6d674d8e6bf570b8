package model

import (
	"fmt"

	"haul/internal/kernel"
)

// What a reader could break: the order of the fields is that of the token embedding's tables in
// every checkpoint.
//
// A token has the fields of an observation, then the last action and the last reward (-1 at a
// history's beginning), its type and its position. Each indexes a table, and the tables are summed.
// A marker has type and position alone.

// Vocabulary is a field of a token: it takes values 0 to Size-1, or -1 for none.
type Vocabulary struct {
	Name string
	Size int
}

// Sizes are fields without names of their own.
func Sizes(sizes ...int) (out []Vocabulary) {
	for i, n := range sizes {
		out = append(out, Vocabulary{fmt.Sprint("field", i), n})
	}
	return out
}

// The fields that follow those of an observation, by their distance from them.
const (
	AfterAction = iota
	AfterReward
	AfterType
	AfterPosition
	afterAll
)

// TokenFields is how many fields a token has that observes so many.
func TokenFields(observed int) int { return observed + afterAll }

// The types of a token.
const (
	TypeTransition = kernel.TypeRecord
	TypeStart      = kernel.TypeStart // <compress>
	TypeEnd        = kernel.TypeEnd   // </compress>
	TokenTypes     = kernel.TokenTypes
)

// Transitions lets s draw the agent's tokens from histories whose records are a byte for each of
// the observed fields before the action, then the action and the reward: what a token tells of the
// past, and as its label the action.
func Transitions(s kernel.RegionSpec, observed int) kernel.RegionSpec {
	return transitions(s, observed, false)
}

// TransitionsBoth is Transitions whose tokens also tell the observation before the last action,
// after that of now.
func TransitionsBoth(s kernel.RegionSpec, observed int) kernel.RegionSpec {
	return transitions(s, observed, true)
}

func transitions(s kernel.RegionSpec, observed int, both bool) kernel.RegionSpec {
	s.Record, s.Fields = (observed+2+3)/4, nil
	for i := range observed {
		s.Fields = append(s.Fields, kernel.Field{Byte: i})
	}
	for i := range observed {
		if both {
			s.Fields = append(s.Fields, kernel.Field{Byte: i, Last: true})
		}
	}
	s.Fields = append(s.Fields, kernel.Field{Byte: observed, Last: true}, kernel.Field{Byte: observed + 1, Last: true})
	s.Label = kernel.Field{Byte: observed}
	return s
}
