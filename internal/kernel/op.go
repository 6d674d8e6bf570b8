package kernel

// Access says how an op uses a tensor.
type Access uint8

// The accesses. Update reads and writes; a Write may leave no element of the tensor as it was.
const (
	Read Access = iota
	Write
	Update
)

// Cost is what an op does once for one shard: floating-point operations (a multiply-add is two) and
// the fewest bytes it must move (each input read once, each output written once).
type Cost struct {
	FLOPs, Bytes int64
}

// Op is one fused operation as data. Backends switch on the concrete type.
type Op interface {
	Kind() string
	Args(visit func(t *Tensor, a Access))
	Cost() Cost
}

// bytesOf adds up the four-byte elements of every tensor an op touches, an update counting twice.
func bytesOf(op Op) int64 {
	var n int64
	op.Args(func(t *Tensor, a Access) {
		n += int64(t.Len()) * 4
		if a == Update {
			n += int64(t.Len()) * 4
		}
	})
	return n
}

// HalvedBytes is how much less an op moves where its Compact tensors are held in two bytes an element.
func HalvedBytes(op Op) int64 {
	var n int64
	op.Args(func(t *Tensor, a Access) {
		if t.Root().Compact {
			n += int64(t.Len()) * 2
			if a == Update {
				n += int64(t.Len()) * 2
			}
		}
	})
	return n
}

// Program is a recorded step: ops in order, run once a shard, then ops run once a step. It holds
// shapes and places, no memory. Where the last shard is partly idle a device may compute the rows past
// the batch's end or skip them; either way they add nothing to any gradient or metric.
type Program struct {
	Name     string
	Batch    int // instances in a step
	Shard    int // instances in a shard; a last shard may be partly idle
	PerShard []Op
	Once     []Op
	Tensors  []*Tensor // every root tensor, by ID
	ShardLen int       // elements of one shard's activations
	Layout   *Layout
	Sets     int // weight sets the program reads
}

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

// visit calls f for every tensor that is not nil.
func visit(f func(*Tensor, Access), a Access, ts ...*Tensor) {
	for _, t := range ts {
		if t != nil {
			f(t, a)
		}
	}
}
