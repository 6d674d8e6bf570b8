// Command serveflood starts haul serve and floods it with requests whose bodies never end.
//
// What a reader could break: it floods the server that it started itself, on loopback, with a
// number of connections and for a time that are bounded; it takes no address.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	mostConnections = 8192
	mostSeconds     = 120
)

// attack is one way to hold a connection.
type attack struct {
	name  string
	head  string
	pause time.Duration // between two bytes; 0: one byte and silence
}

var attacks = []attack{
	{"one byte of 200,000 for a solve", "POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n", 0},
	{"a byte per 2 s for a page", "GET /runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n", 2 * time.Second},
	{"a byte per 2 s for a solve", "POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n", 2 * time.Second},
	{"half a header", "GET /runs HTTP/1.1\r\nHost: localhost\r\nX-A: ", 0},
}

func main() {
	haul := flag.String("haul", "", "the program")
	count := flag.Int("connections", 4096, fmt.Sprintf("that are opened at once, up to %d", mostConnections))
	seconds := flag.Int("seconds", 45, fmt.Sprintf("that each flood is held for, up to %d", mostSeconds))
	flag.Parse()
	if *count < 1 || *count > mostConnections || *seconds < 1 || *seconds > mostSeconds {
		log.Fatalf("--connections goes to %d and --seconds to %d", mostConnections, mostSeconds)
	}
	cmd := exec.Command(*haul, "serve", "--runs", "runs", "--addr", "127.0.0.1:0", "--json")
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	check(err)
	var at struct{ URL string }
	check(json.Unmarshal([]byte(line), &at))
	host := strings.TrimSuffix(strings.TrimPrefix(at.URL, "http://"), "/")
	ok := true
	for _, spread := range []int{1, 4} {
		for _, a := range attacks {
			ok = flood(host, a, *count, spread, time.Duration(*seconds)*time.Second) && ok
		}
	}
	if !ok {
		_ = cmd.Process.Kill()
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// flood opens connections from so many addresses and holds them, while a client at an address of
// its own asks for health, for a page and for solves. From one address all of these must be
// answered; from many the room for connections is full, and health must.
func flood(host string, a attack, count, addresses int, hold time.Duration) bool {
	var held, gone atomic.Int64
	var longest atomic.Int64
	end := time.Now().Add(hold)
	var all sync.WaitGroup
	for i := range count {
		all.Go(func() {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%addresses))}, Timeout: 10 * time.Second}
			conn, err := d.Dial("tcp", host)
			if err != nil {
				return
			}
			defer conn.Close()
			began := time.Now()
			held.Add(1)
			_ = conn.SetDeadline(end)
			_, _ = io.WriteString(conn, a.head+"{")
			if a.pause > 0 {
				go func() {
					for {
						time.Sleep(a.pause)
						if _, err := io.WriteString(conn, " "); err != nil {
							return
						}
					}
				}()
			}
			_, err = io.Copy(io.Discard, conn)
			if t, slow := err.(net.Error); !slow || !t.Timeout() {
				gone.Add(1)
				for took := int64(time.Since(began)); ; {
					if was := longest.Load(); took <= was || longest.CompareAndSwap(was, took) {
						break
					}
				}
			}
		})
	}
	health, others := ask{}, ask{}
	for i := 0; time.Now().Before(end); i++ {
		health.try(host, net.IPv4(127, 0, 0, 1), "GET", "/healthz", "")
		others.try(host, net.IPv4(127, 0, 2, byte(1+i%200)), "GET", "/runs", "")
		others.try(host, net.IPv4(127, 0, 2, byte(1+i%200)), "POST", "/api/v1/solve", `{"coords": [[0,0],[1,1],[2,0]], "demands": [0,1,1], "capacity": 2, "method": "exact"}`)
		time.Sleep(100 * time.Millisecond)
	}
	all.Wait()
	fmt.Printf("%s, %d connections of %d addresses for %v:\n", a.name, held.Load(), addresses, hold)
	fmt.Printf("  health %s; others %s\n", &health, &others)
	fmt.Printf("  %d of %d connections ended by the server, the last after %.1f s\n", gone.Load(), held.Load(), time.Duration(longest.Load()).Seconds())
	ok := health.failed == 0 && gone.Load() == held.Load()
	if addresses == 1 {
		ok = ok && others.failed == 0
	}
	if !ok {
		fmt.Println("  FAILED")
	}
	return ok
}

// ask counts what one kind of question got.
type ask struct {
	answered, failed int
	slowest          time.Duration
	last             string
}

func (a *ask) try(host string, from net.IP, method, path, body string) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext}}
	r, err := http.NewRequest(method, "http://"+host+path, strings.NewReader(body))
	check(err)
	began := time.Now()
	resp, err := client.Do(r)
	took := time.Since(began)
	a.slowest = max(a.slowest, took)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err == nil && resp.StatusCode == 200 {
		a.answered++
		return
	}
	a.failed++
	if a.last = fmt.Sprint(err); err == nil {
		a.last = resp.Status
	}
}

func (a *ask) String() string {
	text := fmt.Sprintf("answered %d of %d, the slowest after %d ms", a.answered, a.answered+a.failed, a.slowest.Milliseconds())
	if a.last != "" {
		text += ", the last other answer " + a.last
	}
	return text
}
