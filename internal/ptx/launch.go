package ptx

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Launch is one run of a kernel.
type Launch struct {
	Program     *Program
	Grid, Block [3]int
	Dynamic     int    // bytes of shared memory besides what the kernel declares
	Params      []byte // in the layout of Program.Lay
	Memory      *Memory
	Races       bool // detect unordered accesses to shared memory
	Workers     int  // number of blocks that run concurrently; 0: one per core
	// limit of a block's warp instructions, above which it counts as hanging; 0: a few hundred
	// million
	Limit int
}

// The number of instructions between two switches to another warp, and to another block.
const (
	turn  = 1 << 12
	slice = 1 << 24
)

// boundLaunch is a launch with the data that its blocks share.
type boundLaunch struct {
	Launch
	p       *Program
	memory  *Memory
	threads int
	warps   int
	total   int // bytes of shared memory
	blocks  int
}

// thread returns the index of thread i of a block.
func (l *boundLaunch) thread(i int) [3]int {
	return [3]int{i % l.Block[0], i / l.Block[0] % l.Block[1], i / l.Block[0] / l.Block[1]}
}

// Lay returns the layout of parameters, each given as bytes.
func (p *Program) Lay(values [][]byte) []byte {
	var out []byte
	for i, v := range p.params {
		out = append(append(out, make([]byte, v.align-len(out))...), values[i]...)
	}
	return out
}

// Stats counts the work of a launch.
type Stats struct {
	Instructions int64 // of warps
}

// Run executes the launch. An error of the kernel is a *Fault.
func Run(launch Launch) (Stats, error) {
	l := &boundLaunch{Launch: launch, p: launch.Program, memory: launch.Memory}
	l.threads = l.Block[0] * l.Block[1] * l.Block[2]
	l.warps = (l.threads + lanes - 1) / lanes
	l.blocks = l.Grid[0] * l.Grid[1] * l.Grid[2]
	l.total = l.p.staticBytes + l.Dynamic
	if l.Limit == 0 {
		l.Limit = 1 << 29
	}
	switch {
	case l.threads < 1 || l.blocks < 1:
		return Stats{}, fmt.Errorf("kernel %s: a grid of %v blocks of %v threads", l.p.Name, l.Grid, l.Block)
	case l.threads > 1024 || l.p.maxThreads > 0 && l.threads > l.p.maxThreads:
		return Stats{}, fmt.Errorf("kernel %s: %d threads in a block, %d at most", l.p.Name, l.threads, l.p.maxThreads)
	}
	workers := l.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, l.blocks)
	var next, instructions atomic.Int64
	var mu sync.Mutex
	var worst error
	first := l.blocks
	work := func() {
		var here []*threadBlock
		var spare []*threadBlock
		for {
			var b *threadBlock
			if i := int(next.Add(1)) - 1; i < l.blocks {
				if len(spare) > 0 {
					b, spare = spare[len(spare)-1], spare[:len(spare)-1]
				} else {
					b = newRunning(l)
				}
				b.begin(i)
			} else if len(here) > 0 {
				b, here = here[0], here[1:]
			} else {
				return
			}
			done, err := b.step(slice)
			switch {
			case err != nil:
				mu.Lock()
				if b.number < first {
					first, worst = b.number, err
				}
				mu.Unlock()
				next.Store(int64(l.blocks))
				return
			case done:
				instructions.Add(int64(b.count))
				spare = append(spare, b)
			default:
				here = append(here, b)
			}
		}
	}
	if workers == 1 {
		work()
	} else {
		var wg sync.WaitGroup
		for range workers {
			wg.Go(work)
		}
		wg.Wait()
	}
	return Stats{instructions.Load()}, worst
}

// threadBlock is a block that runs.
type threadBlock struct {
	l         *boundLaunch
	number    int
	at        [3]int
	shared    []byte
	warps     []warp
	left      int // number of warps that have not ended
	barriers  [16]barrier
	races     *races
	proxy     *proxy            // nil unless the program uses it
	mbarriers map[int]*mbarrier // by offset in shared memory
	groups    [8]warpgroup
	count     int // instructions of warps so far
	events    int // counts events that may let a waiting warp continue
	idle      int // consecutive passes without an event
	seen      int
}

func newRunning(l *boundLaunch) *threadBlock {
	// copies and products of the hardware address shared memory at multiples of 1024
	room := make([]byte, l.total+1024)
	from := -int(uintptr(unsafe.Pointer(&room[0]))) & 1023
	b := &threadBlock{l: l, shared: room[from : from+l.total : from+l.total], warps: make([]warp, l.warps)}
	if l.p.async {
		b.proxy = newProxy(b)
	}
	for i := range b.warps {
		w := &b.warps[i]
		w.b, w.index, w.code = b, i, l.p.code
		w.frame = unsafe.Pointer(unsafe.SliceData(make([]uint64, l.p.frame/8+1)))
		w.consts = unsafe.Pointer(unsafe.SliceData(l.p.consts))
		w.pred = make([]uint32, l.p.predicates)
		w.pred[1] = full
		w.local = make([]byte, lanes*int(up64(uint64(l.p.localBytes), 16)))
		for _, s := range l.p.specials {
			r := reg[uint32](w, s.slot)
			for lane := range r {
				r[lane] = l.special(s.name, [3]int{}, i, lane)
			}
		}
	}
	return b
}

