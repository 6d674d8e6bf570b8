package kernel

import (
	"fmt"
	"slices"
)

// Program is a recorded step: ops in order, run once per shard, then ops run once per step. It
// holds shapes and places, no memory. Where the last shard is partly idle a device may compute the
// rows past the batch's end or skip them; either way they add nothing to any gradient or metric.
type Program struct {
	Name     string
	Batch    int // instances per step, of this process where several share it
	Shard    int // instances per shard; a last shard may be partly idle
	PerShard []Op
	Once     []Op
	Tensors  []*Tensor // every root tensor, by ID
	ShardLen int       // elements of one shard's activations
	Layout   *Layout
	Sets     int // weight sets the program reads
	Share    Share
	// Turns lets a device with shards run a step in so many turns, each of which has a run of every
	// lane's shards: Batch tensors then hold the rows of one turn, and nobody reads them after the
	// step. No bit of the update depends on it. 0 and 1: one.
	Turns int
}

// Share says which part of every step a process runs: part Rank of Size equal ones. The zero Share
// is the whole step. Where Cuts is more than 0 a step is that many cuts of Program.Batch instances,
// whoever runs them: a process has a run of whole ones and runs them one after another, and all are
// added up by the tree, so that the gradient's bits do not depend on the number of processes. Else
// each process's part is one cut.
type Share struct{ Rank, Size, Cuts int }

// Parts is how many processes share the step, at least 1.
func (s Share) Parts() int { return max(1, s.Size) }

// Runs is how many cuts of a step this process runs.
func (s Share) Runs() int { return max(1, s.Cuts/s.Parts()) }

// Piece is what of n weights, cut in whole units, this process updates: [from, to). It may be empty
// where units are few.
func (s Share) Piece(n, unit int) (from, to int) {
	units := (n + unit - 1) / unit
	return min(n, s.Rank*units/s.Parts()*unit), min(n, (s.Rank+1)*units/s.Parts()*unit)
}

// Total is the instances of a step over all processes that share it.
func (p *Program) Total() int { return p.Batch * p.Share.Parts() * p.Share.Runs() }

// First is the place of this process's first instance within the step.
func (p *Program) First() int { return p.Batch * p.Share.Runs() * p.Share.Rank }

// Shards is the number of shards in a step.
func (p *Program) Shards() int { return (p.Batch + p.Shard - 1) / p.Shard }

// Cost sums the ops over a whole batch.
func (p *Program) Cost() Cost {
	var sum Cost
	for _, op := range p.PerShard {
		c := op.Cost()
		sum.FLOPs += c.FLOPs * int64(p.Shards())
		sum.Bytes += c.Bytes * int64(p.Shards())
	}
	for _, op := range p.Once {
		c := op.Cost()
		sum.FLOPs += c.FLOPs
		sum.Bytes += c.Bytes
	}
	return sum
}

// Sums names what the program adds up, in the order of its ops.
func (p *Program) Sums() (names []string) {
	for _, op := range p.Once {
		if t, ok := op.(*Tally); ok {
			for _, s := range t.Sums {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Coefficients names what the program's ops read of the control block, each once, in the order of
// the ops.
func (p *Program) Coefficients() (names []string) {
	for _, op := range slices.Concat(p.PerShard, p.Once) {
		if t, ok := op.(Tuned); ok {
			for _, name := range t.Coefficients() {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// Scalars are the tensors that State carries, in order: Offset is a scalar's place.
func (p *Program) Scalars() (out []*Tensor) {
	for _, t := range p.Tensors {
		if t.Space == Scalar {
			out = append(out, t)
		}
	}
	return out
}

// Exchanges tells whether something stands between the reduction of the gradient and its use.
func (p *Program) Exchanges() bool {
	return slices.ContainsFunc(p.Once, func(op Op) bool { _, ok := op.(*Exchange); return ok })
}

// Check says in one line what no device could run.
func (p *Program) Check() error {
	for _, has := range []struct {
		what  string
		names []string
		most  int
	}{{"sum", p.Sums(), MaxSums}, {"coefficient", p.Coefficients(), MaxCoefficients}, {"scalar", p.scalarNames(), MaxScalars}} {
		if len(has.names) > has.most {
			return fmt.Errorf("compile %s: %d %ss, there is room for %d", p.Name, len(has.names), has.what, has.most)
		}
		for i, name := range has.names {
			if name == "" || slices.Contains(has.names[:i], name) {
				return fmt.Errorf("compile %s: %s %q has no name or is there twice", p.Name, has.what, name)
			}
		}
	}
	for i, t := range p.Scalars() {
		if t.Offset != i || t.Type != F64 || t.Len() != 1 {
			return fmt.Errorf("compile %s: %v is no scalar at place %d", p.Name, t, i)
		}
	}
	return p.checkOnce()
}

// checkOnce holds the optimizer's ops to their order and tallies to tensors that fit each other.
func (p *Program) checkOnce() error {
	reduced := false
	for _, op := range p.Once {
		switch o := op.(type) {
		case *Reduce:
			if reduced {
				return fmt.Errorf("compile %s: the gradient is reduced twice", p.Name)
			}
			reduced = true
		case *Tally:
			columns := o.Columns()
			for _, t := range o.tensors() {
				if t.Space != Batch || t.Cols() != 1 && t.Cols() != columns || len(t.Shape) != 2 {
					return fmt.Errorf("compile %s: %s of %v: want a batch tensor of 1 or %d columns", p.Name, o.Kind(), t, columns)
				}
			}
		case Flat:
			if !reduced {
				return fmt.Errorf("compile %s: %s without a reduced gradient before it", p.Name, op.Kind())
			}
		}
	}
	return nil
}

func (p *Program) scalarNames() (names []string) {
	for _, t := range p.Scalars() {
		names = append(names, t.Name)
	}
	return names
}

// Values sorts what is given by name into the places of names; a name that is not there is an
// error, a place that is not given 0.
func Values[F float32 | float64](what string, names []string, given map[string]F) ([]F, error) {
	out := make([]F, len(names))
	for name, v := range given {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("the program has no %s %q; it has %q", what, name, names)
		}
		out[i] = v
	}
	return out, nil
}

// Named is the reverse of Values; nil for no values.
func Named[F float32 | float64](names []string, values []F) map[string]F {
	if len(names) == 0 {
		return nil
	}
	out := make(map[string]F, len(names))
	for i, name := range names {
		out[name] = values[i]
	}
	return out
}
