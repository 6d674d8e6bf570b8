package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"haul/internal/comm"
	"haul/internal/cu"
	"haul/internal/device"
	"haul/internal/run"
)

// RankFlags give a process its rank among several, if no launcher does.
type RankFlags struct {
	Processes   int
	rank, ranks int
	rankGiven   func() bool // whether --rank was, 0 too
	rendezvous  string
	PerRank     bool
	World       *comm.World // once joined; nil: alone
	began       time.Time
}

func (f *RankFlags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.Processes, "processes", 1, "start this many ranks on this machine; they share every step")
	flags.IntVar(&f.ranks, "ranks", 0, "total number of ranks, if no launcher sets it (needs --rank and --rendezvous)")
	flags.IntVar(&f.rank, "rank", 0, "rank of this process, from 0")
	f.rankGiven = func() bool { return flags.Changed("rank") }
	flags.StringVar(&f.rendezvous, "rendezvous", "", "host:port of rank 0")
	flags.BoolVar(&f.PerRank, "per-rank", false, "report every rank at the end, not only rank 0")
}

// mostProcesses keeps a slip of the hand from filling the machine: ranks that share a core only
// wait for each other, each with memory of its own.
func mostProcesses() int { return max(64, 4*runtime.NumCPU()) }

func (f *RankFlags) Validate() error {
	switch {
	case f.Processes < 1:
		return Usagef("--processes is %d: at least 1 is needed", f.Processes)
	case f.Processes > mostProcesses():
		return Usagef("--processes is %d: at most %d start on this machine, which has %d cores", f.Processes, mostProcesses(), runtime.NumCPU())
	case f.ranks < 0 || f.rank < 0 || f.ranks > 0 && f.rank >= f.ranks:
		return Usagef("--rank is %d and --ranks is %d: the rank must be at least 0 and below --ranks", f.rank, f.ranks)
	case f.ranks > 1 && f.rendezvous == "":
		return Usagef("--ranks needs --rendezvous, the host:port of rank 0")
	case f.ranks == 0 && (f.rendezvous != "" || f.rankGiven()):
		return Usagef("--rank and --rendezvous need --ranks")
	}
	place, err := f.place()
	if err == nil && f.Processes > 1 && place.Size > 1 {
		err = OncePerMachine(place, Usagef("--processes starts ranks by itself, and %s has started %d already: use one of them", place.Launcher, place.Size))
	}
	return err
}

// OncePerMachine lets one rank of each machine tell of an error that all of them have.
func OncePerMachine(p comm.Place, err error) error {
	// who was started by hand has a screen of its own
	if err == nil || p.LocalRank == 0 || p.Launcher == comm.Hand {
		return err
	}
	return Silent{err}
}

// place is who this process is: by flags, else by its launcher's variables.
func (f *RankFlags) place() (comm.Place, error) {
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

// Join opens the world of a process that is not alone, and gives the rank its share of the machine.
func (a *App) Join(ctx context.Context, f *RankFlags, d *DeviceFlags, workersGiven bool) (*comm.World, error) {
	f.began = time.Now()
	place, err := f.place()
	if err != nil || place.Size <= 1 && place.Launcher != comm.Hand {
		return nil, err
	}
	cards := 0
	if d.Name != "cpu" {
		if driver, err := cu.Open(); err == nil {
			if all, err := driver.Devices(); err == nil {
				cards = len(all)
			}
		}
	}
	if d.Name == "auto" { // ranks do not race against each other for it
		if d.Name = "cpu"; cards > 0 {
			d.Name = "cuda"
		}
	}
	if d.Name == "cuda" {
		if d.Name, err = card(place, cards); err != nil {
			return nil, err
		}
	}
	waiting := time.AfterFunc(waitQuietly, func() { io.WriteString(a.Stderr, waits(place)) })
	defer waiting.Stop()
	world, err := comm.Open(ctx, place, device.OnGPU(d.Name))
	if err != nil {
		return nil, OncePerMachine(place, err)
	}
	if !workersGiven {
		d.Workers = min(d.Workers, max(1, runtime.NumCPU()/max(1, place.LocalSize)))
	}
	return world, nil
}

// card is the local rank's.
func card(p comm.Place, cards int) (string, error) {
	shared := os.Getenv("NCCL_MULTI_RANK_GPU_ENABLE") == "1"
	if p.LocalRank >= cards && !(shared && cards > 0) {
		err := fmt.Errorf("rank %d has no card: this machine shows %d and has %d ranks; start as many ranks as cards", p.Rank, cards, p.LocalSize)
		if p.LocalRank > cards { // the first without one tells of it
			err = Silent{err}
		}
		return "", err
	}
	return fmt.Sprintf("cuda:%d", p.LocalRank%cards), nil
}

// Leave ends a rank together with the others: in peace, or all at once with one rank's error, which
// rank 0 prints.
func (a *App) Leave(w *comm.World, err error) error {
	if w == nil {
		return err
	}
	if i := new(run.Interrupted); err == nil || errors.As(err, &i) {
		return a.withoutEcho(w, errors.Join(err, w.Close()))
	}
	w.Fail(err)
	return a.withoutEcho(w, err)
}

func (a *App) withoutEcho(w *comm.World, err error) error {
	if err == nil || w.Number() == 0 {
		return err
	}
	return Silent{err}
}
