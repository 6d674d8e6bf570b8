package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"haul/internal/run/runtest"
)

// These tests start real ranks of the real program, by Open MPI's and MPICH's mpirun and as
// torchrun and srun would. They run where HAUL_RANKS=1 asks for them: .ci/run ranks installs both
// and does.

// ranksBench is the program and a folder to run in.
type ranksBench struct {
	t       *testing.T
	program string
	dir     string
}

func newRanksBench(t *testing.T) *ranksBench {
	t.Helper()
	if os.Getenv("HAUL_RANKS") != "1" {
		t.Skip("needs mpirun of Open MPI and of MPICH: HAUL_RANKS=1 says they are there, .ci/run ranks installs them")
	}
	return &ranksBench{t, program(), t.TempDir()}
}

var (
	openMPIRun = []string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n"}
	mpichRun   = []string{"mpirun.mpich", "-n"}
)

// command is one of n ranks; the launcher may be nil, for one process.
func (b *ranksBench) command(ctx context.Context, launcher []string, n int, args ...string) *exec.Cmd {
	line := append([]string{b.program}, args...)
	if launcher != nil {
		line = append(append(append([]string{}, launcher...), strconv.Itoa(n)), line...)
	}
	c := exec.CommandContext(ctx, line[0], line[1:]...)
	c.Dir = b.dir
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"))
	return c
}

// run wants a good end.
func (b *ranksBench) run(launcher []string, n int, args ...string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Minute)
	defer cancel()
	out, err := b.command(ctx, launcher, n, args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%v %d %v: %v\n%s", launcher, n, args, err, out)
	}
	return string(out)
}

// fails wants one line, once, and an end with a code.
func (b *ranksBench) fails(want string, launcher []string, n int, args ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Minute)
	defer cancel()
	out, err := b.command(ctx, launcher, n, args...).CombinedOutput()
	if err == nil || ctx.Err() != nil || strings.Count(string(out), want) != 1 {
		b.t.Errorf("%d ranks of %v: %v; want %q once in\n%s", n, args, err, want, out)
	}
}

func (b *ranksBench) same(want, got string) {
	b.t.Helper()
	runtest.Same(b.t, runtest.Load(b.t, filepath.Join(b.dir, want, "last.safetensors")), runtest.Load(b.t, filepath.Join(b.dir, got, "last.safetensors")))
	if b.t.Failed() {
		b.t.Fatalf("%s and %s differ", want, got)
	}
}

func routingArgs(epochs int, more ...string) []string {
	return append([]string{"train", "--config", "tiny_1", "--device", "cpu", "--workers", "1", "--epochs", strconv.Itoa(epochs), "--set", "training.num_batches_per_epoch=10",
		"--set", "training.validation_instances=200", "--set", "baseline.eval_batches=1", "--out"}, more...)
}

func TestRanksRouting(t *testing.T) {
	b := newRanksBench(t)
	b.run(nil, 1, routingArgs(2, "one")...)
	for _, n := range []int{1, 2, 4} {
		for name, launcher := range map[string][]string{"open": openMPIRun, "mpich": mpichRun} {
			if name == "mpich" && n == 4 {
				continue // it spins without yielding: see below
			}
			out := fmt.Sprint(name, n)
			b.run(launcher, n, routingArgs(2, out)...)
			b.same("one", out)
		}
	}
	b.run(nil, 1, append(routingArgs(2, "spawned"), "--processes", "2")...)
	b.same("one", "spawned")
	b.run(openMPIRun, 2, append(routingArgs(2, "json"), "--json")...)
	// Four ranks of MPICH wait for each other by turning in circles, on two cores most of the time for
	// one that does not run: a run of a few steps.
	short := func(out string) []string {
		return append(routingArgs(1, out), "--set", "training.num_batches_per_epoch=3", "--set", "training.validation_instances=20")
	}
	b.run(nil, 1, short("short")...)
	b.run(mpichRun, 4, short("mpich4")...)
	b.same("short", "mpich4")
}

