package world

// A record is a transition as devices store it: one byte per field of the observation before the
// action, one for the action and one for the index of the reward. It is padded to whole words of
// four bytes, lowest byte first.

// Words returns the number of words of a record of the space.
func (s Space) Words() int { return (len(s.Fields) + 2 + 3) / 4 }
