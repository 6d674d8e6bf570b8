package cpu

import (
	"fmt"
	"os"
	"unsafe"

	"haul/internal/kernel"
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

// Device is the CPU. Its workers persist; runners share them, one run at a time.
type Device struct {
	prims     *primitives
	tiles     *tileSet // of bf16; nil in fp32
	workers   int
	lanes     int
	shardRows int
	pool      *pool
	counters  kernel.Counters
}

// Open starts the workers.
func Open(o Options) (*Device, error) {
	prims, tiles, err := pickFor(o.Precision, o.Set)
	if err != nil {
		return nil, err
	}
	if o.Lanes > maxLanes {
		return nil, fmt.Errorf("open cpu: %d lanes, there is room for %d", o.Lanes, maxLanes)
	}
	if o.Workers < 0 || o.Lanes < 0 || o.ShardRows < 0 {
		return nil, fmt.Errorf("open cpu: workers %d, lanes %d and shard rows %d must not be negative", o.Workers, o.Lanes, o.ShardRows)
	}
	d := &Device{prims: prims, tiles: tiles, workers: o.Workers, lanes: o.Lanes, shardRows: o.ShardRows}
	if d.workers == 0 {
		d.workers = PerformanceCores()
	}
	if d.lanes == 0 {
		d.lanes = 8
	}
	d.pool = newPool(d.workers)
	return d, nil
}

// pickFor is pick for products in that precision, of the environment's set where none is named;
// there are no tiles in fp32.
func pickFor(precision, set string) (p *primitives, tiles *tileSet, err error) {
	by := ""
	if forced := os.Getenv(SetVariable); set == "" && forced != "" {
		set, by = forced, SetVariable+": "
	}
	switch precision {
	case "", "fp32":
		p, err = pick(set)
	case "bf16":
		p, tiles, err = pickTiles(set)
	default:
		return nil, nil, fmt.Errorf("a CPU has no precision %s: use fp32 or bf16", precision)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s%w", by, err)
	}
	return p, tiles, nil
}

// Precision is what products with weights, and those for their gradients, round their operands to;
// causal attention by tiles too.
func (d *Device) Precision() string { return precisionOf(d.tiles) }

// Emulates tells whether products in bf16 are made in fp32, of numbers rounded to bf16: slower than
// in fp32 without rounding.
func (d *Device) Emulates() bool { return d.tiles != nil && d.tiles.spreads }

func precisionOf(t *tileSet) string {
	if t != nil {
		return "bf16"
	}
	return "fp32"
}

// setName is the instruction set that the products of weights run on.
func setName(p *primitives, t *tileSet) string {
	if t == nil || t.set == "" {
		return p.name
	}
	return t.name
}

// Name says what runs: "cpu (avx512, 2 workers)".
func (d *Device) Name() string {
	s := "s"
	if d.workers == 1 {
		s = ""
	}
	return fmt.Sprintf("cpu (%s, %d worker%s)", setName(d.prims, d.tiles), d.workers, s)
}

// ShardSize is how many instances reach the rows a shard aims for. An instance of 64 rows is enough
// for the matrix products by itself, and one at a time leaves the activations of a deep network in
// L2. Tiles are so fast that what a product costs beside them counts: they take as many instances
// as fit.
func (d *Device) ShardSize(nodes int) int {
	rows := d.shardRows
	if rows == 0 {
		rows = 176
		if nodes >= 64 && d.tiles != nil {
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

// store is one weight set: the flat buffer, and each matrix packed for products with it and with
// its transpose. Only the optimizer's phase of a step and the host between steps write it.
type store struct {
	layout  *kernel.Layout
	tiles   *tileSet // nil: packed in fp32
	weights []float32
	packs   []packed    // by parameter; empty for vectors
	m, v    []float32   // trained only
	lanes   [][]float32 // trained only: gradient sums, lane by lane
}

// packed holds a matrix in the forms that some program reads; the others are not kept up.
type packed struct {
	forward, transposed         []float32
	readForward, readTransposed bool
}

// storeSizes are the pieces of a weight set, in floats.
func (d *Device) storeSizes(l *kernel.Layout, train bool) []int {
	sizes := []int{l.Len}
	for _, p := range l.Params {
		if len(p.Shape) == 2 {
			forward, transposed := packSizes(d.tiles, p.Shape[0], p.Shape[1])
			sizes = append(sizes, forward, transposed)
		}
	}
	if train {
		for range 2 + d.lanes { // moments and gradients
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
func (d *Device) Arenas() int { return d.workers }

// Kept is the shards of the longest turn.
func (d *Device) Kept(p *kernel.Program) int {
	c := cutting{shards: p.Shards(), lanes: max(1, d.lanes/p.Share.Parts()), turns: max(1, p.Turns)}
	return c.kept()
}

// NewStore allocates a weight set.
func (d *Device) NewStore(l *kernel.Layout, train bool) (kernel.Store, error) {
	mem := newSlab(d.storeSizes(l, train)...)
	d.counters.Allocations++
	s := &store{layout: l, tiles: d.tiles, weights: mem.take(l.Len), packs: make([]packed, len(l.Params))}
	for i, p := range l.Params {
		if len(p.Shape) == 2 {
			forward, transposed := packSizes(d.tiles, p.Shape[0], p.Shape[1])
			s.packs[i] = packed{forward: mem.take(forward), transposed: mem.take(transposed)}
		}
	}
	if train {
		s.m, s.v = mem.take(l.Len), mem.take(l.Len)
		s.lanes = make([][]float32, d.lanes)
		for i := range s.lanes {
			s.lanes[i] = mem.take(l.Len)
		}
	}
	return s, nil
}

// pack refreshes the packed forms of parameter i that are read.
func (s *store) pack(i int) {
	p, k := s.layout.Params[i], &s.packs[i]
	w := s.weights[p.Offset:][:p.Len()]
	if k.readForward {
		packForward(s.tiles, k.forward, w, p.Shape[0], p.Shape[1])
	}
	if k.readTransposed {
		packTransposed(s.tiles, k.transposed, w, p.Shape[0], p.Shape[1])
	}
}

// forward is the matrix at offset packed for products with it, kept up from here on.
func (s *store) forward(offset int) []float32 {
	i := s.index(offset)
	s.packs[i].readForward = true
	s.pack(i)
	return s.packs[i].forward
}

// transposed is the matrix at offset packed for products with its transpose, kept up from here on.
func (s *store) transposed(offset int) []float32 {
	i := s.index(offset)
	s.packs[i].readTransposed = true
	s.pack(i)
	return s.packs[i].transposed
}

// index finds the parameter that starts at offset.
func (s *store) index(offset int) int {
	for i, p := range s.layout.Params {
		if p.Offset == offset {
			return i
		}
	}
	panic("cpu: no parameter at this offset")
}

// ReadWeights copies the flat buffer out.
func (s *store) ReadWeights(dst []float32) error { return copyAll(dst, s.weights) }

// WriteWeights replaces the flat buffer and packs it.
func (s *store) WriteWeights(src []float32) error {
	if err := copyAll(s.weights, src); err != nil {
		return err
	}
	for i := range s.packs {
		s.pack(i)
	}
	return nil
}

// ReadMoments copies the optimizer's moments out.
func (s *store) ReadMoments(m, v []float32) error {
	if err := copyAll(m, s.m); err != nil {
		return err
	}
	return copyAll(v, s.v)
}

// WriteMoments replaces the optimizer's moments.
func (s *store) WriteMoments(m, v []float32) error {
	if err := copyAll(s.m, m); err != nil {
		return err
	}
	return copyAll(s.v, v)
}

// CopyWeights takes another CPU store's weights.
func (s *store) CopyWeights(from kernel.Store) error {
	f, ok := from.(*store)
	if !ok {
		return fmt.Errorf("copy weights: the other store is not on the CPU")
	}
	return s.WriteWeights(f.weights)
}

// Close leaves the memory to the collector.
func (s *store) Close() error {
	s.weights, s.packs, s.m, s.v, s.lanes = nil, nil, nil, nil, nil
	return nil
}

func (s *store) memory() int64 {
	n := len(s.weights) + len(s.m) + len(s.v) + len(s.lanes)*s.layout.Len
	for _, p := range s.packs {
		n += len(p.forward) + len(p.transposed)
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

// ints views floats as integers of the same width.
func ints(f []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(f))), len(f))
}