func TestRanksAgent(t *testing.T) {
	b := newRanksBench(t)
	b.run(nil, 1, "data", "darkroom", "--set", "grid_size=5", "--streams", "8", "--steps", "8000", "--out", "small.hist")
	args := func(iterations int, out string, more ...string) []string {
		return append([]string{"train", "--model", "AD", "--config", "ad_dr", "--history", "small.hist", "--device", "cpu", "--workers", "1", "--iterations", strconv.Itoa(iterations),
			"--set", "train_n_stream=8", "--set", "train_batch_size=32", "--set", "test_batch_size=32", "--set", "num_warmup_steps=5", "--set", "eval_episodes=4",
			"--set", "eval_interval=10", "--set", "gen_interval=20", "--set", "ckpt_interval=10", "--set", "summary_interval=10", "--out", out}, more...)
	}
	b.run(nil, 1, args(20, "one")...)
	for _, data := range []string{"device", "host"} {
		b.run(openMPIRun, 4, args(20, "open4"+data, "--data", data)...)
		b.same("one", "open4"+data)
	}
	b.run(mpichRun, 2, args(20, "mpich2")...)
	b.same("one", "mpich2")
	// On from four ranks with two. The schedule's length is part of the settings, so the whole run is
	// as long as the first.
	b.run(nil, 1, args(30, "long")...)
	b.interrupt(openMPIRun, 4, "moved", args(30, "moved")...)
	b.run(openMPIRun, 2, "train", "--resume", "moved", "--history", "small.hist", "--device", "cpu", "--workers", "1")
	b.same("long", "moved")
}

// interrupt sends the launcher a Ctrl-C as soon as there is a checkpoint, and a little later.
func (b *ranksBench) interrupt(launcher []string, n int, dir string, args ...string) {
	b.t.Helper()
	c := b.command(b.t.Context(), launcher, n, args...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.waitFor(filepath.Join(dir, "last.safetensors"))
	time.Sleep(300 * time.Millisecond)
	if err := c.Process.Signal(os.Interrupt); err != nil {
		b.t.Fatal(err)
	}
	if err := c.Wait(); err == nil {
		b.t.Logf("the run was over before it was stopped")
	}
}

func (b *ranksBench) waitFor(file string) {
	b.t.Helper()
	for end := time.Now().Add(5 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(b.dir, file)); err == nil {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s does not come", file)
		}
	}
}

// launched starts n ranks with a launcher's variables, without the launcher, and returns their
// outputs.
func (b *ranksBench) launched(n int, env func(rank int) []string, args ...string) (out []string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Minute)
	defer cancel()
	out = make([]string, n)
	var all sync.WaitGroup
	for r := range n {
		c := b.command(ctx, nil, 1, args...)
		c.Env = append(c.Env, env(r)...)
		all.Go(func() {
			text, err := c.CombinedOutput()
			if out[r] = string(text); err != nil {
				b.t.Errorf("rank %d: %v: %s", r, err, text)
			}
		})
	}
	all.Wait()
	return out
}

