// Package comm connects the ranks of a training run: processes that train the same weights, each
// on its shard of every step. cmd/haul opens a World from the launcher's variables (Detect, Open).
// internal/run and the recipes exchange gradients and results over it. MPI and NCCL are opened at
// run time, so that the program does not link them.
//
// All ranks call the same collectives in the same order, from the goroutine that drives the run.
// Settings, interruptions and errors change that order: ranks agree on them first (Agree, Stop).
// The sum over ranks continues the binary tree (kernel.Tree) in which a rank adds up its own
// gradients, so that the bits do not depend on the number of ranks.
//
// A nil World is a single process: it opens no library, and its collectives return at once.
package comm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"haul/internal/kernel"
)

// links move bytes between ranks. All ranks call the same methods in the same order, with the same
// sizes.
type links interface {
	name() string
	// scatter sends bytes cuts[r] to cuts[r+1] of send to each rank r. The piece of this rank that
	// rank r sent is stored in recv at r times the length of the piece; the piece from this rank
	// itself is not copied.
	scatter(recv, send unsafe.Pointer, cuts []int32) error
	// complete copies each rank's piece of p, bytes cuts[r] to cuts[r+1], into p of all ranks.
	complete(p unsafe.Pointer, cuts []int32) error
	// allgather stores one block of each rank in recv, in the order of the ranks.
	allgather(recv, send unsafe.Pointer, block int) error
	broadcast(p unsafe.Pointer, bytes int) error // from rank 0
	// do runs f on the thread from which the methods above must be called.
	do(f func() error) error
	close() error
}

// World is the set of ranks of a run, as one rank sees it. It embeds the Place of this rank.
type World struct {
	Place
	links links
	gpu   carrier // exchanges gradients between GPUs; nil: they pass through host memory
	why   string  // why GPUs have no carrier; "" without GPUs
	fixed bool    // gradients are gathered and then added up by the tree, not by NCCL
	watch *watch  // nil in tests within a process, and if HAUL_WATCH is off

	asked      atomic.Bool // this rank received a request to stop the run
	cancel     context.CancelCauseFunc
	soon       context.Context // ends when this rank receives a request to stop
	mu         sync.Mutex      // guards cancelSoon, which the watch's goroutines call
	cancelSoon context.CancelFunc
	next       int // number of the update after which ranks next decide whether to stop
	every      int
	last       time.Time

	pending               pending // arguments of the exchange in progress
	doScatter, doComplete func() error
	cuts                  []int32     // start of each rank's piece, in bytes, and the end of the last
	parts                 [][]float32 // by rank: its gradient of the piece that this rank updates
	recv                  []float32   // receives the parts of other ranks
	sums                  []float64

	stats Stats
}

// Stats counts the exchanges of gradients by this rank.
type Stats struct {
	Exchanges int64         `json:"exchanges"`
	Bytes     int64         `json:"bytes"` // sent by this rank
	Time      time.Duration `json:"-"`     // the goroutine that drives the run waited
}

func newWorld(p Place, l links) *World {
	w := &World{Place: p, links: l, every: 1, cuts: make([]int32, p.Size+1), parts: make([][]float32, p.Size)}
	w.doScatter, w.doComplete = w.runScatter, w.runComplete
	return w
}

// Number returns the rank of this process, 0 for a nil World.
func (w *World) Number() int {
	if w == nil {
		return 0
	}
	return w.Rank
}

// Ranks returns the number of processes, 1 for a nil World.
func (w *World) Ranks() int {
	if w == nil {
		return 1
	}
	return w.Size
}

// Share returns which part of every step this process runs.
func (w *World) Share() kernel.Share {
	if w == nil {
		return kernel.Share{}
	}
	return kernel.Share{Rank: w.Rank, Size: w.Size}
}

// Peer returns the world as the peer of a plan, or nil for a nil World.
func (w *World) Peer() kernel.Peer {
	if w == nil {
		return nil
	}
	return w
}

