package serve

import (
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"haul/internal/policy"
	"haul/internal/vrp"
)

// TestAsManyCustomersAsAreSolved: the bound itself is taken, one more is not.
func TestAsManyCustomersAsAreSolved(t *testing.T) {
	in := func(n int) *instance {
		var in instance
		text := `{"capacity":9,"coords":[[0,1]` + strings.Repeat(",[3,1]", n) + `]}`
		if err := in.decode([]byte(text), nil); err != nil {
			t.Fatal(err)
		}
		return &in
	}
	if p, err := in(5).problem(&Limits{Customers: 5}); err != nil || p.N() != 5 {
		t.Errorf("five of five: %v", err)
	}
	if _, err := in(6).problem(&Limits{Customers: 5}); err == nil || !strings.HasPrefix(err.Error(), "6 customers are more than the 5 that are solved here") {
		t.Errorf("six of five: %v", err)
	}
}

// TestRowsOfOtherWidth: a file that did not change brings nothing, a row of other width is passed
// over, and what is behind it is read.
func TestRowsOfOtherWidth(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	table := &table{}
	follow := func() (grown, fresh bool) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		grown, fresh, err = table.follow(func() (*os.File, error) { return os.Open(path) }, info)
		if err != nil {
			t.Fatal(err)
		}
		return grown, fresh
	}
	write(t, path, "a,b\n1,2\n3\n4,5,6\n7,8\n9,")
	if grown, fresh := follow(); !grown || !fresh || len(table.Rows) != 2 || string(table.Rows[1]) != "[7,8]" {
		t.Errorf("grown %v, fresh %v: %s", grown, fresh, table.Rows)
	}
	if grown, fresh := follow(); grown || fresh {
		t.Errorf("a file that did not change: grown %v, fresh %v", grown, fresh)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("10\n11\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if grown, fresh := follow(); !grown || fresh || len(table.Rows) != 3 || string(table.Rows[2]) != "[9,10]" {
		t.Errorf("a row that has ended: grown %v, fresh %v: %s", grown, fresh, table.Rows)
	}
	// What is new may begin with a row of another width.
	if f, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("12\n13,14\n"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if follow(); len(table.Rows) != 4 || string(table.Rows[3]) != "[13,14]" {
		t.Errorf("behind a row of another width: %s", table.Rows)
	}
}

// TestCrowdsHaveTheirBounds: in all, and of one address; who leaves makes room.
func TestCrowdsHaveTheirBounds(t *testing.T) {
	c := newCrowd(nil, 3, 2, func(host string) bool { return host == "proxy" }, nil)
	enter := func(host string, want bool) {
		t.Helper()
		if got := c.enter(host); got != want {
			t.Errorf("%s: %v with %d in", host, got, c.in)
		}
	}
	enter("a", true)
	enter("a", true)
	enter("a", false)
	enter("b", true)
	enter("b", false)
	enter("proxy", false)
	c.leave("a")
	enter("proxy", true)
	c.leave("b")
	enter("a", true)
	if len(c.of) != 1 || c.in != 3 {
		t.Errorf("%d in, by address %v", c.in, c.of)
	}
}

// TestTheSideDoor forgets the one that left and no other, hurries the oldest where it is full, and
// takes nobody once it is closed.
func TestTheSideDoor(t *testing.T) {
	d := &sideDoor{healthy: func(*http.Request) bool { return false }, most: 3, patience: 2 * patience}
	// Sockets: what is said into a pipe waits for its reader, and the door waits for nobody.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	pair := func() (a, b net.Conn) {
		t.Helper()
		a, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if b, err = ln.Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(); b.Close() })
		return a, b
	}
	var outside, inside []net.Conn
	for range 3 {
		a, b := pair()
		outside, inside = append(outside, a), append(inside, b)
		d.take(b)
	}
	waiting := func() []net.Conn {
		d.mu.Lock()
		defer d.mu.Unlock()
		return slices.Clone(d.queue)
	}
	said := func(c net.Conn) string {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		text, err := io.ReadAll(c)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	outside[1].Close()
	soon(t, "the one that left forgotten", func() bool { return slices.Equal(waiting(), []net.Conn{inside[0], inside[2]}) })
	for range 2 { // the second is one too many
		a, b := pair()
		outside = append(outside, a)
		d.take(b)
	}
	if got := said(outside[0]); got != full {
		t.Errorf("the oldest heard %q", got)
	}
	d.close()
	for _, c := range outside[2:] {
		if got := said(c); got != full {
			t.Errorf("as the door closed %q was said", got)
		}
	}
	a, b := pair()
	d.take(b)
	if got := said(a); got != "" {
		t.Errorf("a closed door said %q", got)
	}
	short := &sideDoor{healthy: d.healthy, most: 3, patience: time.Millisecond}
	a, b = pair()
	short.take(b)
	if got := said(a); got != full {
		t.Errorf("who says nothing heard %q", got)
	}
}

