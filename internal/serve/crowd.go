package serve

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// What a reader could break: /healthz answers under any load. A connection beyond the limit is
// therefore not closed at once: a side door reads one header, answers if it asks for health, and
// refuses everything else. The side door holds few connections for a short time, and the oldest
// gives way to the next, so that silent connections cannot fill it.

// crowd lets in so many connections in all and so many of one address. Who is in is served on.
type crowd struct {
	net.Listener
	most, each int
	side       *sideDoor
	free       func(host string) bool // a proxy, which speaks for many

	mu sync.Mutex
	in int
	of map[string]int // connections by address
}

func newCrowd(ln net.Listener, most, each int, free func(string) bool, healthy func(*http.Request) bool) *crowd {
	side := &sideDoor{healthy: healthy, most: sideMost, patience: sidePatience}
	return &crowd{Listener: ln, most: most, each: min(each, most), free: free, side: side, of: map[string]int{}}
}

func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if host := hostOf(conn.RemoteAddr().String()); c.enter(host) {
			return &counted{Conn: conn, crowd: c, host: host}, nil
		}
		c.side.take(conn)
	}
}

func (c *crowd) Close() error {
	c.side.close()
	return c.Listener.Close()
}

func (c *crowd) enter(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in >= c.most || c.of[host] >= c.each {
		return false
	}
	c.in++
	if !c.free(host) {
		c.of[host]++
	}
	return true
}

func (c *crowd) leave(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in--
	if c.of[host]--; c.of[host] <= 0 {
		delete(c.of, host)
	}
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

type counted struct {
	net.Conn
	crowd *crowd
	host  string
	once  sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.crowd.leave(c.host) })
	return c.Conn.Close()
}

// CloseWrite lets net/http end its side first, so that the answer to a body that was not read to
// its end is not lost with the connection.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

const (
	sideMost     = 64
	sidePatience = time.Second
	sideHeader   = 8 << 10 // bytes

	full = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 25\r\n\r\ntoo many connections now\n"
	well = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\nok\n"
)

// sideDoor hears connections for which there is no room.
type sideDoor struct {
	healthy  func(*http.Request) bool // whether a request asks for health and may
	most     int
	patience time.Duration

	mu     sync.Mutex
	queue  []net.Conn // oldest first
	closed bool
}

// take hears a connection and closes it. It does not wait.
func (d *sideDoor) take(conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(d.patience))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		conn.Close()
		return
	}
	if len(d.queue) >= d.most {
		_ = d.queue[0].SetReadDeadline(time.Now()) // it is told what a silent one is told
		d.queue = d.queue[1:]
	}
	d.queue = append(d.queue, conn)
	go d.hear(conn)
}

func (d *sideDoor) hear(conn net.Conn) {
	defer func() {
		d.forget(conn)
		conn.Close()
	}()
	words := full
	r, err := http.ReadRequest(bufio.NewReader(io.LimitReader(conn, sideHeader)))
	if err == nil && d.healthy(r) {
		words = well
	}
	_ = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = io.WriteString(conn, words) // a few bytes into an empty buffer: this does not wait
}

func (d *sideDoor) forget(conn net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, c := range d.queue {
		if c == conn {
			d.queue = append(d.queue[:i], d.queue[i+1:]...)
			return
		}
	}
}

func (d *sideDoor) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.queue {
		_ = c.SetReadDeadline(time.Now())
	}
}