// special returns the value of a special register.
func (l *boundLaunch) special(name string, at [3]int, warp, lane int) uint32 {
	switch name {
	case "%laneid":
		return uint32(lane)
	case "%warpid":
		return uint32(warp)
	}
	axis := name[len(name)-1] - 'x'
	var of [3]int
	switch name[:len(name)-2] {
	case "%tid":
		of = l.thread(warp*lanes + lane)
	case "%ntid":
		of = l.Block
	case "%ctaid":
		of = at
	case "%nctaid":
		of = l.Grid
	}
	return uint32(of[axis])
}

// begin starts block i of the grid. It fills shared memory with NaN, which as an integer is -1.
func (b *threadBlock) begin(i int) {
	l := b.l
	b.number, b.at = i, [3]int{i % l.Grid[0], i / l.Grid[0] % l.Grid[1], i / l.Grid[0] / l.Grid[1]}
	b.left, b.count, b.events, b.idle, b.seen = l.warps, 0, 0, 0, 0
	for i := range b.shared {
		b.shared[i] = 0xff
	}
	b.barriers = [16]barrier{}
	b.mbarriers = map[int]*mbarrier{}
	b.groups = [8]warpgroup{}
	if l.Races {
		b.races = newRaces(b)
	}
	if b.proxy != nil {
		b.proxy.begin()
	}
	for i := range b.warps {
		w := &b.warps[i]
		w.live = full
		if rest := l.threads - i*lanes; rest < lanes {
			w.live = 1<<rest - 1
		}
		w.active, w.pc, w.meets, w.state = w.live, 0, nowhere, ready
		w.groups, w.near, w.copies, w.closed, w.ran = w.groups[:0], span{}, w.copies[:0], [lanes]int{}, 0
		w.issued, w.registers = 0, int32(l.registersOfBlock())
		w.products.begin()
		for _, s := range l.p.specials {
			if len(s.name) == len("%ctaid.x") && s.name[:6] == "%ctaid" {
				r := reg[uint32](w, s.slot)
				for lane := range r {
					r[lane] = l.special(s.name, b.at, i, lane)
				}
			}
		}
	}
}

// step runs the block's warps alternately until it has ended or has executed about n instructions.
func (b *threadBlock) step(n int) (done bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(*Fault)
			if !ok {
				panic(r)
			}
			err = f
		}
	}()
	for end := b.count + n; b.count < end; {
		ran := false
		for i := range b.warps {
			w := &b.warps[i]
			if w.state > yielded {
				continue
			}
			w.state, ran = ready, true
			w.ran = 0
			w.run(turn)
			b.count += w.ran
			if w.state == ended {
				w.finish()
				b.ended()
			}
		}
		if b.left == 0 {
			b.finish()
			return true, nil
		}
		b.checkStuck(ran)
	}
	return false, nil
}

// idlePasses is the number of passes over a block's warps without an event after which it is
// deadlocked.
const idlePasses = 1 << 14

// checkStuck fails if the block cannot continue.
func (b *threadBlock) checkStuck(ran bool) {
	for i := range b.warps {
		if ran = ran || b.warps[i].state <= yielded; ran {
			break
		}
	}
	polls := ran
	for i := range b.warps {
		polls = polls && b.warps[i].state != ready
	}
	if b.events != b.seen || ran && !polls {
		b.seen, b.idle = b.events, 0
	} else {
		b.idle++
	}
	if ran && b.idle < idlePasses && b.count < b.l.Limit {
		return
	}
	what := "waits forever"
	if b.count >= b.l.Limit {
		what = fmt.Sprintf("still runs after %d instructions of the block", b.count)
	}
	for i := range b.warps {
		w := &b.warps[i]
		if w.state == ended {
			continue
		}
		at := w.pc
		if w.state == parked {
			at--
		}
		w.mask = w.active
		w.fail(&w.code[at], "%s%s", what, b.describeWarps())
	}
}

// describeWarps describes the positions of a block's warps.
func (b *threadBlock) describeWarps() string {
	text := ""
	for i := range b.warps {
		w := &b.warps[i]
		switch w.state {
		case ended:
			text += fmt.Sprintf("; warp %d has ended", i)
		case parked:
			text += fmt.Sprintf("; warp %d is at barrier %d (+%d)", i, w.waits.barrier, w.waits.line)
		default:
			text += fmt.Sprintf("; warp %d is at +%d", i, w.code[w.pc].line)
		}
	}
	return text
}
