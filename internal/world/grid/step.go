package grid

// Step is one transition: the cell before the action, the action, and the reward of the step.
// Bits 0..7 hold the cell, 8..10 the action, 11 the reward; the rest are zero.
type Step uint16

// MakeStep packs a transition.
func MakeStep(c Cell, action, reward uint8) Step {
	return Step(c) | Step(action)<<8 | Step(reward)<<11
}

// Cell returns the agent's cell before the action.
func (s Step) Cell() Cell { return Cell(s) }

// Action returns the action.
func (s Step) Action() uint8 { return uint8(s >> 8 & 7) }

// Reward returns the reward, 0 or 1.
func (s Step) Reward() uint8 { return uint8(s >> 11 & 1) }

// Word returns the transition as devices store it: x | y<<8 | action<<16 | reward<<24.
func (s Step) Word() int32 {
	w := uint32(s)
	return int32(w&15 | w>>4&15<<8 | w>>8&7<<16 | w>>11&1<<24)
}
