package comm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

// Open joins the ranks that a launcher has started. It returns nil for a single process. With gpu,
// GPUs exchange gradients by NCCL, which needs no MPI. They pass through the host by MPI if a rank
// has no NCCL or HAUL_NCCL is off. The end of ctx stops the wait for missing ranks, but no call
// of a library.
func Open(ctx context.Context, p Place, gpu bool) (*World, error) {
	if alone := p.Size <= 1; alone && !(gpu && p.Launcher == Hand) {
		return nil, nil
	}
	if !gpu {
		return p.open(ctx, nil)
	}
	library, missing := openNCCL()
	if missing != nil && p.Size <= 1 {
		return nil, missing
	}
	c := &ncclSupport{library: library, missing: missing}
	w, err := p.open(ctx, c)
	if err != nil && missing != nil {
		err = fmt.Errorf("%w; gradients of GPUs then cross by MPI: %w", missing, err)
	}
	if err == nil && c.missing == nil {
		w.gpu = library
	} else if err == nil {
		w.why = c.missing.Error()
	}
	return w, err
}

// ncclSupport holds the NCCL library of this rank, or why it cannot be used. After allAgree,
// missing is nil only if every rank has NCCL.
type ncclSupport struct {
	library carrier
	missing error
}

// allAgree exchanges missing with the other ranks.
func (c *ncclSupport) allAgree(w *World) error {
	word := ""
	if c.missing != nil {
		word = fmt.Sprintf("rank %d: %v", w.Rank, c.missing)
	}
	all, err := w.Gather([]byte(word))
	if err != nil {
		return err
	}
	for _, text := range all {
		if len(text) > 0 && c.missing == nil {
			c.missing = errors.New(string(text))
		}
	}
	return nil
}

// Hand is the launcher of a process whose rank is set by flags. With it, a run of one GPU also puts
// NCCL into its graph, for measurements.
const Hand = "hand"

func (p Place) open(ctx context.Context, c *ncclSupport) (*World, error) {
	if p.MPI == "" {
		return p.openWithoutMPI(ctx, c)
	}
	m, err := openMPI(p)
	if err != nil {
		return nil, err
	}
	if err := p.sameWorld(m); err != nil {
		return nil, err
	}
	w := newWorld(p, m)
	if c != nil {
		if err := c.allAgree(w); err != nil {
			return nil, err
		}
	}
	return w, w.startWatch(ctx, os.Getenv("HAUL_WATCH"))
}

// sameWorld checks that the library agrees with the launcher on rank and size. A library of another
// family starts every process as rank 0 of 1, without an error.
func (p Place) sameWorld(m *mpi) error {
	if rank, n := m.rankAndSize(); n != p.Size || rank != p.Rank {
		return fmt.Errorf("%s says rank %d of %d, %s says rank %d of %d: the library is not the launcher's own (HAUL_MPI=path names another)", p.Launcher, p.Rank, p.Size, m.name(), rank, n)
	}
	return nil
}

// startWatch connects the watch. Rank 0 broadcasts its addresses and a token over MPI.
func (w *World) startWatch(ctx context.Context, how string) error {
	if how == "off" {
		return nil
	}
	var m *rendezvous
	var text string
	if w.Rank == 0 {
		var err error
		at := ":0"                                            // listen at all addresses: MPI does not know which one other machines reach
		if w.LocalSize == w.Size && w.Launcher != "mpiexec" { // mpiexec does not set LocalSize
			at = "127.0.0.1:0"
		}
		if m, err = listen(at, rand.Text()); err != nil {
			return err
		}
		_, port, _ := net.SplitHostPort(m.ln.Addr().String())
		text = strings.Join(append(addresses(port), m.token), " ")
	}
	b, err := w.Broadcast([]byte(text))
	if err != nil {
		return err
	}
	all := strings.Fields(string(b))
	at, token := all[:len(all)-1], all[len(all)-1]
	if w.Rank == 0 {
		conns, err := m.gather(ctx, "watch", w.Size)
		if err == nil {
			newWatch(w, conns, os.Stderr, os.Exit)
		}
		return errors.Join(err, m.ln.Close())
	}
	c, err := call(ctx, at, func() (string, error) { return token, nil }, "watch", w.Rank)
	if err != nil {
		return fmt.Errorf("%w (ranks watch each other over TCP; HAUL_WATCH=off goes without)", err)
	}
	newWatch(w, []net.Conn{c}, os.Stderr, os.Exit)
	return nil
}