// String describes ranks and libraries: "4 ranks, started by mpirun, over Open MPI 4.1.4".
func (w *World) String() string {
	over := w.links.name()
	switch {
	case w.gpu != nil && w.fixed:
		over = fmt.Sprintf("%s inside the graph, parts added up by the tree: bits do not depend on the number of ranks; words over %s", w.gpu.name(), over)
	case w.gpu != nil:
		over = fmt.Sprintf("%s inside the graph, in the library's order: bits depend on the number of ranks; words over %s", w.gpu.name(), over)
	case w.why != "":
		over += ", gradients through page-locked memory (" + w.why + ")"
	}
	return fmt.Sprintf("%d ranks, started by %s, over %s", w.Size, w.Launcher, over)
}

// carrier is a library that exchanges gradients between GPUs.
type carrier interface{ name() string }

// CloseNCCL ends the communication between GPUs. It must be called after the programs of the run
// are closed and before the GPU is closed.
func (w *World) CloseNCCL() error {
	if w == nil {
		return nil
	}
	return w.closeNCCL()
}

// Stats returns the counts of the exchanges so far.
func (w *World) Stats() Stats { return w.stats }

// Sum replaces v by its sum over all ranks, added up by the tree.
func (w *World) Sum(v []float64) error {
	if w == nil {
		return nil
	}
	if len(w.sums) < len(v)*w.Size {
		w.sums = make([]float64, len(v)*w.Size)
	}
	all := w.sums[:len(v)*w.Size]
	err := w.links.do(func() error {
		return w.links.allgather(unsafe.Pointer(unsafe.SliceData(all)), unsafe.Pointer(unsafe.SliceData(v)), 8*len(v))
	})
	kernel.Tree(w.Size, nil, func(into, from int) {
		for i := range v {
			all[into*len(v)+i] += all[from*len(v)+i]
		}
	})
	copy(v, all)
	return w.wrap("add numbers up", err)
}

// Broadcast returns rank 0's bytes on every rank. It ignores the argument of other ranks.
func (w *World) Broadcast(own []byte) ([]byte, error) {
	if w == nil {
		return own, nil
	}
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(own)))
	err := w.links.do(func() error {
		if err := w.links.broadcast(unsafe.Pointer(&size), 8); err != nil {
			return err
		}
		if n := int(binary.LittleEndian.Uint64(size[:])); w.Rank > 0 {
			own = make([]byte, n)
		}
		const most = 1 << 30 // counts are 32 bits wide
		for at := 0; at < len(own); at += most {
			if err := w.links.broadcast(unsafe.Pointer(&own[at]), min(most, len(own)-at)); err != nil {
				return err
			}
		}
		return nil
	})
	return own, w.wrap("broadcast", err)
}

// Gather returns the bytes of every rank, in the order of the ranks.
func (w *World) Gather(own []byte) ([][]byte, error) {
	if w == nil {
		return [][]byte{own}, nil
	}
	size, sizes := []int64{int64(len(own))}, make([]int64, w.Size)
	var all []byte
	longest := 0
	err := w.links.do(func() error {
		if err := w.links.allgather(unsafe.Pointer(&sizes[0]), unsafe.Pointer(&size[0]), 8); err != nil {
			return err
		}
		for _, s := range sizes {
			longest = max(longest, int(s))
		}
		if longest == 0 {
			return nil
		}
		padded := make([]byte, longest)
		copy(padded, own)
		all = make([]byte, longest*w.Size)
		return w.links.allgather(unsafe.Pointer(&all[0]), unsafe.Pointer(&padded[0]), longest)
	})
	if err != nil {
		return nil, w.wrap("gather", err)
	}
	out := make([][]byte, w.Size)
	for r := range out {
		out[r] = all[r*longest:][:sizes[r]]
	}
	return out, nil
}

// Barrier waits until all ranks have called it.
func (w *World) Barrier() error {
	_, err := w.Gather(nil)
	return err
}

func (w *World) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rank %d of %d: %s: %w", w.Rank, w.Size, what, err)
}

// Close waits for all ranks and then closes the libraries. A run that failed calls Fail instead.
func (w *World) Close() error {
	if w == nil {
		return nil
	}
	err := w.Barrier()
	if w.watch != nil {
		w.watch.leave()
	}
	return errors.Join(err, w.links.close())
}

// Fail notifies the other ranks that this rank ends with an error, so that none of them waits for
// it. The process must exit afterwards.
func (w *World) Fail(err error) {
	switch {
	case w == nil:
	case w.watch != nil:
		w.watch.fail(err)
	default:
		if l, ok := w.links.(*local); ok {
			l.hub.fail()
		}
	}
}

