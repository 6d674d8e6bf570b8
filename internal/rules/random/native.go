package random

import (
	"fmt"

	"haul/internal/rules"
	"haul/internal/rules/eval"
	"haul/internal/rules/native"
)

// Native is a random file as Go compiled it.
type Native struct {
	Seed  uint64
	Types []any // pointers to an Instance, a Node, a Vehicle and, if it has any, Settings
	Steps func(n int32) int32
}

// Compare walks random routes of a file natively and plainly, and returns the first difference.
func (n Native) Compare(walks int, c *Counts) error {
	p, err := rules.Compile("random.go", []byte(File(Options{Seed: n.Seed})), nil)
	if err != nil {
		return err
	}
	form, err := native.New(p, n.Types, n.Steps)
	if err != nil {
		return err
	}
	both := &rules.Compared{Form: eval.New(p), Other: form, Problem: p, Name: "the native form"}
	if err := Walk(p, both, n.Seed, walks, c, func() error { return both.Err }); err != nil {
		return fmt.Errorf("seed %d: %w", n.Seed, err)
	}
	return nil
}
