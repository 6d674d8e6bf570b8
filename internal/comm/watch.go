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

// watch notifies every rank if a rank has died, hangs or has failed, because the others would wait
// forever inside MPI or NCCL. Each rank has a connection to rank 0, which forwards messages. A
// connection that ends without msgLeave means that the rank has died. A connection without a
// message for `silenceLimit` means that the rank is stopped.
//
// After the loss of a rank the process exits without calling MPI, because that call could hang. A
// rank that was stopped itself for a while ignores the silence of others during that time.
type watch struct {
	rank, n int
	conns   []*line // rank 0: by rank; other ranks: [0] only
	world   *World
	leaving atomic.Bool
	ending  sync.Once
	saves   atomic.Pointer[string] // the checkpoint that a run resumes from; nil: unknown
	awake   atomic.Int64           // time of this process's last heartbeat, by clock
	clock   func() int64           // monotonic, in nanoseconds
	out     io.Writer
	exit    func(code int)
}

type line struct {
	net.Conn
	mu   sync.Mutex // guards writes
	last atomic.Int64
	left atomic.Bool
}

const (
	beat         = time.Second
	silenceLimit = 6 * time.Second // after which a rank counts as stopped
)

// The kinds of messages.
const (
	msgHeartbeat = 'h'
	msgLeave     = 'b'
	msgStop      = 's'
	msgFail      = 'f' // text: rank, newline, reason
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
	_, _ = l.Write(b) // read notices a broken connection
}

// newWatch starts the watch of w over connections to all ranks, or to rank 0. It prints messages to
// out and ends the process by exit.
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
	go v.heartbeats()
	return v
}

// heartbeats runs checkRanks once per beat.
func (v *watch) heartbeats() {
	for range time.Tick(beat) {
		if v.leaving.Load() || !v.checkRanks(v.clock()) {
			return
		}
	}
}

// checkRanks sends heartbeats. If a rank has been silent for longer than `silenceLimit`, checkRanks
// ends all ranks and returns false.
func (v *watch) checkRanks(now int64) bool {
	slept := time.Duration(now - v.awake.Swap(now))
	for i, l := range v.conns {
		if l == nil || l.left.Load() {
			continue
		}
		l.send(msgHeartbeat, "")
		if slept > 2*beat {
			l.last.Store(now) // this process itself was stopped
		}
		if quiet := time.Duration(now - l.last.Load()); quiet > silenceLimit {
			v.lost(i, fmt.Sprintf("has not answered for %.0f s: it hangs or its machine does", quiet.Seconds()))
			return false
		}
	}
	return true
}

// read handles the messages of one connection until it ends.
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
			if !l.left.Load() && !v.leaving.Load() {
				v.lost(from, "is gone: it was killed or has crashed")
			}
			return
		}
		l.last.Store(v.clock())
		switch head[0] {
		case msgLeave:
			l.left.Store(true)
		case msgStop:
			v.world.ask()
		case msgFail:
			rank, why, _ := strings.Cut(string(text), "\n")
			v.sendFailure(from, string(text))
			v.end(rank, why, 200*time.Millisecond) // lets this rank print its own error first
			return
		}
	}
}

// lost ends all ranks because `rank` is lost.
func (v *watch) lost(rank int, why string) {
	text := fmt.Sprintf("%d\n%s", rank, why)
	// The lost rank gets the message too: if it was only stopped, it exits silently once it wakes.
	v.sendFailure(-1, text)
	v.end(fmt.Sprint(rank), why, 0)
}

// tell sends a failure message to all ranks but one; -1: to all.
func (v *watch) sendFailure(but int, text string) {
	for i, l := range v.conns {
		if l != nil && i != but && !l.left.Load() {
			l.send(msgFail, text)
		}
	}
}

// end exits the process. Rank 0 prints the message, or rank 1 if rank 0 is the lost one. A rank 0
// that was only stopped prints nothing when it wakes, because rank 1 has printed.
func (v *watch) end(rank, why string, after time.Duration) {
	time.Sleep(after)
	v.ending.Do(func() {
		if speaker := v.rank == 0 && rank != "0" || v.rank == 1 && rank == "0"; speaker {
			fmt.Fprintf(v.out, "haul: rank %s of %d %s; %s\n", rank, v.n, why, v.resumeHint())
		}
		v.exit(1)
	})
}

// resumeHint returns the advice for the user: --resume, or --force if no checkpoint exists.
func (v *watch) resumeHint() string {
	if path := v.saves.Load(); path != nil {
		if _, err := os.Stat(*path); errors.Is(err, fs.ErrNotExist) {
			return "nothing was saved yet: start over with --force"
		}
	}
	return "what was saved is whole, continue with --resume"
}

// Saves sets the path of the checkpoint that the run resumes from; the file may not exist yet.
func (w *World) Saves(path string) {
	if w != nil && w.watch != nil {
		w.watch.saves.Store(&path)
	}
}

// leave announces that this rank ends without an error.
func (v *watch) leave() {
	v.leaving.Store(true)
	for _, l := range v.conns {
		if l != nil {
			l.send(msgLeave, "")
		}
	}
}

// stop sends the request to stop the run.
func (v *watch) stop() {
	for _, l := range v.conns {
		if l != nil {
			l.send(msgStop, "")
		}
	}
}

// fail notifies all ranks that this rank ends with an error. If another rank's failure arrived
// first, it sends nothing and waits until that failure ends the process.
func (v *watch) fail(err error) {
	mine := false
	v.ending.Do(func() { mine = true })
	if !mine {
		select {} // end runs in another goroutine and ends the process
	}
	v.leaving.Store(true)
	text := fmt.Sprintf("%d\nfailed: %s", v.rank, strings.ReplaceAll(err.Error(), "\n", "; "))
	v.sendFailure(-1, text)
	time.Sleep(100 * time.Millisecond) // lets the message leave before the connection closes
}
