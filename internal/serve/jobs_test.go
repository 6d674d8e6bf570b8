package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haul/internal/vrp"
)

// drawn is an instance of the server's own, as the body of a request with more keys.
func (x *site) drawn(customers int, more string) string {
	x.t.Helper()
	a := x.do("GET", fmt.Sprintf("/api/v1/instances/random?customers=%d&seed=3", customers), "")
	return strings.TrimSuffix(strings.TrimSpace(a.body), "}") + "," + more + "}"
}

func (x *site) submit(body string, status int, headers ...string) jobState {
	x.t.Helper()
	a := x.do("POST", "/api/v1/jobs", body, headers...)
	var got jobState
	a.json(x.t, &got)
	if a.status != status || got.ID == "" || a.header.Get("Location") != "/api/v1/jobs/"+got.ID {
		x.t.Fatalf("%d %s %v, want %d", a.status, a.body, a.header, status)
	}
	return got
}

func (x *site) job(id string) (got jobState) {
	x.t.Helper()
	x.do("GET", "/api/v1/jobs/"+id, "").json(x.t, &got)
	return got
}

func (x *site) until(id, state string) (got jobState) {
	x.t.Helper()
	soon(x.t, "job "+state, func() bool { got = x.job(id); return got.State == state })
	return got
}

// follow reads a job's events to their end.
func (x *site) follow(id string) (names []string, last jobState) {
	x.t.Helper()
	resp, err := http.Get(x.url + "/api/v1/jobs/" + id + "/events")
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	in, name := bufio.NewScanner(resp.Body), ""
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if event, ok := strings.CutPrefix(in.Text(), "event: "); ok {
			name = event
			names = append(names, event)
		}
		if data, ok := strings.CutPrefix(in.Text(), "data: "); ok && name == "job" {
			last = jobState{}
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				x.t.Fatal(err)
			}
		}
	}
	return names, last
}

// A job is submitted, followed and fetched; the same key is the same job.
func TestJobs(t *testing.T) {
	x := open(t, nil)
	body := x.drawn(30, `"method":"search","time":0.3`)
	first := x.submit(body, 202, "Idempotency-Key", "k1")
	if first.State != jobQueued || first.Customers != 30 || first.Time != 0.3 || first.Method != "search" || first.Kept {
		t.Errorf("%+v", first)
	}
	names, last := x.follow(first.ID)
	if names[0] != "job" || names[len(names)-1] != "job" || last.State != jobDone || last.Result == nil {
		t.Errorf("%v %+v", names, last)
	}
	if !strings.Contains(strings.Join(names, " "), "progress") {
		t.Errorf("no progress in %v", names)
	}
	var ask solveRequest
	if err := ask.decode([]byte(body), &ask); err != nil {
		t.Fatal(err)
	}
	p, err := ask.problem(&Limits{Customers: 100})
	if err != nil {
		t.Fatal(err)
	}
	if bad := vrp.Validate(p, vrp.Solution{Routes: last.Result.Routes}); bad != nil {
		t.Error(bad)
	}
	if again := x.submit(body, 200, "Idempotency-Key", "k1"); again.ID != first.ID || again.State != jobDone {
		t.Errorf("%+v", again)
	}
	x.refused(x.do("POST", "/api/v1/jobs", x.drawn(31, `"time":0.3`), "Idempotency-Key", "k1"), 422, "belongs to another request, job "+first.ID)
	x.refused(x.do("POST", "/api/v1/jobs", body, "Idempotency-Key", strings.Repeat("k", 201)), 400, "201 characters")
	x.refused(x.do("POST", "/api/v1/jobs", x.drawn(30, `"time":3601`)), 422, "up to 3600 seconds can be asked for")
	x.refused(x.do("POST", "/api/v1/jobs", "{}"), 422, "coords is empty")
	x.refused(x.do("GET", "/api/v1/jobs/none", ""), 404, "no job")
	x.refused(x.do("GET", "/api/v1/jobs/none/events", ""), 404, "no job")
	x.refused(x.do("POST", "/api/v1/jobs/none/cancel", ""), 404, "no job")
	x.refused(x.do("DELETE", "/api/v1/jobs/none", ""), 404, "no job")
	if a := x.do("PUT", "/api/v1/jobs/none", ""); a.status != 405 || a.header.Get("Allow") != "GET, DELETE" {
		t.Errorf("%d %v", a.status, a.header)
	}
	var all struct{ Jobs []jobState }
	x.do("GET", "/api/v1/jobs", "").json(t, &all)
	if len(all.Jobs) != 1 || all.Jobs[0].ID != first.ID || all.Jobs[0].Result != nil {
		t.Errorf("%+v", all)
	}
	if a := x.do("DELETE", "/api/v1/jobs/"+first.ID, ""); a.status != 204 {
		t.Errorf("%d %s", a.status, a.body)
	}
	x.refused(x.do("GET", "/api/v1/jobs/"+first.ID, ""), 404, "no job")
	// The key is free again.
	if again := x.submit(body, 202, "Idempotency-Key", "k1"); again.ID == first.ID {
		t.Error("a job that was deleted came back")
	}
}

