package comm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"haul/internal/kernel"
	"haul/internal/rng"
)

// each runs f on n ranks at once and returns their errors.
func each(worlds []*World, f func(w *World) error) []error {
	errs := make([]error, len(worlds))
	var all sync.WaitGroup
	for i, w := range worlds {
		all.Go(func() { errs[i] = f(w) })
	}
	all.Wait()
	return errs
}

// TestExchangeIsTheTree: gradients that n ranks hold in blocks add up to the sum of a single
// process, bit for bit, also if the gradient's length is not a multiple of n.
func TestExchangeIsTheTree(t *testing.T) {
	const lanes = 8
	for _, length := range []int{1, 3, 16, 1000, 1003} {
		lane := make([][]float32, lanes)
		for l := range lane {
			lane[l] = make([]float32, length)
			for i := range lane[l] {
				w := rng.At(7, uint64(i), uint32(l), rng.Learner)
				lane[l][i] = (rng.Float(w[0]) - 0.5) * float32(math.Pow(10, float64(w[1]%8)))
			}
		}
		sum := func(from, to int) []float32 {
			own := make([][]float32, to-from)
			for l := range own {
				own[l] = slices.Clone(lane[from+l])
			}
			kernel.Tree(len(own), nil, func(into, from int) {
				for i := range own[into] {
					own[into][i] += own[from][i]
				}
			})
			return own[0]
		}
		want := sum(0, lanes)
		for _, n := range []int{2, 4, 8} {
			for rank, err := range each(Local(n), func(w *World) error {
				from, to := w.Cut(lanes)
				grad := sum(from, to)
				if err := w.Exchange(grad); err != nil {
					return err
				}
				if !slices.Equal(grad, want) {
					return errors.New("the sum has other bits")
				}
				return nil
			}) {
				if err != nil {
					t.Errorf("%d numbers, rank %d of %d: %v", length, rank, n, err)
				}
			}
		}
	}
}

