// Package run replays a program on CPU cores: workers, memory, shards by lanes, what a worker and
// an op that is being bound can ask for. It knows no op: families bind theirs.
package run

import (
	"fmt"

	"haul/internal/kernel"
	"haul/internal/kernel/cpu/isa"
)

// Options say how to open the CPU.
type Options struct {
	// instruction set: "avx512", "avx2", "sse", "neon", "go", in bf16 also "amx", "avx512_bf16",
	// "neon_bf16"; "": what SetVariable says, else the fastest
	Set string
	// of products with weights, and of causal attention where tiles do it: "fp32", "bf16"; "": fp32
	Precision string
	Workers   int // cores to use; 0: all, or the performance cores where there are two kinds
	// gradient sums kept apart and added by a tree, at most maxLanes; 0: 8. Part of a run's identity
	Lanes     int
	ShardRows int // rows a shard aims for; 0: 176, long instances apart. Part of a run's identity
}

// maxLanes is how many lanes a gradient may be summed in.
const maxLanes = 64

// Ops binds ops. Bind returns what a worker does for one, over its shard; Once makes the phases of
// those that run once per step.
type Ops struct {
	Bind func(b *Binder, op kernel.Op) (func(*Worker), error)
	Once func(b *Binder) error
}

// Device is the CPU. Its workers persist; runners share them, one run at a time.
type Device struct {
	ops       Ops
	Prims     *isa.Primitives
	Tiles     *isa.TileSet // of bf16; nil in fp32
	Workers   int
	Lanes     int
	shardRows int
	pool      *pool
	counters  kernel.Counters
}

// Open starts the workers of a device that binds ops so.
func Open(o Options, ops Ops) (*Device, error) {
	prims, tiles, err := isa.PickFor(o.Precision, o.Set)
	if err != nil {
		return nil, err
	}
	if o.Lanes > maxLanes {
		return nil, fmt.Errorf("open cpu: %d lanes, there is room for %d", o.Lanes, maxLanes)
	}
	if o.Workers < 0 || o.Lanes < 0 || o.ShardRows < 0 {
		return nil, fmt.Errorf("open cpu: workers %d, lanes %d and shard rows %d must not be negative", o.Workers, o.Lanes, o.ShardRows)
	}
	d := &Device{ops: ops, Prims: prims, Tiles: tiles, Workers: o.Workers, Lanes: o.Lanes, shardRows: o.ShardRows}
	if d.Workers == 0 {
		d.Workers = PerformanceCores()
	}
	if d.Lanes == 0 {
		d.Lanes = 8
	}
	d.pool = newPool(d.Workers)
	return d, nil
}

// Precision is what products with weights, and those for their gradients, round their operands to;
// causal attention by tiles too.
func (d *Device) Precision() string { return isa.PrecisionOf(d.Tiles) }

// Emulates tells whether products in bf16 are made in fp32, of numbers rounded to bf16: slower than
// in fp32 without rounding.
func (d *Device) Emulates() bool { return d.Tiles != nil && d.Tiles.Spreads }

// Name says what runs: "cpu (avx512, 2 workers)".
func (d *Device) Name() string {
	s := "s"
	if d.Workers == 1 {
		s = ""
	}
	return fmt.Sprintf("cpu (%s, %d worker%s)", isa.SetName(d.Prims, d.Tiles), d.Workers, s)
}

// ShardSize is how many instances reach the rows a shard aims for. An instance of 64 rows is enough
// for the matrix products by itself, and one at a time leaves the activations of a deep network in
// L2. Tiles are so fast that what a product costs beside them counts: they take as many instances
// as fit.
func (d *Device) ShardSize(nodes int) int {
	rows := d.shardRows
	if rows == 0 {
		rows = 176
		if nodes >= 64 && d.Tiles != nil {
			return max(1, rows/nodes)
		}
		if nodes >= 64 {
			return 1
		}
	}
	return max(1, (rows+nodes-1)/nodes)
}

// Counters counts what the device was asked to do.
func (d *Device) Counters() *kernel.Counters { return &d.counters }

// Close stops the workers.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}

// Store is one weight set: the flat buffer, and each matrix packed for products with it and with
// its transpose. Only the optimizer's phase of a step and the host between steps write it.
type Store struct {
	layout  *kernel.Layout
	Tiles   *isa.TileSet // nil: packed in fp32
	Weights []float32
	Packs   []packed    // by parameter; empty for vectors
	M, V    []float32   // trained only
	Lanes   [][]float32 // trained only: gradient sums, lane by lane
}

// packed holds a matrix in the forms that some program reads; the others are not kept up.
type packed struct {
	Forward, Transposed         []float32
	readForward, readTransposed bool
}

