package model

import (
	"fmt"

	"haul/internal/kernel"
)

// A token has the fields of an observation, the last action and the last reward (-1 at the
// beginning of a history), its type and its position. Each is an index into a table, and the rows
// are summed. A marker has only type and position.
//
// The order of the fields is the order of the token embedding's tables in every checkpoint.

// Vocabulary is a field of a token with the values 0 to Size-1, or -1 for none.
type Vocabulary struct {
	Name string
	Size int
}

// Sizes returns fields of these sizes, named field0, field1 and so on.
func Sizes(sizes ...int) (out []Vocabulary) {
	for i, n := range sizes {
		out = append(out, Vocabulary{fmt.Sprint("field", i), n})
	}
	return out
}

// The fields after those of an observation, by their offset from these.
const (
	AfterAction = iota
	AfterReward
	AfterType
	AfterPosition
	afterAll
)

// TokenFields returns the number of fields of a token with `observed` fields of an observation.
func TokenFields(observed int) int { return observed + afterAll }

// The types of a token.
const (
	TypeTransition = kernel.TypeRecord
	TypeStart      = kernel.TypeStart // <compress>
	TypeEnd        = kernel.TypeEnd   // </compress>
	TokenTypes     = kernel.TokenTypes
)

// Transitions makes s sample the agent's tokens from histories. A record of a history has a byte
// for each observed field, then the action and the reward. A token holds the past, and its label is
// the action.
func Transitions(s kernel.RegionSpec, observed int) kernel.RegionSpec {
	return transitions(s, observed, false)
}

// TransitionsBoth is Transitions with tokens that also hold the observation before the last action,
// after the present one.
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
