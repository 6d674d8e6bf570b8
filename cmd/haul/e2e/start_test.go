package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// withToken asks a server that has a token.
func withToken(t *testing.T, method, address, body string, dst any) int {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	token := u.Query().Get("token")
	u.RawQuery = ""
	r, err := http.NewRequestWithContext(t.Context(), method, u.String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if dst != nil {
		if err := json.Unmarshal(text, dst); err != nil {
			t.Fatalf("%s %s: %s", method, u, text)
		}
	}
	return resp.StatusCode
}

// at is a path of a server's address, its token kept.
func at(address, path string) string {
	base, query, _ := strings.Cut(address, "?")
	return strings.TrimSuffix(base, "/") + path + "?" + query
}

// A server with --train starts a run, one at a time, stops it so that it can go on, and stops it
// with itself; without the flag it starts none.
func TestServeStartsRuns(t *testing.T) {
	t.Parallel() // most of it is waiting
	dir := t.TempDir()
	_, plain := startServer(t, dir)
	var no struct{ Detail string }
	if code := withToken(t, "POST", at(plain, "/api/v1/runs"), `{"config":"quick"}`, &no); code != 403 || !strings.Contains(no.Detail, "--train") {
		t.Errorf("without --train: %d %s", code, no.Detail)
	}
	server, address := startServer(t, dir, "--train")
	if !strings.Contains(address, "token=") {
		t.Fatalf("--train without a token: %s", address)
	}
	if code := withToken(t, "POST", strings.Split(at(address, "/api/v1/runs"), "?")[0], `{"config":"quick"}`, nil); code != 401 {
		t.Errorf("without the token: %d", code)
	}
	for body, want := range map[string]string{
		`{"config":"../quick"}`:                "config is",
		`{"config":"--out"}`:                   "config is",
		`{"config":"default"}`:                 "config is",
		`{"config":"quick","device":"cuda:9"}`: "device is",
		`{"config":"quick","time":-1}`:         "time is",
		`{"config":"quick","time":86401}`:      "time is",
	} {
		if code := withToken(t, "POST", at(address, "/api/v1/runs"), body, &no); code != 422 || !strings.Contains(no.Detail, want) {
			t.Errorf("%s: %d %s", body, code, no.Detail)
		}
	}
	var run struct{ Name string }
	if code := withToken(t, "POST", at(address, "/api/v1/runs"), `{"config":"tiny_1","device":"cpu","time":86400}`, &run); code != 201 || run.Name != "tiny_1-001" {
		t.Fatalf("%d %+v", code, run)
	}
	if code := withToken(t, "POST", at(address, "/api/v1/runs"), `{"config":"quick"}`, &no); code != 409 || !strings.Contains(no.Detail, "tiny_1-001") {
		t.Errorf("a second run beside it: %d %s", code, no.Detail)
	}
	var runs struct {
		Runs []struct {
			Name, State string
			At          int
		}
		Train struct{ Running string }
	}
	state := func(name string) (string, int) {
		withToken(t, "GET", at(address, "/api/v1/runs"), "", &runs)
		for _, r := range runs.Runs {
			if r.Name == name {
				return r.State, r.At
			}
		}
		return "", 0
	}
	eventually(t, "the first epoch", func() bool { _, n := state("tiny_1-001"); return n > 0 })
	if runs.Train.Running != "tiny_1-001" {
		t.Errorf("the server says that %q goes on", runs.Train.Running)
	}
	if code := withToken(t, "POST", at(address, "/api/v1/runs/tiny_1-001/stop"), "", &run); code != 202 {
		t.Errorf("stop: %d", code)
	}
	eventually(t, "room for another", func() bool {
		return withToken(t, "POST", at(address, "/api/v1/runs"), `{"config":"tiny_1","device":"cpu"}`, &run) == 201
	})
	quiet(t, filepath.Join(dir, "runs", "tiny_1-001"))
	eventually(t, "the stop", func() bool { s, _ := state("tiny_1-001"); return s == "stopped" })
	if run.Name != "tiny_1-002" {
		t.Errorf("the second run is %s", run.Name)
	}
	// The run ends with its server, and is saved.
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the server does not end")
	}
	quiet(t, filepath.Join(dir, "runs", "tiny_1-002"))
	eventually(t, "the end of its run", func() bool {
		var summary struct {
			Runs []struct{ Name, State string }
		}
		withToken(t, "GET", at(plain, "/api/v1/runs"), "", &summary)
		for _, r := range summary.Runs {
			if r.Name == "tiny_1-002" {
				return r.State == "stopped"
			}
		}
		return false
	})
}

