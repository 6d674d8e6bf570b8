package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/internal/comm"
	"haul/internal/cu"
	"haul/internal/device"
	"haul/internal/report"
	"haul/internal/run"
)

// rankFlags give a process its rank among several, if no launcher does.
type rankFlags struct {
	processes   int
	rank, ranks int
	rankGiven   func() bool // whether --rank was, 0 too
	rendezvous  string
	perRank     bool
	world       *comm.World // once joined; nil: alone
	began       time.Time
}

func (f *rankFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.processes, "processes", 1, "start this many ranks on this machine; they share every step")
	flags.IntVar(&f.ranks, "ranks", 0, "total number of ranks, if no launcher sets it (needs --rank and --rendezvous)")
	flags.IntVar(&f.rank, "rank", 0, "rank of this process, from 0")
	f.rankGiven = func() bool { return flags.Changed("rank") }
	flags.StringVar(&f.rendezvous, "rendezvous", "", "host:port of rank 0")
	flags.BoolVar(&f.perRank, "per-rank", false, "report every rank at the end, not only rank 0")
}

// mostProcesses keeps a slip of the hand from filling the machine: ranks that share a core only
// wait for each other, each with memory of its own.
func mostProcesses() int { return max(64, 4*runtime.NumCPU()) }

func (f *rankFlags) validate() error {
	switch {
	case f.processes < 1:
		return usagef("--processes is %d: at least 1 is needed", f.processes)
	case f.processes > mostProcesses():
		return usagef("--processes is %d: at most %d start on this machine, which has %d cores", f.processes, mostProcesses(), runtime.NumCPU())
	case f.ranks < 0 || f.rank < 0 || f.ranks > 0 && f.rank >= f.ranks:
		return usagef("--rank is %d and --ranks is %d: the rank must be at least 0 and below --ranks", f.rank, f.ranks)
	case f.ranks > 1 && f.rendezvous == "":
		return usagef("--ranks needs --rendezvous, the host:port of rank 0")
	case f.ranks == 0 && (f.rendezvous != "" || f.rankGiven()):
		return usagef("--rank and --rendezvous need --ranks")
	}
	place, err := f.place()
	if err == nil && f.processes > 1 && place.Size > 1 {
		err = oncePerMachine(place, usagef("--processes starts ranks by itself, and %s has started %d already: use one of them", place.Launcher, place.Size))
	}
	return err
}

// oncePerMachine lets one rank of each machine tell of an error that all of them have.
func oncePerMachine(p comm.Place, err error) error {
	// who was started by hand has a screen of its own
	if err == nil || p.LocalRank == 0 || p.Launcher == comm.Hand {
		return err
	}
	return silent{err}
}

// place is who this process is: by flags, else by its launcher's variables.
func (f *rankFlags) place() (comm.Place, error) {
	if f.ranks > 0 {
		return comm.Place{Launcher: comm.Hand, Rank: f.rank, Size: f.ranks, LocalRank: f.rank, LocalSize: f.ranks, Address: f.rendezvous, Token: os.Getenv(comm.TokenVariable)}, nil
	}
	return comm.Detect(os.Getenv)
}

// waitQuietly is how long ranks that were started by hand wait for each other before they say so.
const waitQuietly = 3 * time.Second

// waits is what a rank that was started by hand says while others have not come: one that is alone
// opens a library, and waits for nobody.
func waits(p comm.Place) string {
	if p.Launcher != comm.Hand || p.Size < 2 {
		return ""
	}
	return fmt.Sprintf("rank %d of %d waits for the others at %s, a minute at most\n", p.Rank, p.Size, p.Address)
}

// join opens the world of a process that is not alone, and gives the rank its share of the machine.
func (a *app) join(ctx context.Context, f *rankFlags, d *deviceFlags, workersGiven bool) (*comm.World, error) {
	f.began = time.Now()
	place, err := f.place()
	if err != nil || place.Size <= 1 && place.Launcher != comm.Hand {
		return nil, err
	}
	cards := 0
	if d.name != "cpu" {
		if driver, err := cu.Open(); err == nil {
			if all, err := driver.Devices(); err == nil {
				cards = len(all)
			}
		}
	}
	if d.name == "auto" { // ranks do not race against each other for it
		if d.name = "cpu"; cards > 0 {
			d.name = "cuda"
		}
	}
	if d.name == "cuda" {
		if d.name, err = card(place, cards); err != nil {
			return nil, err
		}
	}
	waiting := time.AfterFunc(waitQuietly, func() { io.WriteString(a.stderr, waits(place)) })
	defer waiting.Stop()
	world, err := comm.Open(ctx, place, device.OnGPU(d.name))
	if err != nil {
		return nil, oncePerMachine(place, err)
	}
	if !workersGiven {
		d.workers = min(d.workers, max(1, runtime.NumCPU()/max(1, place.LocalSize)))
	}
	return world, nil
}

// card is the local rank's.
func card(p comm.Place, cards int) (string, error) {
	shared := os.Getenv("NCCL_MULTI_RANK_GPU_ENABLE") == "1"
	if p.LocalRank >= cards && !(shared && cards > 0) {
		err := fmt.Errorf("rank %d has no card: this machine shows %d and has %d ranks; start as many ranks as cards", p.Rank, cards, p.LocalSize)
		if p.LocalRank > cards { // the first without one tells of it
			err = silent{err}
		}
		return "", err
	}
	return fmt.Sprintf("cuda:%d", p.LocalRank%cards), nil
}