// openWithoutMPI joins ranks that have no MPI launcher, at the rendezvous address. For ranks on the
// CPU, rank 0 then runs the PMI server that MPICH needs.
func (p Place) openWithoutMPI(ctx context.Context, c *ncclSupport) (*World, error) {
	var m *rendezvous
	var source tokens
	if p.Size > 1 {
		var err error
		if source, err = newTokens(p); err != nil {
			return nil, err
		}
	}
	if p.Rank == 0 {
		at, token, err := p.listenAt(), "", error(nil)
		if p.Size == 1 {
			at, token = "127.0.0.1:0", rand.Text() // no other rank connects
		} else {
			var forget func()
			if token, forget, err = source.create(); err != nil {
				return nil, err
			}
			defer forget()
		}
		if m, err = listen(at, token); err != nil {
			return nil, err
		}
		defer m.ln.Close()
	}
	connect := func(purpose string) ([]net.Conn, error) {
		if p.Rank == 0 {
			return m.gather(ctx, purpose, p.Size)
		}
		c, err := call(ctx, []string{p.Address}, source.current, purpose, p.Rank)
		return []net.Conn{c}, err
	}
	conns, err := connect("watch")
	if err != nil {
		return nil, err
	}
	var l links
	if c != nil {
		conns, err := connect("words")
		if err != nil {
			return nil, err
		}
		l = newTCP(p.Rank, p.Size, conns)
		if err := c.allAgree(newWorld(p, l)); err != nil {
			return nil, err
		}
	}
	// Tensors between hosts always travel by a library, never by tcp.
	if c == nil || c.missing != nil {
		if l, err = p.serveMPI(connect); err != nil {
			return nil, err
		}
	}
	w := newWorld(p, l)
	newWatch(w, conns, os.Stderr, os.Exit)
	return w, nil
}

// listenAt returns the address that rank 0 listens at: Place.Address, or HAUL_LISTEN if that
// address belongs to another machine that forwards connections (a service of Kubernetes).
func (p Place) listenAt() string {
	if at := os.Getenv("HAUL_LISTEN"); at != "" {
		return at
	}
	return p.Address
}

// serveMPI starts MPICH on every rank, with a PMI server in rank 0.
func (p Place) serveMPI(connect func(string) ([]net.Conn, error)) (links, error) {
	conns, err := connect("pmi")
	if err != nil {
		return nil, err
	}
	var own net.Conn
	var server *pmi
	if p.Rank > 0 {
		own = conns[0]
	} else {
		server = newPMI(p.Size, p.LocalSize)
		for _, c := range conns[1:] {
			server.start(c)
		}
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer ln.Close()
		if own, err = net.Dial("tcp", ln.Addr().String()); err != nil {
			return nil, err
		}
		c, err := ln.Accept()
		if err != nil {
			return nil, err
		}
		server.start(c)
	}
	f, err := own.(*net.TCPConn).File() // a duplicate descriptor in blocking mode, as C expects
	if err != nil {
		return nil, err
	}
	pmiEnvironment(int(f.Fd()), p)
	usedByC = append(usedByC, f, own)
	q := p
	q.MPI = MPICH
	mp, err := openMPI(q)
	if err != nil {
		return nil, err
	}
	if err := p.sameWorld(mp); err != nil || server == nil {
		return mp, err
	}
	return serving{mp, server}, nil
}

// serving is the MPI library of rank 0, which runs the PMI server until the other ranks finalize.
type serving struct {
	*mpi
	server *pmi
}

// finalizeTimeout limits how long rank 0 waits for the others to finalize after it has. It allows
// for a busy machine.
const finalizeTimeout = 10 * time.Second

func (s serving) close() error {
	err := s.mpi.close()
	s.server.wait(finalizeTimeout)
	return err
}

// usedByC holds connections that C uses: the garbage collector would close them.
var usedByC []any
