package train

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"haul/cmd/haul/cli"
	"haul/internal/comm"
	"haul/internal/report"
	"haul/internal/run"
)

// sharedFolder is opened by rank 0; the others learn its name.
func (f *trainFlags) sharedFolder(name string) (*run.Dir, error) {
	if f.World == nil {
		return f.folder(name)
	}
	var own *run.Dir
	var path []byte
	if f.World.Number() == 0 {
		var err error
		if own, err = f.folder(name); err != nil {
			return nil, err
		}
		path = []byte(own.Path())
	}
	path, err := f.World.Broadcast(path)
	if own == nil {
		own = run.JoinDir(string(path))
	}
	return own, err
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
func (a *app) tellRanks(f *cli.RankFlags, asJSON bool) error {
	all, err := communicated(f.World)
	if err != nil || f.World.Number() > 0 {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.Stdout).Encode(map[string]any{"kind": "communicate", "ranks": all, "over": f.World.String()})
	}
	for _, e := range all {
		if e.Rank > 0 && !f.PerRank || e.Exchanges == 0 {
			continue
		}
		each := e.Seconds / float64(e.Exchanges)
		fmt.Fprintf(a.Stderr, "communicate  rank %d on %s: %s of %.2f MB, %.2f ms each, all of it waited for, %.2f GB/s out, %s in all\n", e.Rank, e.Host,
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
		code = cli.ExitFailed
	}
	return cli.ExitCode(code) // its words are out already
}

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