func ptr(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }

var errStop = errors.New("a rank was asked to stop")

// Agree returns a context that ends on all ranks after the same update. Only Stop and Collect
// check for requests of other ranks and end it.
func (w *World) Agree(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w.cancel = cancel
	soon, cancelSoon := context.WithCancel(own)
	w.soon = soon
	w.mu.Lock()
	w.cancelSoon = cancelSoon
	w.mu.Unlock()
	if w.Asked() { // a request arrived before cancelSoon was set
		cancelSoon()
	}
	context.AfterFunc(ctx, w.ask)
	return own
}

// ask asks all ranks to stop.
func (w *World) ask() {
	if w.asked.Swap(true) {
		return
	}
	w.mu.Lock()
	if w.cancelSoon != nil {
		w.cancelSoon()
	}
	w.mu.Unlock()
	if w.watch != nil {
		w.watch.stop()
	}
}

// Soon replaces ctx for long work of one rank without collectives: it ends as soon as this rank
// receives a request to stop. The caller then passes stopped to Collect.
func (w *World) Soon(ctx context.Context) context.Context {
	if w == nil || w.soon == nil {
		return ctx
	}
	return w.soon
}

// Asked reports whether this rank received a request to stop. Other ranks may not have it yet.
func (w *World) Asked() bool { return w != nil && w.asked.Load() }

// askEvery is the time between two decisions on whether to stop.
const askEvery = 10 * time.Millisecond

// askAfter returns the number of updates until the next decision. The last `updates` took `took`.
func askAfter(updates int, took time.Duration) int {
	switch {
	case took > 2*askEvery:
		return max(1, updates/2)
	case took < askEvery:
		return min(1024, updates*2)
	}
	return updates
}

// Stop reports, after `done` updates, whether all ranks end here, and then ends the context of
// Agree. Rank 0 decides, and also chooses after how many updates the ranks decide again.
func (w *World) Stop(ctx context.Context, done int) (bool, error) {
	if w == nil {
		return ctx.Err() != nil, nil
	}
	if ctx.Err() != nil || done < w.next {
		return ctx.Err() != nil, nil
	}
	now := time.Now()
	if w.Rank == 0 {
		w.every = askAfter(w.every, now.Sub(w.last))
	}
	w.last = now
	word := [2]int64{int64(w.every), 0}
	if w.asked.Load() {
		word[1] = 1
	}
	err := w.links.do(func() error { return w.links.broadcast(unsafe.Pointer(&word), 16) })
	if err != nil {
		return false, w.wrap("ask whether to go on", err)
	}
	w.next = done + int(word[0])
	if word[1] != 0 {
		w.cancel(errStop)
	}
	return ctx.Err() != nil, nil
}

// Cut partitions n pieces of work among the ranks. This rank has pieces [from, to).
func (w *World) Cut(n int) (from, to int) {
	return w.Number() * n / w.Ranks(), (w.Number() + 1) * n / w.Ranks()
}

// Collect gathers the results of work that Cut partitioned: own holds the numbers of this rank, all
// receives those of every rank, in the order of the ranks. If stopped is true on some rank, all
// ranks return an error and the context of Agree ends.
func (w *World) Collect(all, own []float64, stopped bool) error {
	if w == nil {
		copy(all, own)
		if stopped {
			return context.Canceled
		}
		return nil
	}
	text := make([]byte, 1, 1+8*len(own))
	if stopped {
		text[0] = 1
		own = nil
	}
	for _, v := range own {
		text, _ = binary.Append(text, binary.LittleEndian, v)
	}
	parts, err := w.Gather(text)
	if err != nil {
		return err
	}
	at := 0
	for _, p := range parts {
		if p[0] != 0 {
			w.cancel(errStop)
			return context.Canceled
		}
		end := at + (len(p)-1)/8
		if end > len(all) {
			return errors.New("ranks made more than was shared out")
		}
		if _, err := binary.Decode(p[1:], binary.LittleEndian, all[at:end]); err != nil {
			return err
		}
		at = end
	}
	if at != len(all) {
		return fmt.Errorf("ranks made %d numbers of %d", at, len(all))
	}
	return nil
}
