package comm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// rendezvous is where the ranks meet at the start: rank 0 listens, and the others connect. A
// connection begins with lines that prove the run's token and name the purpose and the rank
// (token.go). The caller then owns the connection. Gradients never use these connections.
type rendezvous struct {
	token string
	conns map[string]map[int]net.Conn // rank 0: connections by purpose and rank
	came  chan struct{}               // receives a token after an arrival
	lock  chan struct{}
	ln    net.Listener
}

// rendezvousTimeout limits how long ranks wait for each other at the start.
const rendezvousTimeout = 60 * time.Second

// listen makes rank 0 listen at the given address only.
func listen(address, token string) (*rendezvous, error) {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return nil, fmt.Errorf("rendezvous %q: want host:port", address)
	}
	ln, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("rendezvous %s: the port is in use, perhaps by another run: choose another", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("rendezvous %s: this machine, which is rank 0's, has no such address: name one of its own, or set HAUL_LISTEN to the host:port it shall bind", address)
	case err != nil:
		return nil, fmt.Errorf("rendezvous %s: %w", address, err)
	}
	m := &rendezvous{token: token, ln: ln, conns: map[string]map[int]net.Conn{}, came: make(chan struct{}, 1), lock: make(chan struct{}, 1)}
	go m.accept()
	return m, nil
}

func (m *rendezvous) accept() {
	for {
		c, err := m.ln.Accept()
		if err != nil {
			return
		}
		go func() {
			c.SetDeadline(time.Now().Add(10 * time.Second))
			purpose, rank, ok := admit(c, m.token)
			if !ok {
				c.Close() // not a rank of this run
				return
			}
			c.SetDeadline(time.Time{})
			m.lock <- struct{}{}
			if m.conns[purpose] == nil {
				m.conns[purpose] = map[int]net.Conn{}
			}
			if m.conns[purpose][rank] != nil {
				c.Close() // the first caller keeps the rank
			} else {
				m.conns[purpose][rank] = c
			}
			<-m.lock
			select {
			case m.came <- struct{}{}:
			default:
			}
		}()
	}
}

// readLine reads up to a newline and no byte more: the caller of the rendezvous reads the rest.
func readLine(c net.Conn) string {
	var b strings.Builder
	one := make([]byte, 1)
	for b.Len() < 256 {
		if _, err := c.Read(one); err != nil || one[0] == '\n' {
			break
		}
		b.WriteByte(one[0])
	}
	return b.String()
}

// gather waits until ranks 1 to n-1 have connected for a purpose, or the context ends.
func (m *rendezvous) gather(ctx context.Context, purpose string, n int) ([]net.Conn, error) {
	end := time.After(rendezvousTimeout)
	for {
		m.lock <- struct{}{}
		here := m.conns[purpose]
		if len(here) == n-1 {
			out := make([]net.Conn, n)
			for r, c := range here {
				if r < 1 || r >= n {
					<-m.lock
					return nil, fmt.Errorf("rank %d of %d called", r, n)
				}
				out[r] = c
			}
			<-m.lock
			return out, nil
		}
		missing := 0
		for r := 1; r < n; r++ {
			if here[r] == nil {
				missing = r
				break
			}
		}
		<-m.lock
		select {
		case <-m.came:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-end:
			return nil, fmt.Errorf("rank %d of %d has not come within %v to %s", missing, n, rendezvousTimeout, m.where())
		}
	}
}

// where describes the address that the other ranks must reach.
func (m *rendezvous) where() string {
	at := m.ln.Addr().String()
	if a, ok := m.ln.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		return at + ", which this machine alone can reach"
	}
	return at
}

// addresses returns the addresses of this machine with a port. Loopback addresses come after other
// addresses, the host name last.
func addresses(port string) []string {
	var out []string
	if all, err := net.InterfaceAddrs(); err == nil {
		var loop []string
		for _, a := range all {
			ip, ok := a.(*net.IPNet)
			switch {
			case !ok || ip.IP.IsLinkLocalUnicast():
			case ip.IP.IsLoopback():
				loop = append(loop, net.JoinHostPort(ip.IP.String(), port))
			default:
				out = append(out, net.JoinHostPort(ip.IP.String(), port))
			}
		}
		out = append(out, loop...)
	}
	if host, err := os.Hostname(); err == nil {
		out = append(out, net.JoinHostPort(host, port))
	}
	return out
}

// tcp carries small messages between ranks without MPI: settings, the first checkpoint, results of
// an evaluation.
type tcp struct {
	rank, n int
	conns   []net.Conn      // rank 0: by rank; other ranks: only rank 0's
	in      []*bufio.Reader // readers of conns
}
