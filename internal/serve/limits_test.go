package serve

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"haul/internal/limits"
	"haul/internal/run"
)

// document is Haul's JSON of customers on a line, with more keys.
func document(customers int, more string) string {
	coords, demands := make([][2]int, customers+1), make([]int, customers+1)
	for v := range coords {
		coords[v][0], demands[v] = v, min(v, 1)
	}
	text, _ := json.Marshal(map[string]any{"haul": 1, "capacity": 1 << 20, "coords": coords, "demands": demands})
	return strings.TrimSuffix(string(text), "}") + more + "}"
}

// windowsOf gives each customer so many windows that no two routes meet alike.
func windowsOf(customers, each int) string {
	lists := make([][][2]int, customers+1)
	for v := range lists {
		lists[v] = [][2]int{}
		for w := 0; v > 0 && w < each; w++ {
			lists[v] = append(lists[v], [2]int{10*w + v%7, 10*w + v%7 + 1})
		}
	}
	text, _ := json.Marshal(lists)
	return `,"windows":` + string(text)
}

// TestWindowsAreLimited: thousands of windows of a customer are refused in a line that names the
// limit and its flag. As many as are taken end a search at its time, and others are served while it
// runs.
func TestWindowsAreLimited(t *testing.T) {
	x := open(t, nil)
	for _, each := range []int{101, 8000, 32000} {
		a := x.do("POST", "/api/v1/solve", document(1, windowsOf(1, each)+`,"time":0.3`))
		x.refused(a, 422, fmt.Sprintf("it has %d time windows of a place or a break: the limit windows is 100; haul serve --limit windows=N raises it", each))
	}
	x.refused(x.do("POST", "/api/v1/jobs", document(1, windowsOf(1, 8000)+`,"time":0.3`)), 422, "the limit windows is 100")
	x.refused(x.do("POST", "/api/v1/solve", document(41, windowsOf(41, 100)+`,"time":0.3`)), 422, "the limit all-windows is 4000")
	began, done := time.Now(), make(chan *answerOf, 1)
	go func() { done <- x.do("POST", "/api/v1/solve", document(40, windowsOf(40, 100)+`,"time":0.3`)) }()
	if a := x.do("POST", "/api/v1/solve", document(5, `,"method":"savings"`)); a.status != 200 {
		t.Errorf("beside it: %d %s", a.status, a.body)
	}
	if a := <-done; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	t.Logf("as many windows as are taken: %v", time.Since(began))
}

// TestTypesAreLimited: a fleet of 50,000 types is refused, and as many as are taken end at the
// time.
func TestTypesAreLimited(t *testing.T) {
	fleet := func(n int) string {
		types := make([]string, n)
		for i := range types {
			types[i] = fmt.Sprintf(`{"count":1,"capacity":[%d],"fixed_cost":%d}`, i+10, i)
		}
		return `,"time":0.3,"fleet":[` + strings.Join(types, ",") + `]`
	}
	x := open(t, nil)
	body := strings.Replace(document(30, fleet(50_000)), `"capacity":1048576,`, "", 1)
	x.refused(x.do("POST", "/api/v1/solve", body), 422, "it has 50000 vehicle types: the limit types is 500")
	began := time.Now()
	if a := x.do("POST", "/api/v1/solve", strings.Replace(document(30, fleet(500)), `"capacity":1048576,`, "", 1)); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	t.Logf("500 types: %v", time.Since(began))
}

// TestStartIsLimited: routes to begin with are counted.
func TestStartIsLimited(t *testing.T) {
	l := limits.ForService()
	if err := l.Raise([]string{"routes=16"}); err != nil {
		t.Fatal(err)
	}
	x := open(t, func(o *Options) { o.Limits.Input = l })
	for _, n := range []int{15, 16, 16_000} {
		var stops []string
		for range n { // one more is the route itself
			stops = append(stops, "1")
		}
		a := x.do("POST", "/api/v1/solve", document(1, `,"time":0.1,"start":[[`+strings.Join(stops, ",")+`]]`))
		if n == 15 {
			x.refused(a, 422, "start is no solution")
			continue
		}
		x.refused(a, 422, fmt.Sprintf("start: it has %d stops of routes to begin with: the limit routes is 16", n+1))
	}
}

