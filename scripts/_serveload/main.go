// Command serveload starts haul serve and measures how it bears load: solves per second with their
// latency, idle event streams and the memory they take, an upload past the limit, and minutes of
// everything mixed with memory and goroutines over time.
//
// What a reader could break: solves come by the clock, not when the last one was answered, and a
// latency counts from when its request was due. A server that falls behind shows it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

type server struct {
	url, host string
	client    *http.Client
	cmd       *exec.Cmd
}

func start(haul string) *server {
	cmd := exec.Command(haul, "serve", "--runs", "runs", "--addr", "127.0.0.1:0", "--json")
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	check(err)
	var at struct{ URL string }
	check(json.Unmarshal([]byte(line), &at))
	s := &server{url: strings.TrimSuffix(at.URL, "/"), cmd: cmd}
	s.host = strings.TrimPrefix(s.url, "http://")
	s.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}}
	return s
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// gauges reads what the server says of itself.
func (s *server) gauges() map[string]float64 {
	resp, err := s.client.Get(s.url + "/metrics")
	check(err)
	defer resp.Body.Close()
	out := map[string]float64{}
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if name, value, ok := strings.Cut(in.Text(), " "); ok {
			if v, err := strconv.ParseFloat(value, 64); err == nil {
				out[name] = v
			}
		}
	}
	return out
}

func (s *server) state() string {
	g := s.gauges()
	return fmt.Sprintf("%.0f MB resident, %.0f goroutines, %.0f open files", g["process_resident_memory_bytes"]/1e6, g["go_goroutines"], g["process_open_fds"])
}

// most is the largest resident memory so far, in megabytes, where the kernel tells.
func (s *server) most() float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmHWM:" {
			kb, _ := strconv.ParseFloat(f[1], 64)
			return kb / 1e3
		}
	}
	return 0
}

// instance is a random problem, as JSON.
func instance(n int, capacity int, method string) []byte {
	coords, demands := [][2]float64{{rand.Float64(), rand.Float64()}}, []int{0}
	for range n {
		coords, demands = append(coords, [2]float64{rand.Float64(), rand.Float64()}), append(demands, 1+rand.IntN(9))
	}
	text, err := json.Marshal(map[string]any{"coords": coords, "demands": demands, "capacity": capacity, "method": method, "decode": "greedy"})
	check(err)
	return text
}

// tally is latencies of one kind.
type tally struct {
	mu     sync.Mutex
	took   []time.Duration
	failed map[string]int
}

func (t *tally) add(d time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		if t.failed == nil {
			t.failed = map[string]int{}
		}
		t.failed[err.Error()]++
		return
	}
	t.took = append(t.took, d)
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.took)
	at := func(q float64) time.Duration {
		if len(t.took) == 0 {
			return 0
		}
		return t.took[min(len(t.took)-1, int(q*float64(len(t.took))))].Round(100 * time.Microsecond)
	}
	failures := 0
	for _, n := range t.failed {
		failures += n
	}
	return fmt.Sprintf("%d answered, %d failed %v; p50 %v, p90 %v, p99 %v, max %v", len(t.took), failures, t.failed, at(0.5), at(0.9), at(0.99), at(1))
}

func (s *server) solve(body []byte) error {
	resp, err := s.client.Post(s.url+"/api/v1/solve", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != 200 || !bytes.Contains(text, []byte(`"routes"`))) {
		err = fmt.Errorf("%d %s", resp.StatusCode, text)
	}
	return err
}

// paced asks so many times per second until ctx ends.
func (s *server) paced(ctx context.Context, perSecond int, body func() []byte, t *tally) {
	var wg sync.WaitGroup
	defer wg.Wait()
	began := time.Now()
	for i := 0; ; i++ {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(perSecond))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(due)):
		}
		text := body()
		wg.Go(func() {
			err := s.solve(text)
			t.add(time.Since(due), err)
		})
	}
}

func (s *server) solves(length time.Duration) {
	var warm, policy, exact tally
	byPolicy, byExact := func() []byte { return instance(20, 30, "policy") }, func() []byte { return instance(10, 30, "exact") }
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	s.paced(ctx, 50, byPolicy, &warm)
	cancel()
	ctx, cancel = context.WithTimeout(context.Background(), length)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { s.paced(ctx, 200, byPolicy, &policy) })
	wg.Go(func() { s.paced(ctx, 50, byExact, &exact) })
	wg.Wait()
	fmt.Printf("solves for %v, load average %s\n  policy, 20 customers, 200/s: %s\n  exact, 10 customers, 50/s:  %s\n  server: %s\n", length, loadAverage(), &policy, &exact, s.state())
}

