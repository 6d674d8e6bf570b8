package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	carried "haul/policies"
)

// An answer that takes longer than the stall reaches a client that keeps reading: every piece of
// it has the whole stall anew.
func TestSteadyReaders(t *testing.T) {
	const stall = time.Hour
	for _, length := range []int{1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 5*64<<10 + 7} {
		c := &slowClient{ResponseWriter: httptest.NewRecorder()}
		out := &answered{ResponseWriter: c, rc: http.NewResponseController(c), stall: stall}
		before := time.Now()
		if n, err := out.Write(bytes.Repeat([]byte("x"), length)); n != length || err != nil || out.bytes != int64(length) {
			t.Errorf("%d of %d bytes, %v", n, length, err)
		}
		if want := (length + 64<<10 - 1) / (64 << 10); len(c.pieces) != want {
			t.Errorf("%d bytes come in %d pieces, want %d", length, len(c.pieces), want)
		}
		for i, p := range c.pieces {
			if p.bytes > 64<<10 || p.until.Before(before.Add(stall)) {
				t.Errorf("piece %d: %d bytes until %v after the first", i, p.bytes, p.until.Sub(before))
			}
			before = p.written
		}
	}
}

// slowClient notes what is written to it and until when it may take it. A deadline serves for one
// piece.
type slowClient struct {
	http.ResponseWriter
	until  time.Time
	pieces []piece
}

type piece struct {
	bytes          int
	until, written time.Time
}

func (c *slowClient) SetWriteDeadline(until time.Time) error {
	c.until = until
	return nil
}

func (c *slowClient) Write(b []byte) (int, error) {
	c.pieces = append(c.pieces, piece{len(b), c.until, time.Now()})
	c.until = time.Time{}
	return len(b), nil
}