// TestNumbersThatOverflow: services whose sum is no number are refused before they become a job.
func TestNumbersThatOverflow(t *testing.T) {
	x := open(t, nil)
	for _, body := range []string{
		document(3, `,"time":0.1,"service":[0,1e308,1e308,1e308]`),
		document(3, `,"time":0.1,"speed":1e-300,"max_duration":1e200`),
		document(3, `,"time":0.1,"windows":[[],[[0,1e308]],[],[]]`),
	} {
		x.refused(x.do("POST", "/api/v1/solve", body), 422, "may add up to")
		x.refused(x.do("POST", "/api/v1/jobs", body), 422, "may add up to")
	}
	if a := x.do("POST", "/api/v1/solve", document(3, `,"time":0.1,"service":[0,1e60,1e60,1e60]`)); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// kept opens a folder of jobs without workers.
func kept(t *testing.T, folder string, logged *[]string) *jobs {
	t.Helper()
	s, err := New(Options{Runs: filepath.Join(t.TempDir(), "runs"), Log: func(line string) { *logged = append(*logged, line) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	j, err := newJobs(s, folder, 0)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *jobs) put(t *testing.T, name, key, owner string) string {
	t.Helper()
	text := document(3, `,"time":0.1,"name":"`+name+`"`)
	var ask solveRequest
	if err := ask.decode([]byte(text), &ask); err != nil {
		t.Fatal(err)
	}
	p, err := ask.draft.Problem()
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := j.submit(&ask, p, []byte(text), key, "", owner)
	if err != nil {
		t.Fatal(err)
	}
	return state.ID
}

// TestAResultWithoutWords: a job whose result JSON has no word for has failed, for its client, in
// the list and on the disk, and does not run again.
func TestAResultWithoutWords(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	id := j.put(t, "a", "", "")
	one, _ := j.next()
	j.end(one, &solved{Cost: math.NaN()}, nil)
	got, _, err := j.get(id, "")
	if err != nil || got.State != jobFailed || got.Problem == nil || !strings.Contains(got.Problem.Detail, "cannot be written") {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := json.Marshal(&got); err != nil {
		t.Error(err)
	}
	if list := j.list(""); len(list) != 1 || list[0].State != jobFailed {
		t.Errorf("%+v", list)
	}
	j.close()
	again := kept(t, folder, &logged)
	defer again.close()
	if got, _, err := again.get(id, ""); err != nil || got.State != jobFailed || len(again.queue) != 0 {
		t.Errorf("after a restart: %+v, %v, %d wait", got, err, len(again.queue))
	}
}

// TestJobsRunInTurnAfterARestart: the first that came is the first that runs.
func TestJobsRunInTurnAfterARestart(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	var want []string
	for i := range 5 {
		want = append(want, j.put(t, fmt.Sprint(i), "", ""))
		time.Sleep(time.Millisecond) // the moment of their creation differs
	}
	j.close()
	again := kept(t, folder, &logged)
	defer again.close()
	for i, id := range want {
		if one, _ := again.next(); one.ID != id {
			t.Errorf("turn %d: %s, want %s", i, one.ID, id)
		}
	}
}

// TestACancelledJobStaysCancelled: one that waits and is cancelled does not run after a restart.
func TestACancelledJobStaysCancelled(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	id := j.put(t, "a", "", "")
	if _, err := j.stop(id, ""); err != nil {
		t.Fatal(err)
	}
	j.close()
	again := kept(t, folder, &logged)
	defer again.close()
	if got, _, err := again.get(id, ""); err != nil || got.State != jobCancelled || len(again.queue) != 0 {
		t.Errorf("%+v, %v, %d wait", got, err, len(again.queue))
	}
}

// TestJobFilesNoticeFlips: a changed byte of a job's state, or of the request that is kept for it,
// is noticed when it is read. A file of an earlier version, without a sum, is read and said.
func TestJobFilesNoticeFlips(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	id := j.put(t, "a", "the key", "")
	store := j.store.(*jobFolder)
	one := *j.all[id]
	state, err := os.ReadFile(store.path(id, stateEnding))
	if err != nil {
		t.Fatal(err)
	}
	request, err := os.ReadFile(store.path(id, requestEnding))
	if err != nil {
		t.Fatal(err)
	}
	quiet := func(string) {}
	random := rand.New(rand.NewSource(1))
	for _, c := range []struct {
		ending string
		text   []byte
		read   func() error
	}{
		{stateEnding, state, func() error { _, err := store.readOne(id, quiet); return err }},
		{requestEnding, request, func() error { _, err := store.request(&one); return err }},
	} {
		path := store.path(id, c.ending)
		if err := c.read(); err != nil {
			t.Fatal(err)
		}
		for at := range c.text {
			for _, by := range []byte{1 << random.Intn(8), byte(1 + random.Intn(255))} {
				bad := bytes.Clone(c.text)
				bad[at] ^= by
				if err := os.WriteFile(path, bad, 0o600); err != nil {
					t.Fatal(err)
				}
				if c.read() == nil {
					t.Errorf("%s: byte %d (%q to %q) was not noticed", c.ending, at, c.text[at], bad[at])
				}
			}
		}
		if err := os.WriteFile(path, c.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := bytes.SplitAfter(state, []byte("\n"))[0]
	if err := os.WriteFile(store.path(id, stateEnding), old, 0o600); err != nil {
		t.Fatal(err)
	}
	said := ""
	if got, err := store.readOne(id, func(line string) { said = line }); err != nil || got.ID != id || !strings.Contains(said, "without a checksum") {
		t.Errorf("%+v, %v: %s", got, err, said)
	}
	j.close()
}

// TestARequestThatWasChanged: a job whose stored request is another than the one that was sent
// fails and names the file.
func TestARequestThatWasChanged(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	id := j.put(t, "a", "", "")
	path := j.store.(*jobFolder).path(id, requestEnding)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`1048576`), []byte(`9048576`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	one, ctx := j.next()
	result, err := j.run(ctx, one)
	j.end(one, result, err)
	if got, _, _ := j.get(id, ""); got.State != jobFailed || !strings.Contains(got.Problem.Detail, id+requestEnding) {
		t.Errorf("%+v", got)
	}
	j.close()
}

// TestJobsOfOwners: with keys a job is seen, cancelled and deleted by the key that sent it alone,
// and one client's Idempotency-Key says nothing of another's.
func TestJobsOfOwners(t *testing.T) {
	const one, other, token = "key-of-the-first-client", "key-of-the-second-client", "token-of-the-operator"
	x := open(t, func(o *Options) { o.Keys, o.Token = []string{one, other}, token })
	as := func(key string) []string {
		return []string{"Authorization", "Bearer " + key, "Idempotency-Key", "same"}
	}
	if a := x.do("GET", "/api/v1/jobs", "", "Authorization", "Bearer key-of-nobody-at-all"); a.status != 401 {
		t.Errorf("a key that does not exist: %d", a.status)
	}
	id := x.submit(document(3, `,"time":0.1`), 202, as(one)...).ID
	foreign := x.submit(document(4, `,"time":0.1`), 202, as(other)...).ID
	if foreign == id {
		t.Error("two clients have one job")
	}
	for _, key := range []string{other, token} {
		for _, ask := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"POST", "/cancel"}, {"GET", "/events"}} {
			x.refused(x.do(ask[0], "/api/v1/jobs/"+id+ask[1], "", as(key)...), 404, "there is no job")
		}
		if a := x.do("GET", "/api/v1/jobs", "", as(key)...); strings.Contains(a.body, id) {
			t.Errorf("%s lists %s", key, a.body)
		}
	}
	a := x.do("POST", "/api/v1/jobs", document(5, `,"time":0.1`), as(other)...)
	if x.refused(a, 422, foreign); strings.Contains(a.body, id) {
		t.Errorf("a foreign job is named: %s", a.body)
	}
	if a := x.do("DELETE", "/api/v1/jobs/"+id, "", as(one)...); a.status != 204 {
		t.Errorf("its owner: %d", a.status)
	}
}

// TestChunksEndTheirConnection: a request whose length is stated twice, by Content-Length and by
// Transfer-Encoding, is the last of its connection. Nothing behind it is taken for a request.
func TestChunksEndTheirConnection(t *testing.T) {
	x := open(t, nil)
	c, err := net.Dial("tcp", strings.TrimPrefix(x.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n"+
		"2\r\n{}\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	answers := 0
	in := bufio.NewScanner(c)
	for in.Scan() {
		if strings.HasPrefix(in.Text(), "HTTP/1.1 ") {
			answers++
		}
	}
	if err := in.Err(); answers != 1 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d answers, %v", answers, err)
	}
}

// TestAFullDiskUnderJobs: the line names the folder of jobs.
func TestAFullDiskUnderJobs(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	defer j.close()
	defer run.FailDisk(func(call, _ string) error {
		if call == "remove" {
			return nil
		}
		return errors.New("no space left on device")
	})()
	text := document(3, `,"time":0.1`)
	var ask solveRequest
	if err := ask.decode([]byte(text), &ask); err != nil {
		t.Fatal(err)
	}
	p, err := ask.draft.Problem()
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = j.submit(&ask, p, []byte(text), "", "", "")
	if err == nil || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "no space left") || strings.Contains(err.Error(), "upload") || asProblem(err).Status != 507 {
		t.Errorf("%v", err)
	}
	if len(j.list("")) != 0 {
		t.Error("a job that could not be kept is there")
	}
}

// TestDiskErrors: of 300 errors of the disk under the folder of jobs, one at each call of a job's
// life and of each kind, none loses a job that a client was told of, and none makes a job that has
// ended run again, once the disk works. What fails is said with the folder's name.
func TestDiskErrors(t *testing.T) {
	kinds := []error{errors.New("no space left on device"), errors.New("read-only file system"), io.ErrShortWrite, errors.New("input/output error")}
	injected, calls := 0, 0
	for at := 0; injected < 300; at++ {
		for _, kind := range kinds {
			folder, logged := t.TempDir(), []string(nil)
			j := kept(t, folder, &logged)
			call, failed := 0, ""
			restore := run.FailDisk(func(name, path string) error {
				if call++; call == at%30+1 {
					failed = name + " " + path
					return fmt.Errorf("%s: %w", name, kind)
				}
				return nil
			})
			told, ended := "", ""
			text := []byte(document(3, fmt.Sprintf(`,"time":0.1,"name":"j%d"`, at)))
			var ask solveRequest
			if err := ask.decode(text, &ask); err != nil {
				t.Fatal(err)
			}
			p, err := ask.draft.Problem()
			if err != nil {
				t.Fatal(err)
			}
			state, _, err := j.submit(&ask, p, text, "", "", "")
			if err == nil {
				told = state.ID
			} else if !strings.Contains(err.Error(), "folder of jobs") {
				t.Errorf("%s: %v", failed, err)
			}
			if told != "" {
				one, _ := j.next()
				for range at % 3 {
					one.saved = time.Time{}
					j.progress(one, improved{Cost: 1})
				}
				if at%2 == 0 {
					j.end(one, &solved{Cost: 1}, nil)
					ended = one.ID
				}
			}
			restore()
			calls = max(calls, call)
			if failed == "" { // the life was shorter
				j.close()
				continue
			}
			injected++
			if err == nil && len(logged) == 0 {
				t.Errorf("%s: nothing is said", failed)
			}
			for _, line := range logged {
				if !strings.Contains(line, folder) {
					t.Errorf("%s: %q names no place", failed, line)
				}
			}
			// the disk works: what was not kept is kept now
			j.mu.Lock()
			for _, one := range j.all {
				j.keep(one)
			}
			j.mu.Unlock()
			j.close()
			again := kept(t, folder, &logged)
			if told != "" {
				got, _, err := again.get(told, "")
				switch {
				case err != nil:
					t.Errorf("%s: a job that a client was told of is lost", failed)
				case ended != "" && (got.State != jobDone || len(again.queue) != 0):
					t.Errorf("%s: a job that has ended is %s, and %d wait", failed, got.State, len(again.queue))
				case ended == "" && len(again.queue) != 1:
					t.Errorf("%s: %d jobs wait", failed, len(again.queue))
				}
			} else if len(again.all) != 0 {
				t.Errorf("%s: a job that was refused is there", failed)
			}
			again.close()
		}
		if at > 2000 {
			t.Fatalf("only %d errors in %d calls", injected, calls)
		}
	}
	t.Logf("%d errors, in up to %d calls of a job", injected, calls)
}

// TestPowerMayFailUnderJobs: whatever a loss of power leaves of the folder of jobs, a job that a
// client was told of is there, waits or has ended, and its request is the one that was sent.
// Content that was not synced is gone, half of it is there, or all of it; a name that is not on the
// disk is the old one or the new one.
func TestPowerMayFailUnderJobs(t *testing.T) {
	folder, logged := t.TempDir(), []string(nil)
	j := kept(t, folder, &logged)
	type moment struct {
		files map[string][]byte
		told  map[string]string // by job: the state that a client has seen
	}
	var moments []moment
	disk, told := map[string][]byte{}, map[string]string{}
	snap := func(files map[string][]byte) { moments = append(moments, moment{maps.Clone(files), maps.Clone(told)}) }
	restore := run.FailDisk(func(call, path string) error {
		switch call {
		case "sync": // what was written may be cut
			text, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
			}
			for _, n := range []int{0, len(text) / 2, len(text)} {
				disk[path] = text[:n]
				snap(disk)
			}
		case "rename":
			snap(disk)
			disk[path] = disk[path+".tmp"]
			delete(disk, path+".tmp")
			snap(disk)
		case "remove":
			snap(disk)
			delete(disk, path)
			snap(disk)
		}
		return nil
	})
	for i := range 4 {
		id := j.put(t, fmt.Sprint(i), "", "")
		told[id] = jobQueued
	}
	one, _ := j.next()
	j.progress(one, improved{Cost: 3, Routes: [][]int32{{1, 2, 3}}})
	j.end(one, &solved{Cost: 3}, nil)
	told[one.ID] = jobDone
	waiting := j.queue[len(j.queue)-1].ID
	if _, err := j.stop(waiting, ""); err != nil {
		t.Fatal(err)
	}
	told[waiting] = jobCancelled
	two, _ := j.next()
	two.saved = time.Time{}
	j.progress(two, improved{Cost: 2})
	restore()
	j.close()
	for k, m := range moments {
		at := t.TempDir()
		for path, text := range m.files {
			if err := os.WriteFile(filepath.Join(at, filepath.Base(path)), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again := kept(t, at, &logged)
		for id, state := range m.told {
			got, _, err := again.get(id, "")
			if err != nil {
				t.Errorf("moment %d: job %s, which a client has seen as %s, is lost", k, id, state)
				continue
			}
			if state == jobDone && got.State != jobDone || state == jobCancelled && got.State != jobCancelled {
				t.Errorf("moment %d: a job that was %s is %s", k, state, got.State)
			}
			if !got.ended() {
				if _, err := again.store.request(again.all[id]); err != nil {
					t.Errorf("moment %d: %v", k, err)
				}
			}
		}
		again.close()
	}
	if len(moments) < 40 {
		t.Errorf("%d moments", len(moments))
	}
	t.Logf("%d moments", len(moments))
}
