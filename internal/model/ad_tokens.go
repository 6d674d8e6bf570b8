package model

import "haul/internal/kernel"

// What a reader could break: the order of the fields is that of the token embedding's tables in
// every checkpoint.

// The fields of the agent's token, by place: the tables that are summed. A marker has type and
// position alone.
const (
	FieldX = iota
	FieldY
	FieldAction // the last action; -1 at a history's beginning
	FieldReward // the last reward, 0 or 1; likewise
	FieldType
	FieldPosition
	TokenFields
)

// The types of a token.
const (
	TypeTransition = kernel.TypeRecord
	TypeStart      = kernel.TypeStart // <compress>
	TypeEnd        = kernel.TypeEnd   // </compress>
	TokenTypes     = kernel.TokenTypes
)

// Transitions lets s draw the agent's tokens from histories whose records are x | y<<8 | action<<16
// | reward<<24, with x and y those before the action: what a token tells of the past, and as its
// label the action.
func Transitions(s kernel.RegionSpec) kernel.RegionSpec {
	s.Fields = []kernel.Field{{Byte: 0}, {Byte: 1}, {Byte: 2, Last: true}, {Byte: 3, Last: true}}
	s.Label = kernel.Field{Byte: 2}
	return s
}
