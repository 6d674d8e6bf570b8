package comm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego"
)

// TestRankProcess is a rank of TestRanksByTheLibrary, which starts it.
func TestRankProcess(t *testing.T) {
	rank, err := strconv.Atoi(os.Getenv("COMM_TEST_RANK"))
	if err != nil {
		t.Skip("not started as a rank")
	}
	size, _ := strconv.Atoi(os.Getenv("COMM_TEST_SIZE"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := Open(ctx, Place{Launcher: "haul", Rank: rank, Size: size, LocalRank: rank, LocalSize: size, Address: os.Getenv("COMM_TEST_AT"), Token: strings.Repeat("token", 4)}, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := w.Broadcast([]byte(strings.Repeat("x", 5-rank)))
	if err != nil || string(b) != "xxxxx" {
		t.Errorf("broadcast %q, %v", b, err)
	}
	all, err := w.Gather(bytes.Repeat([]byte{byte('a' + rank)}, rank))
	for r, text := range all {
		if string(text) != strings.Repeat(string(rune('a'+r)), r) {
			t.Errorf("gathered %q of rank %d", text, r)
		}
	}
	if err != nil || len(all) != size {
		t.Errorf("gathered %d, %v", len(all), err)
	}
	// Lengths that are no multiple of the number of ranks, and a length below it.
	for _, length := range []int{1, 3, 64, 1003} {
		grad, want := make([]float32, length), make([]float32, length)
		for i := range grad {
			grad[i] = float32((i + 1) * (rank + 1))
			for r := range size {
				want[i] += float32((i + 1) * (r + 1))
			}
		}
		if err := w.Exchange(grad); err != nil || !slices.Equal(grad, want) {
			t.Errorf("%d numbers: %v, %v", length, grad[:min(length, 8)], err)
		}
	}
	// An error of the library has the library's message.
	l := w.links
	if s, ok := l.(serving); ok {
		l = s.mpi
	}
	m := l.(*mpi)
	err = m.do(func() error {
		fn, _ := purego.Dlsym(m.lib, "MPI_Bcast")
		r, _, _ := purego.SyscallN(fn, 0, 0, m.abi.byte, 99, m.world)
		return m.check("MPI_Bcast", r)
	})
	if err == nil || !strings.HasPrefix(err.Error(), "MPI_Bcast: Invalid root") {
		t.Errorf("a root that is not there: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestRanksByTheLibrary: processes without a launcher find each other by MPICH, and their
// collectives return the same as those of ranks in one process.
func TestRanksByTheLibrary(t *testing.T) {
	if _, _, err := dlopen(purego.RTLD_LOCAL, candidates(Place{})...); err != nil {
		t.Skip("MPICH's library is not here: Debian has it as libmpich12")
	}
	for _, n := range []int{2, 3} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := ln.Addr().String()
		ln.Close()
		said := make(chan error, n)
		for r := range n {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestRankProcess$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("COMM_TEST_RANK=%d", r), fmt.Sprintf("COMM_TEST_SIZE=%d", n), "COMM_TEST_AT="+at)
			go func() {
				out, err := cmd.CombinedOutput()
				if err != nil {
					err = fmt.Errorf("rank %d of %d: %w\n%s", r, n, err, out)
				}
				said <- err
			}()
		}
		for range n {
			if err := <-said; err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTheLibraryIsTheOneNamed: HAUL_MPI takes precedence over the families of MPI, and a library of
// another family than the launcher's is refused.
func TestTheLibraryIsTheOneNamed(t *testing.T) {
	t.Setenv("HAUL_MPI", "")
	if got := candidates(Place{MPI: OpenMPI}); !slices.Contains(got, "libmpi.so.40") {
		t.Errorf("Open MPI's launcher is given %v", got)
	}
	if got := candidates(Place{MPI: MPICH}); !slices.Contains(got, "libmpich.so.12") || slices.Contains(got, "libmpi.so.40") {
		t.Errorf("MPICH's launcher is given %v", got)
	}
	t.Setenv("HAUL_MPI", "/opt/lib.so")
	if got := candidates(Place{MPI: OpenMPI}); !slices.Equal(got, []string{"/opt/lib.so"}) {
		t.Errorf("HAUL_MPI is passed over for %v", got)
	}
	p := Place{Launcher: "mpirun", Rank: 1, Size: 2}
	for _, c := range []struct {
		rank, n int
		ok      bool
	}{{1, 2, true}, {0, 2, false}, {1, 3, false}, {0, 1, false}} {
		err := p.sameWorld(&mpi{rank: c.rank, n: c.n})
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("says rank %d of %d: the library", c.rank, c.n)) {
			t.Errorf("rank %d of %d: %v", c.rank, c.n, err)
		}
	}
}

// TestCallsToStrangersAreNotKept: a rank that reaches another program's listener closes the
// connection and retries until the time limit.
func TestCallsToStrangersAreNotKept(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(c, "220 mail.example.org ESMTP")
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	c, err := call(ctx, []string{ln.Addr().String()}, knows("secret"), "watch", 1)
	if err == nil {
		c.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want to wait until there is no time left", err)
	}
}

// TestMachinesOfRanks: MPICH receives the number of ranks per machine if it divides the number of
// ranks, and else 1.
func TestMachinesOfRanks(t *testing.T) {
	for _, c := range []struct {
		n, local int
		want     string
	}{{4, 2, "(vector,(0,2,2))"}, {4, 4, "(vector,(0,1,4))"}, {4, 3, "(vector,(0,4,1))"}, {4, 0, "(vector,(0,4,1))"}, {4, 1, "(vector,(0,4,1))"}, {3, 4, "(vector,(0,3,1))"}} {
		if got := newPMI(c.n, c.local).keys["PMI_process_mapping"]; got != c.want {
			t.Errorf("%d ranks, %d to a machine: %s, want %s", c.n, c.local, got, c.want)
		}
	}
}

// TestLongMessagesAreTruncated: a message is truncated to the length that two bytes can hold, and
// only then.
func TestLongMessagesAreTruncated(t *testing.T) {
	for _, n := range []int{1<<14 - 1, 1 << 14, 1<<14 + 1, 1 << 17} {
		a, b := net.Pipe()
		go (&line{Conn: a}).send(msgFail, strings.Repeat("x", n))
		head := make([]byte, 3)
		if _, err := io.ReadFull(b, head); err != nil || head[0] != msgFail || int(binary.LittleEndian.Uint16(head[1:])) != min(n, 1<<14) {
			t.Errorf("%d bytes are announced as % x, %v", n, head, err)
		}
		a.Close()
		b.Close()
	}
}

// TestAFailedRankEndsTheOthers: Fail ends the other ranks.
func TestAFailedRankEndsTheOthers(t *testing.T) {
	_, b, words, ended := watchedPair(t)
	(&World{watch: b}).Fail(errors.New("no memory"))
	if code := <-ended; code == 0 || !strings.Contains(words.String(), "rank 1 of 2 failed: no memory") {
		t.Errorf("exit %d, %q", code, words)
	}
}
