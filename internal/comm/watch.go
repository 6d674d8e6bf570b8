package comm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// watch tells every rank when one has died, hangs or has failed, because survivors inside MPI or
// NCCL would wait forever. Each rank has a connection to rank 0, which passes news on. A
// connection that ends without a goodbye means a death; one that is silent for too long means a
// stopped rank.
//
// What a reader could break: news of a death must end the process without calling MPI, which is
// what hangs. A rank that was itself stopped for a while must not take the others' silence for
// their death.
type watch struct {
	rank, n int
	conns   []*line // rank 0's by rank; of the others [0] alone
	world   *World
	leaving atomic.Bool
	ending  sync.Once
	saves   atomic.Pointer[string] // the file that a run goes on from; nil: not known
	awake   atomic.Int64           // when this process last ran
	clock   func() int64           // nanoseconds that no change of the wall clock moves
	out     io.Writer
	exit    func(code int)
}

type line struct {
	net.Conn
	mu   sync.Mutex // of writing
	last atomic.Int64
	bye  atomic.Bool
}

const (
	beat    = time.Second
	silence = 6 * time.Second // after which a rank is taken for stopped
)

// The kinds of news.
const (
	newsBeat = 'h'
	newsBye  = 'b'
	newsStop = 's'
	newsFail = 'f' // rank, text
)

func (l *line) send(kind byte, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(text) > 1<<14 {
		text = text[:1<<14]
	}
	b := append([]byte{kind, 0, 0}, text...)
	binary.LittleEndian.PutUint16(b[1:], uint16(len(text)))
	l.SetWriteDeadline(time.Now().Add(2 * time.Second))
	_, _ = l.Write(b) // a connection that is broken is found by whoever reads it
}

// newWatch watches over connections to all ranks, or to rank 0, for a world that it joins. It
// speaks to out and leaves by exit.
func newWatch(w *World, conns []net.Conn, out io.Writer, exit func(int)) *watch {
	v := &watch{rank: w.Rank, n: w.Size, world: w, out: out, exit: exit, conns: make([]*line, len(conns))}
	w.watch = v
	began := time.Now()
	v.clock = func() int64 { return int64(time.Since(began)) }
	now := v.clock()
	v.awake.Store(now)
	for i, c := range conns {
		if c != nil {
			v.conns[i] = &line{Conn: c}
			v.conns[i].last.Store(now)
		}
	}
	for i, c := range conns {
		if c != nil {
			go v.read(i)
		}
	}
	go v.beats()
	return v
}

// beats says that this rank is alive, and looks whether the others are.
func (v *watch) beats() {
	for range time.Tick(beat) {
		if v.leaving.Load() || !v.look(v.clock()) {
			return
		}
	}
}

// look sends a beat and ends the ranks, with false, where one has been silent for too long.
func (v *watch) look(now int64) bool {
	slept := time.Duration(now - v.awake.Swap(now))
	for i, l := range v.conns {
		if l == nil || l.bye.Load() {
			continue
		}
		l.send(newsBeat, "")
		if slept > 2*beat {
			l.last.Store(now) // it is this process that was stopped
		}
		if quiet := time.Duration(now - l.last.Load()); quiet > silence {
			v.lost(i, fmt.Sprintf("has not answered for %.0f s: it hangs or its machine does", quiet.Seconds()))
			return false
		}
	}
	return true
}

// read takes the news of one connection.
func (v *watch) read(from int) {
	l := v.conns[from]
	head := make([]byte, 3)
	for {
		_, err := io.ReadFull(l, head)
		text := make([]byte, binary.LittleEndian.Uint16(head[1:]))
		if err == nil {
			_, err = io.ReadFull(l, text)
		}
		if err != nil {
			if !l.bye.Load() && !v.leaving.Load() {
				v.lost(from, "is gone: it was killed or has crashed")
			}
			return
		}
		l.last.Store(v.clock())
		switch head[0] {
		case newsBye:
			l.bye.Store(true)
		case newsStop:
			v.world.ask()
		case newsFail:
			rank, why, _ := strings.Cut(string(text), "\n")
			v.tell(from, string(text))
			v.end(rank, why, 200*time.Millisecond) // its own error, if it has one, goes first
			return
		}
	}
}

// lost ends all ranks because of one.
func (v *watch) lost(rank int, why string) {
	text := fmt.Sprintf("%d\n%s", rank, why)
	// also the one that is lost: if it only slept, it wakes to the news and leaves in silence
	v.tell(-1, text)
	v.end(fmt.Sprint(rank), why, 0)
}

// tell passes news on to all but one.
func (v *watch) tell(but int, text string) {
	for i, l := range v.conns {
		if l != nil && i != but && !l.bye.Load() {
			l.send(newsFail, text)
		}
	}
}

// end leaves the process. One rank speaks: 0, or 1 where it is rank 0 that is lost. A rank 0 that
// only slept wakes to the news of its own end, and rank 1 has told of it.
func (v *watch) end(rank, why string, after time.Duration) {
	time.Sleep(after)
	v.ending.Do(func() {
		if speaker := v.rank == 0 && rank != "0" || v.rank == 1 && rank == "0"; speaker {
			fmt.Fprintf(v.out, "haul: rank %s of %d %s; %s\n", rank, v.n, why, v.kept())
		}
		v.exit(1)
	})
}

// kept says what is left of a run that one of its ranks ended.
func (v *watch) kept() string {
	if path := v.saves.Load(); path != nil {
		if _, err := os.Stat(*path); errors.Is(err, fs.ErrNotExist) {
			return "nothing was saved yet: start over with --force"
		}
	}
	return "what was saved is whole, continue with --resume"
}

// Saves names the file that the run will go on from, where it is saved in time.
func (w *World) Saves(path string) {
	if w != nil && w.watch != nil {
		w.watch.saves.Store(&path)
	}
}

// bye says that this rank leaves in peace.
func (v *watch) bye() {
	v.leaving.Store(true)
	for _, l := range v.conns {
		if l != nil {
			l.send(newsBye, "")
		}
	}
}

// stop passes on that the run is to end.
func (v *watch) stop() {
	for _, l := range v.conns {
		if l != nil {
			l.send(newsStop, "")
		}
	}
}

// fail tells everybody that this rank ends. Who has been told of another's end already says
// nothing.
func (v *watch) fail(err error) {
	mine := false
	v.ending.Do(func() { mine = true })
	if !mine {
		select {} // the goroutine that speaks ends the process
	}
	v.leaving.Store(true)
	text := fmt.Sprintf("%d\nfailed: %s", v.rank, strings.ReplaceAll(err.Error(), "\n", "; "))
	v.tell(-1, text)
	time.Sleep(100 * time.Millisecond) // let the words leave before the connection does
}
