// Package comm connects the ranks of a run: processes that train the same weights, each on its
// share of every step. It reads a process's rank from the launcher's variables, opens MPI or
// NCCL at run time, and sums gradients in a fixed order.
//
// What a reader could break: all ranks call collectives in the same order, from the goroutine
// that drives the run. Whatever decides that order (settings, an interruption, an error) must be
// agreed on first: see Agree and Stop. The sum over ranks continues kernel.Tree from where a
// rank's own lanes left it, so any number of ranks gives the bits of one process.
//
// A nil World is a single process: it opens no library and waits for nobody.
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

// links carry bytes between ranks. All ranks call the same method with the same sizes at the same
// time.
type links interface {
	name() string
	// scatter sends rank r its piece of send. Rank r's piece is bytes cuts[r] to cuts[r+1]; what rank
	// r sent comes to recv at r times the length of this rank's piece, whose own bytes stay where they
	// are.
	scatter(recv, send unsafe.Pointer, cuts []int32) error
	// complete brings everybody's piece of p, cut likewise, to its place in everybody's p.
	complete(p unsafe.Pointer, cuts []int32) error
	// allgather sends one block to everybody.
	allgather(recv, send unsafe.Pointer, block int) error
	broadcast(p unsafe.Pointer, bytes int) error // from rank 0
	// do runs f on the thread that the calls above must come from.
	do(f func() error) error
	close() error
}

// World is the ranks of a run as one of them sees it.
type World struct {
	Place
	links links
	cards carrier // what carries gradients between GPUs; nil where they cross through the host
	why   string  // what carries none, though ranks have GPUs; "" where none is wanted
	fixed bool    // cards' gradients are gathered, and added up by the tree
	watch *watch  // nil in tests of one process

	asked  atomic.Bool // somebody wants the run to stop
	cancel context.CancelCauseFunc
	soon   context.Context // ends when this rank hears that somebody wants the run to stop
	mu     sync.Mutex      // guards hurry, which the watch calls
	hurry  context.CancelFunc
	next   int // the update after which ranks ask each other next
	every  int
	last   time.Time

	pending               pending // the exchange under way
	doScatter, doComplete func() error
	cuts                  []int32     // of its pieces, in bytes
	parts                 [][]float32 // by rank, of this rank's piece
	recv                  []float32   // where the others' come to
	sums                  []float64

	stats Stats
}

// Stats are what the exchanges of gradients have cost this rank.
type Stats struct {
	Exchanges int64         `json:"exchanges"`
	Bytes     int64         `json:"bytes"` // that left this rank
	Time      time.Duration `json:"-"`     // of the driving goroutine: nothing else ran on it meanwhile
}

func newWorld(p Place, l links) *World {
	w := &World{Place: p, links: l, every: 1, cuts: make([]int32, p.Size+1), parts: make([][]float32, p.Size)}
	w.doScatter, w.doComplete = w.runScatter, w.runComplete
	return w
}

// Number is this process's rank, 0 where it is alone.
func (w *World) Number() int {
	if w == nil {
		return 0
	}
	return w.Rank
}

// Ranks is how many processes there are.
func (w *World) Ranks() int {
	if w == nil {
		return 1
	}
	return w.Size
}

// Share is the part of every step that this process runs.
func (w *World) Share() kernel.Share {
	if w == nil {
		return kernel.Share{}
	}
	return kernel.Share{Rank: w.Rank, Size: w.Size}
}

// Peer is the world as a plan's peer; nil where the process is alone.
func (w *World) Peer() kernel.Peer {
	if w == nil {
		return nil
	}
	return w
}

// String says who carries what: "4 ranks, started by mpirun, over Open MPI 4.1.4".
func (w *World) String() string {
	over := w.links.name()
	switch {
	case w.cards != nil && w.fixed:
		over = fmt.Sprintf("%s inside the graph, parts added up by the tree: bits do not depend on the number of ranks; words over %s", w.cards.name(), over)
	case w.cards != nil:
		over = fmt.Sprintf("%s inside the graph, in the library's order: bits depend on the number of ranks; words over %s", w.cards.name(), over)
	case w.why != "":
		over += ", gradients through page-locked memory (" + w.why + ")"
	}
	return fmt.Sprintf("%d ranks, started by %s, over %s", w.Size, w.Launcher, over)
}

// carrier is what carries gradients from card to card.
type carrier interface{ name() string }

// CloseCards ends what cards share. After the run's programs are closed and before the card is.
func (w *World) CloseCards() error {
	if w == nil {
		return nil
	}
	return w.closeCards()
}

// Stats are the exchanges so far.
func (w *World) Stats() Stats { return w.stats }

// Sum replaces v by everybody's sum, by the tree.
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

// Broadcast gives everybody rank 0's bytes; what the others pass is not looked at.
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

// Gather gives everybody everybody's bytes, by rank.
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

// Barrier waits for everybody.
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

// Close leaves together with the others. A run that failed calls Fail instead.
func (w *World) Close() error {
	if w == nil {
		return nil
	}
	err := w.Barrier()
	if w.watch != nil {
		w.watch.bye()
	}
	return errors.Join(err, w.links.close())
}

// Fail tells the others that this rank ends with an error, so that none waits for it. The process
// must exit after it.
func (w *World) Fail(err error) {
	switch {
	case w == nil:
	case w.watch != nil:
		w.watch.fail(err)
	default:
		if l, ok := w.links.(*local); ok {
			l.hub.leave()
		}
	}
}

func ptr(f []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(f)) }

var errStop = errors.New("a rank was asked to stop")

// Agree is a context that ends on all ranks at the same place of the run. It is heeded where ranks
// ask each other: Stop and Cut.
func (w *World) Agree(ctx context.Context) context.Context {
	if w == nil {
		return ctx
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	w.cancel = cancel
	soon, hurry := context.WithCancel(own)
	w.soon = soon
	w.mu.Lock()
	w.hurry = hurry
	w.mu.Unlock()
	if w.Asked() { // before there was anything to end
		hurry()
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
	if w.hurry != nil {
		w.hurry()
	}
	w.mu.Unlock()
	if w.watch != nil {
		w.watch.stop()
	}
}

// Soon is ctx for long work that a rank does alone: it ends as soon as this rank is asked to stop.
// What it leaves undone is told to Collect.
func (w *World) Soon(ctx context.Context) context.Context {
	if w == nil || w.soon == nil {
		return ctx
	}
	return w.soon
}

// Asked says that somebody wants this rank to stop; the others may not know yet.
func (w *World) Asked() bool { return w != nil && w.asked.Load() }

// askEvery is how often ranks ask each other whether to go on.
const askEvery = 10 * time.Millisecond

// askAfter is after how many updates ranks ask next, where so many took that long.
func askAfter(updates int, took time.Duration) int {
	switch {
	case took > 2*askEvery:
		return max(1, updates/2)
	case took < askEvery:
		return min(1024, updates*2)
	}
	return updates
}

// Stop tells, after `done` updates, whether all ranks end here, and then ends the context of Agree.
// Rank 0 decides, and says after how many updates it will be asked again.
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

// Cut shares n pieces of work out: this rank's are [from, to).
func (w *World) Cut(n int) (from, to int) {
	return w.Number() * n / w.Ranks(), (w.Number() + 1) * n / w.Ranks()
}

// Collect puts together what ranks made of their shares of Cut: own has this rank's numbers, all
// gets everybody's, by rank. A rank that has stopped early says so with stopped, and then all ranks
// end together with the context's error.
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