// A job that is cancelled keeps its best routes; one that waits has none.
func TestJobsAreCancelled(t *testing.T) {
	x := open(t, func(o *Options) { o.Limits.ClientJobs = 3 })
	body := x.drawn(40, `"method":"search","time":600`)
	one, two := x.submit(body, 202), x.submit(body, 202)
	for range 1 { // as many as there are workers leave two waiting
		x.submit(body, 202)
	}
	x.refused(x.do("POST", "/api/v1/jobs", body), 429, "3 jobs of this address")
	soon(t, "routes", func() bool { p := x.job(one.ID).Progress; return p != nil && p.Routes != nil })
	x.do("POST", "/api/v1/jobs/"+one.ID+"/cancel", "")
	got := x.until(one.ID, jobCancelled)
	if got.Result == nil || len(got.Result.Routes) == 0 || got.Ended == nil || got.Progress != nil {
		t.Errorf("%+v", got)
	}
	x.do("POST", "/api/v1/jobs/"+two.ID+"/cancel", "")
	if _, last := x.follow(two.ID); last.State != jobCancelled {
		t.Errorf("%+v", last)
	}
	x.submit(body, 202) // there is room again
	if n := len(x.jobs.store.(*jobMemory).requests); n != 2 {
		t.Errorf("%d requests are kept, of 2 jobs that have not ended", n)
	}
}

// A search whose routes leave out customers, for want of vehicles, goes on from them too.
func TestJobsThatLeaveCustomersOutGoOn(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "jobs")
	keep := func(o *Options) { o.Jobs = folder }
	x := open(t, keep)
	long := x.submit(x.drawn(30, `"method":"search","time":30,"vehicles":2`), 202)
	soon(t, "routes", func() bool { p := x.job(long.ID).Progress; return p != nil && p.Routes != nil && p.Iterations > 0 })
	x.stop()
	if err := <-x.gone; err != nil {
		t.Error(err)
	}
	x.gone <- nil
	spent := filepath.Join(folder, long.ID+stateEnding)
	var was keptJob
	if text, err := os.ReadFile(spent); err != nil || json.Unmarshal(bytes.SplitAfter(text, []byte("\n"))[0], &was) != nil || was.Progress == nil {
		t.Fatalf("%v, %s", err, text)
	}
	was.Progress.Seconds = 500 // it has had its time
	text, err := json.Marshal(&was)
	if err != nil {
		t.Fatal(err)
	}
	write(t, spent, string(summed(text)))
	y := open(t, keep)
	if got := y.until(long.ID, jobDone); got.Result == nil || got.Result.Seconds < 500 || got.Result.Missing == 0 {
		t.Errorf("%+v, taken up from %+v", got.Result, was.Progress)
	}
}