// TestRequestsOfAnAddressAreCounted until they leave.
func TestRequestsOfAnAddressAreCounted(t *testing.T) {
	c := newClients()
	first, err := c.enter("a", "solves", 2)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.enter("a", "solves", 2)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.enter("a", "solves", 2); err == nil {
		t.Error("a third is taken")
	}
	if _, err := c.enter("b", "solves", 2); err != nil {
		t.Errorf("another address: %v", err)
	}
	first()
	if again, err := c.enter("a", "solves", 2); err != nil {
		t.Errorf("one has left: %v", err)
	} else {
		again()
	}
	if second(); len(c.at) != 1 {
		t.Errorf("%v are kept", c.at)
	}
}

// TestUploadsThatBreakOff are refused, not taken for shorter ones.
func TestUploadsThatBreakOff(t *testing.T) {
	broken := errors.New("broken")
	for _, length := range []int{10, spoolMemory + 10} {
		body := io.MultiReader(strings.NewReader(strings.Repeat("x", length)), iotest.ErrReader(broken))
		if _, err := spool(body); !errors.Is(err, broken) {
			t.Errorf("after %d bytes: %v", length, err)
		}
	}
	if _, err := spool(iotest.ErrReader(io.ErrUnexpectedEOF)); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("%v", err)
	}
}

// TestReferencesOfFewCustomers are optima, by another way to them than the server's.
func TestReferencesOfFewCustomers(t *testing.T) {
	src := vrp.Source{Seed: 7, Distribution: vrp.Uniform, N: 6, Capacity: 20, DemandMin: 1, DemandMax: 9}
	costs, to, err := references(t.Context(), src, 3)
	if err != nil {
		t.Fatal(err)
	}
	batch := vrp.NewBatch(3, src.N, src.Capacity)
	src.Fill(batch, 0)
	for i, got := range costs {
		_, best, err := vrp.OptimalParts(t.Context(), batch.Problem(i))
		if to != policy.Optimum || err != nil || math.Abs(got-best) > 1e-6 {
			t.Errorf("%s %d is %g, want %g (%v)", to, i, got, best, err)
		}
	}
}

// TestWhatIsAskedForIsNamed: an instance past the limit and a device that is not there are
// refused in words that name them.
func TestWhatIsAskedForIsNamed(t *testing.T) {
	x := open(t, func(o *Options) {
		o.Limits.Customers = 30
		o.Train = &Training{Program: "/no/program", Configs: []string{"quick"}, Devices: []string{"cpu", "gpu"}}
	})
	x.refused(x.do("GET", "/api/v1/instances/random?customers=31", ""), 422, "31 customers are more than the 30 that are solved here")
	if a := x.do("GET", "/api/v1/instances/random?customers=30", ""); a.status != 200 {
		t.Errorf("30 customers: %d %s", a.status, a.body)
	}
	x.refused(x.do("POST", "/api/v1/runs", `{"config":"quick","device":"tpu"}`), 422, `device is "tpu": there are cpu, gpu`)
}

// TestAnInterruptedJobIsCancelled: a job that a server's end has put back into the queue has nobody
// left to stop, and is cancelled at once.
func TestAnInterruptedJobIsCancelled(t *testing.T) {
	x := open(t, nil)
	id := x.submit(x.drawn(60, `"method":"search","time":600`), 202).ID
	x.until(id, jobRunning)
	x.stop()
	if err := <-x.gone; err != nil {
		t.Error(err)
	}
	x.gone <- nil
	if got, err := x.Server.jobs.stop(id, ""); err != nil || got.State != jobCancelled || got.Ended == nil {
		t.Errorf("%+v, %v", got, err)
	}
}