// storeSizes are the pieces of a weight set, in floats.
func (d *Device) storeSizes(l *kernel.Layout, train bool) []int {
	sizes := []int{l.Len}
	for _, p := range l.Params {
		if len(p.Shape) == 2 {
			forward, transposed := isa.PackSizes(d.Tiles, p.Shape[0], p.Shape[1])
			sizes = append(sizes, forward, transposed)
		}
	}
	if train {
		for range 2 + d.Lanes { // moments and gradients
			sizes = append(sizes, l.Len)
		}
	}
	return sizes
}

// StoreMemory is what NewStore will take.
func (d *Device) StoreMemory(l *kernel.Layout, train bool) int64 {
	n := int64(0)
	for _, s := range d.storeSizes(l, train) {
		n += int64(line(s))
	}
	return 4 * n
}

// Arenas is one for each worker.
func (d *Device) Arenas() int { return d.Workers }

// Kept is the shards of the longest turn.
func (d *Device) Kept(p *kernel.Program) int {
	c := cutting{shards: p.Shards(), lanes: max(1, d.Lanes/p.Share.Parts()), turns: max(1, p.Turns)}
	return c.kept()
}

// NewStore allocates a weight set.
func (d *Device) NewStore(l *kernel.Layout, train bool) (kernel.Store, error) {
	mem := newSlab(d.storeSizes(l, train)...)
	d.counters.Allocations++
	s := &Store{layout: l, Tiles: d.Tiles, Weights: mem.take(l.Len), Packs: make([]packed, len(l.Params))}
	for i, p := range l.Params {
		if len(p.Shape) == 2 {
			forward, transposed := isa.PackSizes(d.Tiles, p.Shape[0], p.Shape[1])
			s.Packs[i] = packed{Forward: mem.take(forward), Transposed: mem.take(transposed)}
		}
	}
	if train {
		s.M, s.V = mem.take(l.Len), mem.take(l.Len)
		s.Lanes = make([][]float32, d.Lanes)
		for i := range s.Lanes {
			s.Lanes[i] = mem.take(l.Len)
		}
	}
	return s, nil
}

// Pack refreshes the packed forms of parameter i that are read.
func (s *Store) Pack(i int) {
	p, k := s.layout.Params[i], &s.Packs[i]
	w := s.Weights[p.Offset:][:p.Len()]
	if k.readForward {
		isa.PackForward(s.Tiles, k.Forward, w, p.Shape[0], p.Shape[1])
	}
	if k.readTransposed {
		isa.PackTransposed(s.Tiles, k.Transposed, w, p.Shape[0], p.Shape[1])
	}
}

// Forward is the matrix at offset packed for products with it, kept up from here on.
func (s *Store) Forward(offset int) []float32 {
	i := s.index(offset)
	s.Packs[i].readForward = true
	s.Pack(i)
	return s.Packs[i].Forward
}

// Transposed is the matrix at offset packed for products with its transpose, kept up from here on.
func (s *Store) Transposed(offset int) []float32 {
	i := s.index(offset)
	s.Packs[i].readTransposed = true
	s.Pack(i)
	return s.Packs[i].Transposed
}

// index finds the parameter that starts at offset.
func (s *Store) index(offset int) int {
	for i, p := range s.layout.Params {
		if p.Offset == offset {
			return i
		}
	}
	panic("cpu: no parameter at this offset")
}

// ReadWeights copies the flat buffer out.
func (s *Store) ReadWeights(dst []float32) error { return copyAll(dst, s.Weights) }

// WriteWeights replaces the flat buffer and packs it.
func (s *Store) WriteWeights(src []float32) error {
	if err := copyAll(s.Weights, src); err != nil {
		return err
	}
	for i := range s.Packs {
		s.Pack(i)
	}
	return nil
}

// ReadMoments copies the optimizer's moments out.
func (s *Store) ReadMoments(m, v []float32) error {
	if err := copyAll(m, s.M); err != nil {
		return err
	}
	return copyAll(v, s.V)
}

// WriteMoments replaces the optimizer's moments.
func (s *Store) WriteMoments(m, v []float32) error {
	if err := copyAll(s.M, m); err != nil {
		return err
	}
	return copyAll(s.V, v)
}

// CopyWeights takes another CPU store's weights.
func (s *Store) CopyWeights(from kernel.Store) error {
	f, ok := from.(*Store)
	if !ok {
		return fmt.Errorf("copy weights: the other store is not on the CPU")
	}
	return s.WriteWeights(f.Weights)
}

// Close leaves the memory to the collector.
func (s *Store) Close() error {
	s.Weights, s.Packs, s.M, s.V, s.Lanes = nil, nil, nil, nil, nil
	return nil
}

func (s *Store) memory() int64 {
	n := len(s.Weights) + len(s.M) + len(s.V) + len(s.Lanes)*s.layout.Len
	for _, p := range s.Packs {
		n += len(p.Forward) + len(p.Transposed)
	}
	return int64(n) * 4
}

func copyAll(dst, src []float32) error {
	if len(dst) != len(src) {
		return fmt.Errorf("copy weights: %d elements into %d", len(src), len(dst))
	}
	copy(dst, src)
	return nil
}