func (s *server) streams(n int) {
	before := s.gauges()["process_resident_memory_bytes"]
	var all []net.Conn
	for range n {
		c, err := net.Dial("tcp", s.host)
		check(err)
		fmt.Fprint(c, "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		all = append(all, c)
	}
	for s.gauges()["haul_event_streams"] < float64(n) {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(20 * time.Second) // past a beat
	g := s.gauges()
	fmt.Printf("%.0f idle event streams: %.0f MB resident, %.0f MB before them; %.0f goroutines\n", g["haul_event_streams"], g["process_resident_memory_bytes"]/1e6, before/1e6, g["go_goroutines"])
	for _, c := range all {
		c.Close()
	}
	for s.gauges()["haul_event_streams"] > 0 {
		time.Sleep(50 * time.Millisecond)
	}
}

// events is a trace without an end.
type events struct {
	sent, at int64
	rest     []byte
}

func (e *events) Read(p []byte) (int, error) {
	for len(e.rest) < len(p) {
		e.rest = fmt.Appendf(e.rest, `{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":%d,"dur":8,"args":{"External id":%d}},`, 10*e.at, e.at)
		e.at++
	}
	n := copy(p, e.rest)
	e.rest = e.rest[:copy(e.rest, e.rest[n:])]
	e.sent += int64(n)
	return n, nil
}

// upload sends two gigabytes: once with the length stated, once without.
func (s *server) upload() {
	const size = 2 << 30
	for _, stated := range []bool{true, false} {
		body := &events{}
		r, err := http.NewRequest("POST", s.url+"/api/v1/doctor?name=large.json", io.MultiReader(strings.NewReader(`{"traceEvents": [`), io.LimitReader(body, size)))
		check(err)
		if stated {
			r.ContentLength = size + 17
		}
		began := time.Now()
		resp, err := s.client.Do(r)
		answer := fmt.Sprint(err)
		if err == nil {
			answer = resp.Status
			resp.Body.Close()
		}
		fmt.Printf("an upload of 2 GB, length stated %v: %s after %v and %.0f MB; server: %s, at most %.0f MB\n", stated, answer, time.Since(began).Round(time.Millisecond),
			float64(body.sent)/1e6, s.state(), s.most())
	}
}

// mixed is a bit of everything for minutes.
func (s *server) mixed(length time.Duration) {
	trace := sample()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	var policy, exact, searches, traces, left tally
	var wg sync.WaitGroup
	wg.Go(func() {
		s.paced(ctx, 40, func() []byte { return instance(5+rand.IntN(30), 20+rand.IntN(30), "policy") }, &policy)
	})
	wg.Go(func() { s.paced(ctx, 20, func() []byte { return instance(10, 30, "exact") }, &exact) })
	wg.Go(func() {
		s.paced(ctx, 1, func() []byte {
			return bytes.Replace(instance(50, 40, "search"), []byte(`{`), []byte(`{"time":0.5,`), 1)
		}, &searches)
	})
	wg.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			resp, err := s.client.Post(s.url+"/api/v1/doctor?name=trace.json.gz", "application/octet-stream", bytes.NewReader(trace))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if resp.StatusCode != 200 {
					err = fmt.Errorf("%s", resp.Status)
				}
			}
			traces.add(time.Since(began), err)
			time.Sleep(2 * time.Second)
		}
	})
	// clients that come, listen and leave, and some that leave in the middle of a search
	wg.Go(func() {
		for ctx.Err() == nil {
			short, stop := context.WithTimeout(ctx, 700*time.Millisecond)
			for _, path := range []string{"/api/v1/events", "/runs", "/api/v1/runs"} {
				if r, err := http.NewRequestWithContext(short, "GET", s.url+path, nil); err == nil {
					if resp, err := s.client.Do(r); err == nil {
						_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 100))
						resp.Body.Close()
					}
				}
			}
			r, err := http.NewRequestWithContext(short, "POST", s.url+"/api/v1/solve", bytes.NewReader(bytes.Replace(instance(100, 40, "search"), []byte(`{`), []byte(`{"time":30,`), 1)))
			check(err)
			if resp, err := s.client.Do(r); err == nil {
				resp.Body.Close()
			}
			left.add(0, nil)
			stop()
		}
	})
	fmt.Printf("mixed load for %v\n", length)
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			wg.Wait()
			fmt.Printf("  policy: %s\n  exact: %s\n  searches: %s\n  traces: %s\n  clients that left: %d\n", &policy, &exact, &searches, &traces, len(left.took))
			time.Sleep(time.Second)
			fmt.Printf("  at rest: %s\n", s.state())
			return
		case <-time.After(max(length/10, 5*time.Second)):
			fmt.Printf("  %5.0f s: %s\n", time.Since(began).Seconds(), s.state())
		}
	}
}

// sample is a small trace.
func sample() []byte {
	var b bytes.Buffer
	b.WriteString(`{"traceEvents":[`)
	for i := range 2000 {
		if i > 0 {
			b.WriteByte(',')
		}
		name, cat := "aten::mm", "cpu_op"
		if i%500 == 0 {
			name, cat = fmt.Sprintf("ProfilerStep#%d", i/500), "user_annotation"
		}
		fmt.Fprintf(&b, `{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":1,"ts":%d,"dur":%d}`, cat, name, i*10, 8)
	}
	b.WriteString("]}")
	return b.Bytes()
}

func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	return strings.Join(strings.Fields(string(text))[:1], " ")
}

func main() {
	haul := flag.String("haul", "haul", "the program")
	seconds := flag.Int("seconds", 60, "of solves")
	minutes := flag.Float64("minutes", 10, "of mixed load")
	only := flag.String("only", "solves,streams,upload,mixed", "what to measure")
	flag.Parse()
	s := start(*haul)
	defer func() {
		_ = s.cmd.Process.Signal(os.Interrupt)
		check(s.cmd.Wait())
	}()
	fmt.Printf("at the start: %s\n", s.state())
	for _, part := range strings.Split(*only, ",") {
		switch part {
		case "solves":
			s.solves(time.Duration(*seconds) * time.Second)
		case "streams":
			s.streams(1000)
		case "upload":
			s.upload()
		case "mixed":
			s.mixed(time.Duration(*minutes * float64(time.Minute)))
		default:
			log.Fatalf("there is no %s", part)
		}
	}
}