// Files that come in slowly take no place from those who solve.
func TestUploadsHoldNoSolve(t *testing.T) {
	x := open(t, nil)
	n := runtime.GOMAXPROCS(0) + 1
	for range n {
		fmt.Fprint(dial(t, x), "POST /api/v1/instances?name=a.vrp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nNAME")
	}
	soon(t, "the uploads", func() bool { return len(x.files.slots) == n })
	if a := x.do("POST", "/api/v1/solve", fmt.Sprintf(square, "exact")); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// Closing waits for a bench that is at work, and gives back what it holds.
func TestCloseWaitsForEveryBench(t *testing.T) {
	p := newPolicies(nil, nil, 2)
	busy := <-p.benches
	if err := busy.open(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { p.close(); close(closed) }()
	select {
	case <-closed:
		t.Error("it did not wait")
	case <-time.After(50 * time.Millisecond):
	}
	p.benches <- busy
	<-closed
	if busy.dev != nil {
		t.Error("the device is still open")
	}
	p.close() // once more changes nothing
}

// Two who ask for one run's ledger at once are given one measurement.
func TestOneMeasurementForAll(t *testing.T) {
	x := open(t, nil)
	dir := makeRun(t, x.runs, "a-001", 1)
	small := "problem:\n    num_customers: 5\ntraining:\n    batch_size: 2\nmodel:\n    hidden_dim: 16\n    num_layers: 1\n    num_heads: 2\n"
	write(t, filepath.Join(dir, "config.yaml"), small)
	soon(t, "the run", func() bool {
		r := x.Server.runs.get("a-001")
		return r != nil && string(r.text) == small
	})
	got := make(chan string, 2)
	for range 2 {
		go func() { got <- x.do("POST", "/api/v1/runs/a-001/ledger", "").body }()
	}
	if a, b := <-got, <-got; a != b {
		t.Errorf("%.200s\nand\n%.200s", a, b)
	} else if !strings.Contains(a, "step_seconds") {
		t.Errorf("%s", a)
	}
}

// TestAPolicyHasItsTime: a beam as wide as may be asked for takes hours, and is let go when a
// request's time is over; the next is answered.
func TestAPolicyHasItsTime(t *testing.T) {
	t.Parallel() // most of it is waiting
	x := open(t, func(o *Options) {
		o.Shipped = []Shipped{{"cvrp20", func() ([]byte, error) { return carried.Read("cvrp20") }}}
		o.Limits.Search = time.Second
	})
	body := func(n int, decode string) string {
		var nodes, demands []string
		for i := range n + 1 {
			nodes, demands = append(nodes, fmt.Sprintf("[%d,%d]", i*7919%1009, i*104729%1013)), append(demands, fmt.Sprint(min(i, 1)))
		}
		return fmt.Sprintf(`{"coords": [%s], "demands": [%s], "capacity": 9, "method": "policy", "decode": %q}`, strings.Join(nodes, ","), strings.Join(demands, ","), decode)
	}
	began := time.Now()
	x.refused(x.do("POST", "/api/v1/solve", body(120, "sgbs:64,64")), 422, "decode sgbs:64,64 of 120 customers takes longer than 1 s, the time of a request")
	x.refused(x.do("POST", "/api/v1/solve", body(120, "eas:60")), 422, "decode eas:60 of 120 customers takes longer than 1 s, the time of a request")
	x.refused(x.do("POST", "/api/v1/solve", body(120, "eas8")), 422, "decode eas8 builds 192960 routes of 120 customers, more than a request may take")
	if took := time.Since(began); took > patience {
		t.Errorf("it was let go after %s", took)
	}
	// on a busy machine these too may not be done in their time, and are asked again
	soon(t, "the answer to the next", func() bool { return x.do("POST", "/api/v1/solve", body(5, "greedy")).status == 200 })
	var a *answerOf
	soon(t, "an answer where nobody says how to decode", func() bool {
		a = x.do("POST", "/api/v1/solve", strings.Replace(body(5, "x"), `, "decode": "x"`, "", 1))
		return a.status == 200
	})
	if !strings.Contains(a.body, `"decode":"pomo8:1"`) {
		t.Errorf("not as haul solve decodes: %s", a.body)
	}
}

// TestTheSeedIsAlsoAPolicys: routes that a policy draws follow the request's seed; without one, and
// by a decoder that draws nothing, they are always the same.
func TestTheSeedIsAlsoAPolicys(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one bench, which has the programs of all seeds
	x := open(t, func(o *Options) {
		o.Shipped = []Shipped{{"cvrp20", func() ([]byte, error) { return carried.Read("cvrp20") }}}
	})
	var nodes, demands []string
	for i := range 31 {
		nodes, demands = append(nodes, fmt.Sprintf("[%d,%d]", i*7919%1009, i*104729%1013)), append(demands, fmt.Sprint(min(i, 1)))
	}
	cost := func(decode, seed string) float64 {
		a := x.do("POST", "/api/v1/solve", fmt.Sprintf(`{"coords": [%s], "demands": [%s], "capacity": 9, "method": "policy", "decode": %q%s}`,
			strings.Join(nodes, ","), strings.Join(demands, ","), decode, seed))
		var out solved
		if err := json.Unmarshal([]byte(a.body), &out); err != nil || a.status != 200 {
			t.Fatalf("%d %s: %v", a.status, a.body, err)
		}
		return out.Cost
	}
	const drawn = "sample:1,3"
	own, one, two := cost(drawn, ""), cost(drawn, `, "seed": 1`), cost(drawn, `, "seed": 2`)
	if own == one || one == two || own == two {
		t.Errorf("drawn by no seed, 1 and 2: %v, %v, %v", own, one, two)
	}
	if again := cost(drawn, `, "seed": 1`); again != one {
		t.Errorf("by seed 1 %v, then %v", one, again)
	}
	if again := cost(drawn, ""); again != own {
		t.Errorf("by no seed %v, then %v", own, again)
	}
	if a, b := cost("greedy", `, "seed": 1`), cost("greedy", `, "seed": 2`); a != b {
		t.Errorf("greedy routes cost %v and %v", a, b)
	}
}

// A policy keeps its weights while a program of its own comes in for the last one that had them.
func TestAPolicyOutlivesItsOldestProgram(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one bench
	read := func() ([]byte, error) { return carried.Read("cvrp20") }
	x := open(t, func(o *Options) { o.Shipped = []Shipped{{"a", read}, {"b", read}} })
	ask := func(policy string, customers int) {
		if a := x.do("POST", "/api/v1/solve", x.drawn(customers, fmt.Sprintf(`"method":"policy","policy":%q,"decode":"greedy"`, policy))); a.status != 200 {
			t.Fatalf("%s, %d customers: %d %s", policy, customers, a.status, a.body)
		}
	}
	ask("a", 30)
	for n := range keepReady - 1 {
		ask("b", 2+n)
	}
	ask("a", 31) // which takes the place of the first
	ask("a", 32)
}
