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

// meeting is where ranks find each other: rank 0 listens, the others call. A connection opens with
// one line that says which run, what for and who; what follows belongs to whoever asked for it. No
// gradient ever crosses these connections.
type meeting struct {
	token string
	conns map[string]map[int]net.Conn // rank 0's: by purpose and rank
	came  chan struct{}               // a token per arrival
	lock  chan struct{}
	ln    net.Listener
}

// meetWithin is how long ranks wait for each other at the start.
const meetWithin = 60 * time.Second

// listen opens rank 0's side.
func listen(address, token string) (*meeting, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("rendezvous %q: want host:port", address)
	}
	ln, err := net.Listen("tcp", ":"+port)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("rendezvous %s: the port is in use, perhaps by another run: choose another", address)
		}
		return nil, fmt.Errorf("rendezvous %s: %w", address, err)
	}
	m := &meeting{token: token, ln: ln, conns: map[string]map[int]net.Conn{}, came: make(chan struct{}, 1), lock: make(chan struct{}, 1)}
	go m.accept()
	return m, nil
}

func (m *meeting) accept() {
	for {
		c, err := m.ln.Accept()
		if err != nil {
			return
		}
		go func() {
			var purpose string
			var rank int
			c.SetReadDeadline(time.Now().Add(10 * time.Second))
			line := readLine(c)
			if n, err := fmt.Sscanf(line, "haul "+m.token+" %s %d", &purpose, &rank); n != 2 || err != nil {
				c.Close() // not one of us
				return
			}
			c.SetReadDeadline(time.Time{})
			fmt.Fprintf(c, "haul %s\n", m.token)
			m.lock <- struct{}{}
			if m.conns[purpose] == nil {
				m.conns[purpose] = map[int]net.Conn{}
			}
			m.conns[purpose][rank] = c
			<-m.lock
			select {
			case m.came <- struct{}{}:
			default:
			}
		}()
	}
}

// readLine reads up to a newline and not a byte more: what follows is not ours.
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

// gather waits until ranks 1 to n-1 have called for a purpose, or the context ends.
func (m *meeting) gather(ctx context.Context, purpose string, n int) ([]net.Conn, error) {
	end := time.After(meetWithin)
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
			return nil, fmt.Errorf("rank %d of %d has not come within %v", missing, n, meetWithin)
		}
	}
}

// call opens a connection to rank 0, at whichever of its addresses answers.
func call(stop context.Context, addresses []string, token, purpose string, rank int) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(stop, meetWithin)
	defer cancel()
	var d net.Dialer
	for last := error(nil); ; {
		for _, a := range addresses {
			try, done := context.WithTimeout(ctx, 2*time.Second)
			c, err := d.DialContext(try, "tcp", a)
			done()
			if err != nil {
				last = err
				continue
			}
			c.SetDeadline(time.Now().Add(5 * time.Second))
			fmt.Fprintf(c, "haul %s %s %d\n", token, purpose, rank)
			if answer := readLine(c); answer != "haul "+token {
				last = fmt.Errorf("%s: somebody else listens there", a)
				c.Close()
				continue
			}
			c.SetDeadline(time.Time{})
			return c, nil
		}
		select {
		case <-ctx.Done():
			if stop.Err() != nil {
				return nil, stop.Err()
			}
			return nil, fmt.Errorf("rank %d cannot reach rank 0 at %s: %w", rank, strings.Join(addresses, ", "), last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// addresses are where this machine can be reached with a port, its own name for others first.
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

// tcp carries small things between ranks where there is no MPI: settings, a checkpoint at the
// start, figures of an evaluation.
type tcp struct {
	rank, n int
	conns   []net.Conn      // rank 0's, by rank; of the others one, to rank 0
	in      []*bufio.Reader // likewise
}