// Jobs survive a server: those that ended with their results, and one under way goes on from its
// routes.
func TestJobsSurviveARestart(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "jobs")
	keep := func(o *Options) { o.Jobs = folder }
	x := open(t, keep)
	done := x.submit(x.drawn(12, `"method":"exact"`), 202, "Idempotency-Key", "done")
	x.until(done.ID, jobDone)
	body := x.drawn(60, `"method":"search","time":600`)
	long := x.submit(body, 202, "Idempotency-Key", "long")
	soon(t, "routes", func() bool { p := x.job(long.ID).Progress; return p != nil && p.Routes != nil && p.Iterations > 0 })
	if _, err := New(Options{Runs: x.runs, Jobs: folder}); err == nil || !strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("two servers on one folder: %v", err)
	}
	x.stop()
	if err := <-x.gone; err != nil {
		t.Error(err)
	}
	x.gone <- nil

	// What a loss of power leaves is taken away, what is no job of ours stays.
	// As if the search had spent all its time but a moment.
	spent := filepath.Join(folder, long.ID+stateEnding)
	var was keptJob
	if text, err := os.ReadFile(spent); err != nil || json.Unmarshal(bytes.SplitAfter(text, []byte("\n"))[0], &was) != nil || was.Progress == nil || was.Progress.Iterations == 0 {
		t.Fatalf("%v, %s", err, text)
	}
	was.Progress.Seconds = 599.95
	text, err := json.Marshal(&was)
	if err != nil {
		t.Fatal(err)
	}
	write(t, spent, string(summed(text)))
	half := filepath.Join(folder, strings.Repeat("A", 26)+requestEnding)
	torn := filepath.Join(folder, strings.Repeat("B", 26)+stateEnding)
	write(t, half, "{")
	write(t, torn, "{")
	write(t, filepath.Join(folder, "note.txt"), "mine")
	var said []string
	y := open(t, func(o *Options) { keep(o); o.Log = func(s string) { said = append(said, s) } })
	if _, err := os.Stat(half); err == nil {
		t.Error("a request without a job is kept")
	}
	if _, err := os.Stat(torn); err != nil || len(said) != 1 || !strings.Contains(said[0], "left alone") {
		t.Errorf("%v, said %q", err, said)
	}
	if got := y.job(done.ID); got.State != jobDone || got.Result == nil || got.Result.Cost <= 0 || !got.Kept {
		t.Errorf("%+v", got)
	}
	if again := y.submit(body, 200, "Idempotency-Key", "long"); again.ID != long.ID {
		t.Errorf("%+v", again)
	}
	// With all its time again it would go on for ten minutes; anew it would have spent a moment.
	got := y.until(long.ID, jobDone)
	if got.Result == nil || got.Result.Seconds < 599.95 || got.Result.Iterations < was.Progress.Iterations || got.Result.Cost > was.Progress.Cost+1e-9 {
		t.Errorf("%+v, taken up from %+v", got.Result, was.Progress)
	}
	left, err := filepath.Glob(filepath.Join(folder, "*"+requestEnding))
	if err != nil || len(left) > 0 {
		t.Errorf("requests of jobs that ended: %v %v", left, err)
	}
}

// A job that was deleted while it ran leaves no file, however late its progress comes.
func TestDeletedJobsStayDeleted(t *testing.T) {
	folder := t.TempDir()
	x := open(t, func(o *Options) { o.Jobs = folder })
	one := x.submit(x.drawn(40, `"method":"search","time":600`), 202)
	soon(t, "progress", func() bool { return x.job(one.ID).Progress != nil })
	x.do("DELETE", "/api/v1/jobs/"+one.ID, "")
	x.stop()
	<-x.gone
	x.gone <- nil
	if left, _ := filepath.Glob(filepath.Join(folder, one.ID+"*")); len(left) > 0 {
		t.Errorf("%v", left)
	}
}

// Jobs that ended make room for others, the oldest first.
func TestOldJobsMakeRoom(t *testing.T) {
	x := open(t, func(o *Options) { o.Limits.Jobs = 3 })
	var ids []string
	for i := range 5 {
		one := x.submit(x.drawn(5+i, `"method":"exact"`), 202)
		x.until(one.ID, jobDone)
		ids = append(ids, one.ID)
	}
	for i, id := range ids {
		if got := x.do("GET", "/api/v1/jobs/"+id, "").status; (got == 200) != (i >= 2) {
			t.Errorf("job %d: %d", i, got)
		}
	}
}

