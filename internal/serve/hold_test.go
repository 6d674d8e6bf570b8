package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A body that never ends holds its connection for its time and no longer: the answer comes, and
// then the end of the connection, on every route and before the token is looked at.
func TestUnfinishedBodies(t *testing.T) {
	t.Parallel() // most of it is waiting
	limits := Limits{Grace: time.Second, Stall: 300 * time.Millisecond, JSONTime: 600 * time.Millisecond, UploadTime: 600 * time.Millisecond}
	plain := open(t, func(o *Options) { o.Limits = limits })
	closed := open(t, func(o *Options) { o.Limits, o.Token = limits, "0123456789abcdef0123" })
	var all sync.WaitGroup
	for _, c := range []struct {
		x          *site
		head, what string
		status     int
	}{
		{plain, "POST /api/v1/solve", "a solve", 408},
		{plain, "POST /api/v1/doctor", "a trace", 408},
		{plain, "POST /api/v1/instances?name=a.vrp", "a file", 408},
		{plain, "POST /api/v1/nothing", "no route", 404},
		{plain, "POST /api/v1/runs", "a run where none may be started", 403},
		{plain, "PUT /api/v1/solve", "the wrong method", 405},
		{plain, "GET /runs", "a page", 200},
		{plain, "GET /healthz", "health", 200},
		{closed, "POST /api/v1/solve", "no token", 401},
	} {
		for _, size := range []string{"Content-Length: 200000", "Content-Length: 1000000", "Transfer-Encoding: chunked"} {
			for _, pause := range []time.Duration{0, 100 * time.Millisecond} {
				all.Go(func() {
					if err := c.x.holds(c.head, size, pause, c.status); err != nil {
						t.Errorf("%s, %s, a byte per %v: %v", c.what, size, pause, err)
					}
				})
			}
		}
	}
	all.Wait()
}

// holds sends a body that does not end, and wants an answer and then the end of the connection.
func (x *site) holds(head, size string, pause time.Duration, status int) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n", head, size)
	text := "{"
	if strings.HasPrefix(size, "Transfer") {
		text = "1\r\n{\r\n"
	}
	go func() {
		for _, err := io.WriteString(conn, text); err == nil && pause > 0; _, err = io.WriteString(conn, text) {
			time.Sleep(pause)
		}
	}()
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	if resp.StatusCode != status {
		return fmt.Errorf("%d, want %d", resp.StatusCode, status)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	if _, err := io.Copy(io.Discard, in); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection was held for %v", patience)
	}
	return nil
}

// A whole body leaves the connection open for the next request, also where nobody has read it.
func TestWholeBodiesKeepTheConnection(t *testing.T) {
	x := open(t, nil)
	conn := dial(t, x)
	in := bufio.NewReader(conn)
	body := fmt.Sprintf(square, "exact")
	for i := range 3 {
		fmt.Fprintf(conn, "POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != 200 || resp.Close {
			t.Fatalf("request %d: %+v, %v", i, resp, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
	}
}

// One address cannot take the others' room, and whoever is out is told whether the server lives.
func TestOneAddressDoesNotFillTheServer(t *testing.T) {
	x := open(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most, each = 12, 8
	c := newCrowd(ln, most, each, x.isProxy, x.healthy)
	c.side.patience = patience
	srv := &http.Server{Handler: x.handler, ErrorLog: silence()}
	go func() { _ = srv.Serve(c) }()
	defer srv.Close()
	at := ln.Addr().String()
	from := func(host string) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
		conn, err := d.Dial("tcp", at)
		if err != nil {
			t.Skipf("this machine has no %s: %v", host, err)
		}
		t.Cleanup(func() { conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(patience))
		return conn
	}
	ask := func(host, path string) (int, string) {
		conn := from(host)
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err.Error()
		}
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	if runtime.GOOS != "linux" {
		t.Skip("127.0.0.2 is an address of Linux's")
	}
	fill := func(host string, n int) {
		t.Helper()
		before := c.held()
		for range n {
			from(host)
		}
		soon(t, "the connections", func() bool { return c.held() == before+n })
	}
	fill("127.0.0.1", each-1)
	if status, _ := ask("127.0.0.1", "/api/v1/about"); status != 200 {
		t.Errorf("the last of an address: %d", status)
	}
	soon(t, "that it leaves", func() bool { return c.held() == each-1 || c.held() == each })
	for c.held() < each {
		fill("127.0.0.1", 1)
	}
	if status, _ := ask("127.0.0.1", "/api/v1/about"); status != 503 {
		t.Errorf("one past an address's room: %d", status)
	}
	if status, text := ask("127.0.0.1", "/healthz"); status != 200 || text != "ok\n" {
		t.Errorf("health past an address's room: %d %q", status, text)
	}
	if status, _ := ask("127.0.0.2", "/api/v1/about"); status != 200 {
		t.Errorf("another address: %d", status)
	}
	for c.held() < most {
		fill("127.0.0.3", 1)
	}
	if status, _ := ask("127.0.0.4", "/api/v1/about"); status != 503 {
		t.Errorf("one past all room: %d", status)
	}
	// silent ones fill the side door, and make room for who asks
	for range 3 * sideMost {
		from("127.0.0.5")
	}
	for range 5 {
		if status, text := ask("127.0.0.4", "/healthz"); status != 200 || text != "ok\n" {
			t.Errorf("health past all room: %d %q", status, text)
		}
	}
	conn := from("127.0.0.4")
	fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 503 {
		t.Errorf("health for another host: %v, %v", resp, err)
	}
}

func (c *crowd) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in
}

// What is wrong with a body on the wire is the client's fault, and said so.
func TestBrokenBodies(t *testing.T) {
	x := open(t, nil)
	for _, path := range []string{"/api/v1/solve", "/api/v1/doctor", "/api/v1/instances?name=a.vrp"} {
		for _, c := range []struct{ body, words string }{
			{"zz\r\n{}\r\n0\r\n\r\n", "the body cannot be read: invalid byte in chunk length"},
			{"2\r\n{}zz0\r\n\r\n", "the body cannot be read: malformed chunked encoding"},
			{"2\r\n{", "the body ends before"},
		} {
			conn := dial(t, x)
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%s", path, c.body)
			if strings.HasPrefix(c.words, "the body ends") {
				if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s %q: %v", path, c.body, err)
			}
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != 400 || !strings.Contains(string(text), c.words) {
				t.Errorf("%s %q: %d %s", path, c.body, resp.StatusCode, text)
			}
		}
	}
}