func TestWordsReachEverybody(t *testing.T) {
	for rank, err := range each(Local(3), func(w *World) error {
		b, err := w.Broadcast([]byte(strings.Repeat("x", 5-w.Rank)))
		if err != nil || string(b) != "xxxxx" {
			return fmt.Errorf("broadcast %q, %v", b, err)
		}
		all, err := w.Gather(bytes.Repeat([]byte{byte('a' + w.Rank)}, w.Rank))
		if diff := cmp.Diff([]string{"", "b", "cc"}, []string{string(all[0]), string(all[1]), string(all[2])}); err != nil || diff != "" {
			return fmt.Errorf("gather: %s %v", diff, err)
		}
		v := []float64{1, float64(w.Rank)}
		if err := w.Sum(v); err != nil || v[0] != 3 || v[1] != 3 {
			return fmt.Errorf("sum %v, %v", v, err)
		}
		from, to := w.Cut(7)
		own := make([]float64, to-from)
		for i := range own {
			own[i] = float64(from + i)
		}
		got := make([]float64, 7)
		if err := w.Collect(got, own, false); err != nil || !slices.Equal(got, []float64{0, 1, 2, 3, 4, 5, 6}) {
			return fmt.Errorf("collect %v, %v", got, err)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// TestRanksStopTogether: all ranks end after the same update, for any rank that is asked to stop.
func TestRanksStopTogether(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	worlds := Local(3)
	ends := make([]int, 3)
	for rank, err := range each(worlds, func(w *World) error {
		agreed := w.Agree(ctx)
		for done := 0; ; done++ {
			stop, err := w.Stop(agreed, done)
			if stop || err != nil {
				ends[w.Rank] = done
				return err
			}
			if done == 100 && w.Rank == 0 {
				cancel()
			}
			if done > 1e6 {
				return errors.New("nobody stops")
			}
		}
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
	if ends[0] < 101 || ends[1] != ends[0] || ends[2] != ends[0] {
		t.Errorf("ranks end after updates %v", ends)
	}
}

func TestAWorldOfOneCostsNothing(t *testing.T) {
	w, err := Open(t.Context(), Place{Size: 1}, false)
	if w != nil || err != nil {
		t.Fatal(w, err)
	}
	b, err := w.Broadcast([]byte("x"))
	if w.Number() != 0 || w.Ranks() != 1 || w.Peer() != nil || string(b) != "x" || err != nil || w.Close() != nil || w.Barrier() != nil {
		t.Error("a process alone waits for somebody")
	}
	if from, to := w.Cut(5); from != 0 || to != 5 {
		t.Errorf("a process alone takes [%d, %d) of 5", from, to)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = w.Stop(t.Context(), 1) }); n != 0 {
		t.Errorf("asking whether to stop allocates %v times", n)
	}
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want Place
		err  string
	}{
		{"alone", nil, Place{Launcher: "nobody", Size: 1, LocalSize: 1}, ""},
		{"torchrun", map[string]string{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "node1", "MASTER_PORT": "29500"},
			Place{"torchrun", "", 3, 4, 1, 2, "node1:29501", ""}, ""},
		{"Open MPI", map[string]string{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"},
			Place{"mpirun", OpenMPI, 1, 2, 0, 1, "", ""}, ""},
		{"Open MPI in a job script", map[string]string{"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "7", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"},
			Place{"mpirun", OpenMPI, 1, 2, 0, 1, "", ""}, ""},
		{"a job script itself", map[string]string{"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "7"}, Place{Launcher: "nobody", Size: 1, LocalSize: 1}, ""},
		{"hydra", map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}, Place{"mpirun", MPICH, 1, 2, 1, 2, "", ""}, ""},
		{"hydra under Slurm", map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
			Place{"mpirun", MPICH, 1, 2, 1, 2, "", ""}, ""},
		{"srun", map[string]string{"SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7", "SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
			"SLURM_STEP_NODELIST": "node[07-08]", "MASTER_PORT": "4000"}, Place{"srun", "", 5, 8, 1, 4, "node07:4000", ""}, ""},
		{"srun with pmi2", map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "1", "SLURM_STEP_TASKS_PER_NODE": "2", "PMI_RANK": "1", "PMI_SIZE": "2"},
			Place{"srun", MPICH, 1, 2, 1, 2, "", ""}, ""},
		{"srun with pmix", map[string]string{"SLURM_STEP_ID": "0", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_TASKS_PER_NODE": "2", "PMIX_RANK": "1"},
			Place{"srun", OpenMPI, 1, 2, 0, 2, "", ""}, ""},
		{"no number", map[string]string{"OMPI_COMM_WORLD_RANK": "x", "OMPI_COMM_WORLD_SIZE": "2"}, Place{}, `OMPI_COMM_WORLD_RANK is "x": mpirun should have set a number`},
		{"past the end", map[string]string{"PMI_RANK": "2", "PMI_SIZE": "2"}, Place{}, "PMI_RANK is 2 and PMI_SIZE is 2: a rank is at least 0 and below their number"},
	} {
		got, err := Detect(func(k string) string { return c.env[k] })
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: %v, want %s", c.name, err, c.err)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.name, err, diff)
		}
	}
}

func TestFirstNode(t *testing.T) {
	for list, want := range map[string]string{"a": "a", "a,b": "a", "n[07-09,12],x": "n07", "n[3]": "n3", "x,n[1-2]": "x", "": "", "n[": ""} {
		if got := firstNode(list); got != want {
			t.Errorf("first of %q is %q, want %q", list, got, want)
		}
	}
}

func TestPMIFields(t *testing.T) {
	want := map[string]string{"cmd": "put", "kvsname": "haul", "key": "k", "value": "a b=c"}
	if diff := cmp.Diff(want, fields("cmd=put kvsname=haul key=k value=a b=c")); diff != "" {
		t.Error(diff)
	}
}

// Before, rank 0's process ended while a rank waited for its answer to finalize, and that rank
// printed "readline failed".
func TestPMIWaitsForTheLast(t *testing.T) {
	s := newPMI(2, 2)
	var ranks []net.Conn
	for range 2 {
		rank, server := net.Pipe()
		s.start(server)
		ranks = append(ranks, rank)
	}
	left := make(chan struct{})
	go func() {
		s.wait(patience)
		close(left)
	}()
	for i, rank := range ranks {
		select {
		case <-left:
			t.Fatalf("the server leaves with %d ranks to come", len(ranks)-i)
		case <-time.After(20 * time.Millisecond):
		}
		fmt.Fprintln(rank, "cmd=finalize")
		if line, err := bufio.NewReader(rank).ReadString('\n'); line != "cmd=finalize_ack rc=0\n" {
			t.Fatalf("the answer is %q, %v", line, err)
		}
	}
	<-left
	rank, server := net.Pipe()
	defer rank.Close()
	s.start(server)
	s.wait(time.Millisecond) // a rank that does not finalize blocks for no longer than the limit
}

// patience limits the wait of a test for an event, on a busy machine too.
const patience = 2 * time.Minute

// watched returns two ranks that watch each other. ended receives the code of each call of exit.
func watchedPair(t *testing.T) (a, b *watch, words *bytes.Buffer, ended chan int) {
	t.Helper()
	m, err := listen("127.0.0.1:0", "t")
	if err != nil {
		t.Fatal(err)
	}
	defer m.ln.Close()
	_, port, _ := net.SplitHostPort(m.ln.Addr().String())
	c, err := call(t.Context(), []string{"127.0.0.1:" + port}, knows("t"), "watch", 1)
	if err != nil {
		t.Fatal(err)
	}
	conns, err := m.gather(t.Context(), "watch", 2)
	if err != nil {
		t.Fatal(err)
	}
	ended, words = make(chan int, 2), new(bytes.Buffer)
	worlds := Local(2)
	a = newWatch(worlds[0], conns, words, func(code int) { ended <- code })
	b = newWatch(worlds[1], []net.Conn{c}, io.Discard, func(int) {})
	t.Cleanup(func() { a.leave(); b.leave() })
	return a, b, words, ended
}

func TestADeadRankEndsTheOthers(t *testing.T) {
	_, b, words, ended := watchedPair(t)
	b.leaving.Store(true) // only the connection ends here, not the process
	b.conns[0].Close()
	select {
	case code := <-ended:
		if code != 1 || !strings.Contains(words.String(), "haul: rank 1 of 2 is gone") || strings.Count(words.String(), "\n") != 1 {
			t.Errorf("code %d, %q", code, words)
		}
	case <-time.After(patience):
		t.Error("nobody noticed")
	}
}

func TestAFailedRankIsNamed(t *testing.T) {
	_, b, words, ended := watchedPair(t)
	b.fail(errors.New("disk full\nreally"))
	<-ended
	if !strings.Contains(words.String(), "haul: rank 1 of 2 failed: disk full; really") {
		t.Errorf("%q", words)
	}
}

func TestLeavingIsNoDeath(t *testing.T) {
	a, b, words, ended := watchedPair(t)
	b.leave()
	for !a.conns[1].left.Load() {
		time.Sleep(time.Millisecond)
	}
	b.conns[0].Close()
	select {
	case <-ended:
		t.Errorf("a goodbye was taken for a death: %q", words)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestAnyRankMayAskToStop(t *testing.T) {
	a, b, _, _ := watchedPair(t)
	b.world.ask()
	for end := time.Now().Add(patience); !a.world.Asked(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("rank 0 has not heard of it")
		}
	}
}

// named implements links only with a name.
type named struct{ links }

func (named) name() string { return "sockets" }

// TestAWorldSaysWhatCarriesIt: String names the libraries, and why GPUs exchange over the host.
func TestAWorldSaysWhatCarriesIt(t *testing.T) {
	w := &World{Place: Place{Size: 2, Launcher: "haul"}, links: named{}}
	for why, want := range map[string]string{
		"":        "2 ranks, started by haul, over sockets",
		"no NCCL": "2 ranks, started by haul, over sockets, gradients through page-locked memory (no NCCL)",
	} {
		w.why = why
		if got := w.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