// sharedFolder is opened by rank 0; the others learn its name.
func (f *trainFlags) sharedFolder(name string) (*run.Dir, error) {
	if f.world == nil {
		return f.folder(name)
	}
	var own *run.Dir
	var path []byte
	if f.world.Number() == 0 {
		var err error
		if own, err = f.folder(name); err != nil {
			return nil, err
		}
		path = []byte(own.Path())
	}
	path, err := f.world.Broadcast(path)
	if own == nil {
		own = run.JoinDir(string(path))
	}
	return own, err
}

// leave ends a rank together with the others: in peace, or all at once with one rank's error, which
// rank 0 prints.
func (a *app) leave(w *comm.World, err error) error {
	if w == nil {
		return err
	}
	if i := new(run.Interrupted); err == nil || errors.As(err, &i) {
		return a.withoutEcho(w, errors.Join(err, w.Close()))
	}
	w.Fail(err)
	return a.withoutEcho(w, err)
}

// silent is an error that another process tells of.
type silent struct{ error }

func (s silent) Unwrap() error { return s.error }

func (a *app) withoutEcho(w *comm.World, err error) error {
	if err == nil || w.Number() == 0 {
		return err
	}
	return silent{err}
}

// exchanged is what the exchanges of a rank came to.
type exchanged struct {
	Rank      int     `json:"rank"`
	Host      string  `json:"host"`
	Exchanges int64   `json:"exchanges"`
	Seconds   float64 `json:"seconds"`
	Bytes     int64   `json:"bytes"`
}

// communicated gathers every rank's exchanges.
func communicated(w *comm.World) ([]exchanged, error) {
	s := w.Stats()
	host, _ := os.Hostname()
	text, err := json.Marshal(exchanged{w.Number(), host, s.Exchanges, s.Time.Seconds(), s.Bytes})
	if err != nil {
		return nil, err
	}
	all, err := w.Gather(text)
	out := make([]exchanged, len(all))
	for i, t := range all {
		err = errors.Join(err, json.Unmarshal(t, &out[i]))
	}
	return out, err
}

// tellRanks is the last word of a run on ranks: what the exchange of gradients has cost.
func (a *app) tellRanks(f *rankFlags, asJSON bool) error {
	all, err := communicated(f.world)
	if err != nil || f.world.Number() > 0 {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.stdout).Encode(map[string]any{"kind": "communicate", "ranks": all, "over": f.world.String()})
	}
	for _, e := range all {
		if e.Rank > 0 && !f.perRank || e.Exchanges == 0 {
			continue
		}
		each := e.Seconds / float64(e.Exchanges)
		fmt.Fprintf(a.stderr, "communicate  rank %d on %s: %s of %.2f MB, %.2f ms each, all of it waited for, %.2f GB/s out, %s in all\n", e.Rank, e.Host,
			report.Plural(e.Exchanges, "exchange"), float64(e.Bytes)/float64(e.Exchanges)/1e6, 1e3*each, float64(e.Bytes)/e.Seconds/1e9, report.Duration(e.Seconds))
	}
	return nil
}

// spawn starts ranks of this program on this machine and waits for them. Rank 0 has the screen; all
// have what this process has.
func (a *app) spawn(ctx context.Context, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0") // a free port, for rank 0 to take
	if err != nil {
		return err
	}
	address := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return err
	}
	args, token := withoutProcesses(os.Args[1:]), rand.Text()
	all := make([]*exec.Cmd, n)
	ended := make(chan int, n)
	for r := range all {
		c := exec.Command(self, args...)
		c.Env = append(os.Environ(), "HAUL_RANK="+strconv.Itoa(r), "HAUL_RANKS="+strconv.Itoa(n), "HAUL_LOCAL_RANK="+strconv.Itoa(r), "HAUL_LOCAL_RANKS="+strconv.Itoa(n), "HAUL_RENDEZVOUS="+address, comm.TokenVariable+"="+token)
		c.Stderr = os.Stderr
		if r == 0 {
			c.Stdin, c.Stdout = os.Stdin, os.Stdout
		}
		dieWithParent(c)
		if err := c.Start(); err != nil {
			return fmt.Errorf("start rank %d: %w", r, err)
		}
		all[r] = c
		go func() { c.Wait(); ended <- r }()
	}
	defer context.AfterFunc(ctx, func() {
		for _, c := range all {
			c.Process.Signal(os.Interrupt)
		}
	})()
	code := 0
	for range all {
		r := <-ended
		if c := all[r].ProcessState.ExitCode(); c != 0 && (code == 0 || r == 0) {
			code = c
		}
	}
	if code == 0 {
		return nil
	}
	if code < 0 {
		code = exitFailed
	}
	return exitCode(code) // its words are out already
}

// exitCode is an error whose words are out.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("a rank ended with code %d", int(e)) }

// withoutProcesses drops the flag that the ranks must not see.
func withoutProcesses(args []string) (out []string) {
	for i := 0; i < len(args); i++ {
		if args[i] == "--processes" {
			i++
			continue
		}
		if !strings.HasPrefix(args[i], "--processes=") {
			out = append(out, args[i])
		}
	}
	return out
}