// quiet makes a run's folder look as if nothing had been written to it for an hour: a server counts
// one that was written to within the last quarter of a minute as running, whoever holds it.
func quiet(t *testing.T, dir string) {
	t.Helper()
	past := time.Now().Add(-time.Hour)
	if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, past, past))
	}); err != nil {
		t.Fatal(err)
	}
}

// A job that ran when its server was killed is taken up by the next one, under its id, from its
// routes and with the time that was left; one that waited still waits; what had ended is kept.
func TestJobsOutliveTheirServer(t *testing.T) {
	t.Parallel() // most of it is waiting
	dir := t.TempDir()
	server, url := startServer(t, dir, "--jobs", "jobs")
	type job struct {
		ID, State string
		Progress  *struct{ Seconds, Cost float64 }
		Result    *struct {
			Cost, Seconds float64
			Routes        [][]int
		}
	}
	submit := func(seconds float64) (j job) {
		if code := ask(t, url+"/api/v1/jobs", fmt.Sprintf(tinyProblem, "search", seconds), &j); code != 202 {
			t.Fatalf("submit: %d", code)
		}
		return j
	}
	look := func(id string) (j job) {
		get(t, url+"/api/v1/jobs/"+id, &j)
		return j
	}
	short := submit(0.1)
	eventually(t, "the short job", func() bool { return look(short.ID).State == "done" })
	var long []job // as many as there are workers run, the others wait
	for range runtime.NumCPU() + 1 {
		long = append(long, submit(600))
	}
	state := filepath.Join(dir, "jobs", long[0].ID+".job.json")
	seconds := regexp.MustCompile(`"seconds":[0-9.e-]+`)
	var kept []byte
	eventually(t, "routes on the disk", func() bool {
		kept, _ = os.ReadFile(state)
		return bytes.Contains(kept, []byte(`"routes"`)) && seconds.Match(kept)
	})
	last := long[len(long)-1].ID
	if s := look(last).State; s != "queued" {
		t.Errorf("the last job is %s", s)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	// As if it had been killed a moment before the search's time was up. With all its time again, or
	// begun anew, the search would go on for ten minutes. The file's sum is of what it held.
	edited, _, _ := bytes.Cut(seconds.ReplaceAll(kept, []byte(`"seconds":599.9`)), []byte(`{"crc32c"`))
	if err := os.WriteFile(state, edited, 0o600); err != nil {
		t.Fatal(err)
	}
	_, url = startServer(t, dir, "--jobs", "jobs")
	if j := look(short.ID); j.State != "done" || j.Result == nil {
		t.Errorf("the job that had ended is %+v", j)
	}
	eventually(t, "the job that ran", func() bool { return look(long[0].ID).State == "done" })
	if j := look(long[0].ID); j.Result == nil || len(j.Result.Routes) == 0 || j.Result.Seconds < 599.9 {
		t.Errorf("%+v", j.Result)
	}
	for _, j := range long[1 : len(long)-1] {
		var end job
		if code := ask(t, url+"/api/v1/jobs/"+j.ID+"/cancel", "", &end); code >= 300 {
			t.Errorf("cancel: %d", code)
		}
	}
	eventually(t, "the job that waited", func() bool { return look(last).Progress != nil })
}