func TestRanksOfOtherLaunchers(t *testing.T) {
	b := newRanksBench(t)
	b.run(nil, 1, routingArgs(1, "one")...)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	b.launched(2, func(r int) []string {
		return []string{fmt.Sprint("RANK=", r), "WORLD_SIZE=2", fmt.Sprint("LOCAL_RANK=", r), "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}
	}, routingArgs(1, "torchrun")...)
	b.same("one", "torchrun")
	out := b.launched(2, func(r int) []string {
		return []string{"SLURM_STEP_ID=0", "SLURM_JOB_ID=77", fmt.Sprint("SLURM_PROCID=", r), "SLURM_STEP_NUM_TASKS=2", fmt.Sprint("SLURM_LOCALID=", r), "SLURM_STEP_TASKS_PER_NODE=2", "SLURM_STEP_NODELIST=localhost"}
	}, routingArgs(1, "srun")...)
	b.same("one", "srun")
	if !strings.Contains(out[0], "2 ranks, started by srun, over MPICH") || out[1] != "" {
		t.Errorf("rank 0 says who carries what, rank 1 nothing: %q", out)
	}
}

func TestRanksBadInput(t *testing.T) {
	b := newRanksBench(t)
	b.fails("unknown key training.batch", openMPIRun, 2, append(routingArgs(1, "x"), "--set", "training.batch=3")...)
	b.fails("a batch of 48 in shards of 16 does not cut into 2 equal parts: use a multiple of 32, or fewer ranks", openMPIRun, 2, append(routingArgs(1, "x"), "--set", "training.batch_size=48")...)
	b.fails("3 processes cannot share the 8 lanes", openMPIRun, 3, append(routingArgs(1, "x"), "--set", "training.batch_size=192")...)
	b.fails("no card", openMPIRun, 2, "train", "--config", "tiny_1", "--device", "cuda", "--out", "x")
	b.fails("--processes starts ranks by itself, and mpirun has started 2 already", openMPIRun, 2, append(routingArgs(1, "x"), "--processes", "2")...)
	b.fails("nothing to resume", openMPIRun, 2, "train", "--resume", "nowhere", "--device", "cpu")
	if _, err := os.Stat(filepath.Join(b.dir, "x")); err == nil {
		t.Error("a run that could not start has left its folder")
	}
	// Another setting on one rank.
	script := filepath.Join(built, "differs.sh")
	text := fmt.Sprintf("#!/bin/sh\nexec %s %s --seed $((40 + OMPI_COMM_WORLD_RANK / 2))\n", b.program, strings.Join(routingArgs(1, "y"), " "))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	own := b.program
	b.program = script
	b.fails("rank 2 differs from rank 0: it was started with", openMPIRun, 4)
	b.program = own
	// A library that is not the launcher's, and none.
	for path, want := range map[string]string{"libmpich.so.12": "the library is not the launcher's own", "libnothing.so.1": "no MPI library for ranks on the CPU"} {
		t.Setenv("HAUL_MPI", path)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		out, err := b.command(ctx, openMPIRun, 2, routingArgs(1, "z")...).CombinedOutput()
		cancel()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("HAUL_MPI=%s: %v %s", path, err, out)
		}
	}
}

// TestRanksKilled kills a random rank at random moments, HAUL_KILLS times: all others end by
// themselves, nobody is left behind, and the run goes on to the weights of one that nobody killed.
// How long they take is logged.
func TestRanksKilled(t *testing.T) {
	b := newRanksBench(t)
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("HAUL_KILLS")); err == nil {
		kills = n
	}
	b.run(nil, 1, routingArgs(3, "one")...)
	var slowest time.Duration
	lines := 0
	for i := range kills {
		dir := fmt.Sprint("killed", i)
		args := routingArgs(3, dir)
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c := b.command(ctx, openMPIRun, 4, args...)
		c.Stdout, c.Stderr = &out, &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		b.waitFor(filepath.Join(dir, "last.safetensors"))
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Millisecond)
		ranks := children(c.Process.Pid)
		if len(ranks) == 0 {
			c.Wait() // it was over
			continue
		}
		exec.Command("kill", "-9", ranks[rand.IntN(len(ranks))]).Run()
		began := time.Now()
		err := c.Wait()
		slowest = max(slowest, time.Since(began))
		if ctx.Err() != nil {
			t.Errorf("kill %d: the others do not end: %s", i, out.String())
		}
		if err == nil && len(ranks) == 4 && !strings.Contains(out.String(), "done:") {
			t.Errorf("kill %d: the launcher ended well: %s", i, out.String())
		}
		if strings.Contains(out.String(), "is gone: it was killed or has crashed") {
			lines++
		}
		for _, pid := range ranks { // the launcher may end before the last of them
			eventually(t, fmt.Sprintf("the end of process %s after kill %d", pid, i), func() bool {
				text, err := os.ReadFile("/proc/" + pid + "/stat")
				return err != nil || strings.Contains(string(text), ") Z ")
			})
		}
		b.run(openMPIRun, []int{1, 2, 4}[rand.IntN(3)], "train", "--resume", dir, "--device", "cpu", "--workers", "1")
		b.same("one", dir)
		os.RemoveAll(filepath.Join(b.dir, dir))
	}
	t.Logf("%d kills: the others ended after %v at most; %d times a rank had time for its line before the launcher ended it", kills, slowest, lines)
}

// children are the ranks that a launcher has started.
func children(pid int) []string {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	return strings.Fields(string(out))
}
