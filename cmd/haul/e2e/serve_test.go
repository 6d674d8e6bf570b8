package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"haul/cmd/haul/clitest"
	"haul/internal/run"
	"haul/policies"
)

// tinyRun are the arguments of a run whose epochs take a moment.
func tinyRun(out string, epochs int) []string {
	args := append([]string{"train", "--device", "cpu", "--workers", "1", "--out", out, "--epochs", fmt.Sprint(epochs)}, smallNetwork()...)
	return append(args, "--set", "training.num_epochs=100")
}

func get(t *testing.T, url string, dst any) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && dst != nil {
		err = json.Unmarshal(text, dst)
	}
	if err != nil {
		t.Fatalf("%s: %v in %.300s", url, err, text)
	}
	return resp.StatusCode
}

func ask(t *testing.T, url, body string, dst any) int {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(dst); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s did not happen within %v", what, patience)
}

const tinyProblem = `{"coords": [[0.5,0.5],[0.1,0.1],[0.9,0.2],[0.8,0.9],[0.2,0.8],[0.4,0.1]], "demands": [0,3,4,5,2,1], "capacity": 10, "method": %q, "time": %g, "gap": true}`

// A run's policy solves and is judged over HTTP as on the command line; its step is taken apart.
func TestServePolicies(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "runs", "a")
	if r := haul(t, tinyRun(out, 1)...); r.code != exitDone {
		t.Fatal(r.stderr)
	}
	_, url := startServer(t, dir)
	var solved struct {
		Policy    string
		Cost, Gap float64
		Routes    [][]int32
		Detail    string
	}
	// Where none is named, a policy that comes with the program goes before a run's.
	nearest := append(policies.Names(), "a")[0]
	if code := ask(t, url+"/api/v1/solve", fmt.Sprintf(tinyProblem, "policy", 1.0), &solved); code != 200 || solved.Policy != nearest || len(solved.Routes) < 2 || solved.Gap < 0 {
		t.Errorf("%d %+v, want %s", code, solved, nearest)
	}
	file := write(t, "p.vrp", strings.NewReplacer("square", "p").Replace(clitest.SquareVRP))
	want := object(t, "solve", file, "--policy", out, "--set", "distance=exact", "--json")
	const square = `{"coords": [[0,0],[10,0],[0,10],[-10,0],[0,-10]], "demands": [0,5,5,5,5], "capacity": 10, "method": "policy", "policy": "a"}`
	if ask(t, url+"/api/v1/solve", square, &solved); solved.Cost != want["cost"] {
		t.Errorf("cost %v over HTTP, %v on the command line", solved.Cost, want["cost"])
	}
	if code := ask(t, url+"/api/v1/solve", strings.Replace(square, `"a"}`, `"b"}`, 1), &solved); code != 422 || !strings.Contains(solved.Detail, strings.Join(append(policies.Names(), "a"), ", ")) {
		t.Errorf("%d %+v", code, solved)
	}
	var judged struct {
		Gap   float64
		GapTo string `json:"gap_to"`
		Count int
	}
	if code := ask(t, url+"/api/v1/evaluate", `{"policy": "a", "count": 20}`, &judged); code != 200 || judged.GapTo != "optimum" || judged.Gap <= 0 || judged.Count != 20 {
		t.Errorf("%d %+v", code, judged)
	}
	var ledger struct {
		Stages []struct {
			Stage string
			Share float64
		}
	}
	sum := 0.0
	if code := ask(t, url+"/api/v1/runs/a/ledger", "", &ledger); code == 200 {
		for _, s := range ledger.Stages {
			sum += s.Share
		}
	}
	if sum < 0.9 || sum > 1.1 {
		t.Errorf("the step's stages add up to %g: %+v", sum, ledger)
	}
}

// Killing the server in the middle of a run and of a solve loses nothing that was saved, and a
// client that breaks off does not end it.
func TestServeIsKilled(t *testing.T) {
	t.Parallel() // most of it is waiting
	dir := t.TempDir()
	server, url := startServer(t, dir)
	_, other := startServer(t, dir)
	train, out := apart(t, dir, append(tinyRun("runs/a", 12), "--json", "--set", "training.num_batches_per_epoch=20")...)
	var list struct {
		Runs []struct{ Name, State string }
	}
	eventually(t, "the run", func() bool {
		return get(t, url+"/api/v1/runs", &list) == 200 && len(list.Runs) == 1 && list.Runs[0].State == "running"
	})

	// A client that resets its connection while a search writes to it.
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(tinyProblem, "search", 20.0)
	fmt.Fprintf(c, "POST /api/v1/solve HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err := c.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	c.Close()
	time.Sleep(300 * time.Millisecond)
	if get(t, url+"/healthz", nil) != 200 {
		t.Fatal("the server ended with its client")
	}

	busy := make(chan struct{})
	go func() {
		defer close(busy)
		if resp, err := http.Post(url+"/api/v1/solve", "application/json", strings.NewReader(body)); err == nil {
			resp.Body.Close()
		}
	}()
	time.Sleep(100 * time.Millisecond)
	if err := server.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	<-busy
	epochs := 0
	for out.Scan() {
		var event struct{ Event string }
		if err := json.Unmarshal(out.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if event.Event == "epoch" {
			epochs++
		}
	}
	if err := train.Wait(); err != nil || epochs != 12 {
		t.Errorf("the run ended with %v after %d epochs", err, epochs)
	}
	if _, err := run.Load(filepath.Join(dir, "runs", "a", run.BestName), ""); err != nil {
		t.Error(err)
	}
	// The server that went on and one that starts now show the same.
	_, fresh := startServer(t, dir)
	var one, two any
	eventually(t, "agreement", func() bool {
		get(t, other+"/api/v1/runs/a", &one)
		get(t, fresh+"/api/v1/runs/a", &two)
		a, _ := json.Marshal(one)
		b, _ := json.Marshal(two)
		return string(a) == string(b) && strings.Contains(string(a), `"state":"done"`) && strings.Contains(string(a), `"at":12`)
	})
}

func TestServeFlags(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"serve", "--addr", "8420"}, exitUsage, "an address and a port"},
		{[]string{"serve", "--token", "short"}, exitUsage, "at least 16"},
		{[]string{"serve", "--token", "sixteen letters & more"}, exitUsage, "letters, digits"},
		{[]string{"serve", "--runs", write(t, "x", "")}, exitFailed, "is a file"},
		{[]string{"serve", "extra"}, exitUsage, "unexpected argument"},
	} {
		if r := haul(t, c.args...); r.code != c.code || !strings.Contains(r.stderr, c.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", c.args, r.code, r.stderr)
		}
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if r := haul(t, "serve", "--addr", taken.Addr().String()); r.code != exitFailed || !strings.Contains(r.stderr, "in use by another program") {
		t.Errorf("exit %d, %q", r.code, r.stderr)
	}
	// Beyond this machine there is a token, and asking a server to end ends it well.
	dir := t.TempDir()
	cmd, out := apart(t, dir, "serve", "--addr", "0.0.0.0:0", "--json")
	var at listening
	if !out.Scan() || json.Unmarshal(out.Bytes(), &at) != nil || len(at.Token) < 20 || !strings.Contains(at.URL, "token="+at.Token) {
		t.Fatalf("%s", out.Text())
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("asked to end: %v", err)
	}
}