// The same address may come so often, and a proxy of ours speaks for whom it says.
func TestRatesAndProxies(t *testing.T) {
	now := time.Unix(1000, 0)
	c := newClients()
	taken := 0
	for range 100 {
		if c.spend("a", 5, now) == nil {
			taken++
		}
	}
	if taken != 10 || c.spend("b", 5, now) != nil {
		t.Errorf("%d of 100 at once, want 10", taken)
	}
	if err := c.spend("a", 5, now.Add(200*time.Millisecond)); err != nil {
		t.Errorf("a fifth of a second later: %v", err)
	}
	if err := c.spend("a", 5, now.Add(200*time.Millisecond)); err == nil || asProblem(err).Status != 429 || asProblem(err).retry != 1 {
		t.Errorf("%v", err)
	}
	if c.spend("c", 5, now.Add(2*time.Minute)); len(c.spent) != 1 {
		t.Errorf("%d addresses are remembered, want one", len(c.spent))
	}
	s := &Server{o: Options{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	for _, ask := range []struct{ remote, stated, want string }{
		{"192.0.2.1:5", "198.51.100.7", "192.0.2.1"}, // anybody can state an address
		{"10.1.1.1:5", "", "10.1.1.1"},
		{"10.1.1.1:5", "203.0.113.9, 198.51.100.7", "198.51.100.7"},
		{"10.1.1.1:5", "198.51.100.7, 10.2.2.2", "198.51.100.7"},
		{"10.1.1.1:5", "nonsense", "10.1.1.1"},
	} {
		r := &http.Request{RemoteAddr: ask.remote, Header: http.Header{"X-Forwarded-For": {ask.stated}}}
		if got := s.address(r); got != ask.want {
			t.Errorf("%+v: %s", ask, got)
		}
	}
	x := open(t, func(o *Options) { o.Limits.Rate = 0.001 })
	x.do("GET", "/api/v1/about", "")
	x.refused(x.do("GET", "/api/v1/about", ""), 429, "requests per second")
	if a := x.do("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("health counts as a request: %d", a.status)
	}
}

// Every request is logged, without what stands behind the question mark; readiness follows the
// folder of jobs.
func TestAccessLogAndReadiness(t *testing.T) {
	var log bytes.Buffer
	folder := filepath.Join(t.TempDir(), "jobs")
	x := open(t, func(o *Options) {
		o.Access = slog.New(slog.NewJSONHandler(&log, nil))
		o.Jobs = folder
		o.Token = "0123456789abcdef"
	})
	if a := x.do("GET", "/readyz", ""); a.status != 200 || a.body != "ready\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if a := x.do("GET", "/readyz", ""); a.status != 503 || !strings.Contains(a.body, "cannot be written") {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := x.do("GET", "/healthz", ""); a.status != 200 {
		t.Errorf("%d: a server that cannot keep jobs lives on", a.status)
	}
	x.do("GET", "/runs?token=0123456789abcdef", "", "User-Agent", "a  b")
	x.stop()
	<-x.gone
	x.gone <- nil
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	var last struct {
		Msg, Client, Method, Path, Agent string
		Status                           int
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if len(lines) != 4 || last.Msg != "request" || last.Client != "127.0.0.1" || last.Method != "GET" || last.Path != "/runs" || last.Status != 303 {
		t.Errorf("%s", log.String())
	}
	if strings.Contains(log.String(), "0123456789abcdef") {
		t.Error("the token is in the log")
	}
}

// A request that is larger than the room of all jobs is refused; one that just fits is taken.
func TestJobsHaveTheirRoom(t *testing.T) {
	body := fmt.Sprintf(square, "exact")
	for less, status := range []int{202, 503} {
		x := open(t, func(o *Options) { o.Limits.JobBytes = int64(len(body) - less) })
		if a := x.do("POST", "/api/v1/jobs", body); a.status != status {
			t.Errorf("%d bytes short: %d %s", less, a.status, a.body)
		}
	}
}
