package world

// A record is a transition as devices keep it: a byte for each field of the observation before the
// action, one for the action and one for the reward's index, in whole words of four bytes, the
// lowest byte first.

// Words is how many words a record of the space takes.
func (s Space) Words() int { return (len(s.Fields) + 2 + 3) / 4 }
