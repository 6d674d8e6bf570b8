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

// Tuned is an op that reads coefficients of the control block, by name.
type Tuned interface {
	Op
	Coefficients() []string
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

// HalvedBytes is how much less an op moves where its Compact tensors are held in two bytes an
// element.
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

// visit calls f for every tensor that is not nil.
func visit(f func(*Tensor, Access), a Access, ts ...*Tensor) {
	for _, t := range ts {
		if t != nil {
			f(t, a)
		}
	}
}
