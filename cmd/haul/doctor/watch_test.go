package doctor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest"
	"haul/cmd/haul/clitest/inprocess"
	"haul/cmd/haul/root"
)

// lines is a writer that tells of each whole line.
type lines struct {
	mu   sync.Mutex
	rest bytes.Buffer
	got  chan string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest.Write(b)
	for {
		line, err := l.rest.ReadString('\n')
		if err != nil {
			l.rest.Reset()
			l.rest.WriteString(line)
			return len(b), nil
		}
		l.got <- line
	}
}

func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.got:
		return line
	case <-time.After(clitest.Patience):
		t.Fatal("nothing is told")
		return ""
	}
}

// Each trace is judged once it has been written: one that was there is passed over, one that comes
// is judged, written anew it is judged again, and one that cannot be read is told and passed over.
func TestDoctorWatch(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("old.json.gz", data)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, words := &lines{got: make(chan string, 8)}, &lines{got: make(chan string, 8)}
	done := make(chan int, 1)
	go func() {
		done <- root.Execute(ctx, []string{"doctor", "watch", dir, "--every", "10ms", "--json"}, out, words)
	}()
	// The first look may come after the file is there; it is then an old one. It comes again, longer.
	put("broken.json", []byte("{"))
	for i, end := 0, time.Now().Add(clitest.Patience); ; i++ {
		put("broken.json", bytes.Repeat([]byte("{"), 2+i))
		select {
		case line := <-words.got:
			if !strings.Contains(line, "broken.json") {
				t.Fatalf("%q", line)
			}
		case <-time.After(100 * time.Millisecond):
			if time.Now().Before(end) {
				continue
			}
			t.Fatal("a file that cannot be read is not told")
		}
		break
	}
	put("new.json.gz", data)
	var r struct {
		File     string
		Findings []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(out.next(t)), &r); err != nil || filepath.Base(r.File) != "new.json.gz" || len(r.Findings) == 0 || r.Findings[0].ID != "sync-storm" {
		t.Fatalf("%v, %+v", err, r)
	}
	put("new.json.gz", append(bytes.Clone(data), 0)) // written anew: another size
	select {
	case line := <-out.got:
		if !strings.Contains(line, "new.json.gz") || strings.Contains(line, "old.json.gz") {
			t.Errorf("%.200s", line)
		}
	case line := <-words.got: // bytes behind the end of gzip are no trace's
		if !strings.Contains(line, "new.json.gz") {
			t.Errorf("%q", line)
		}
	case <-time.After(clitest.Patience):
		t.Error("a trace that is written anew is not judged again")
	}
	cancel()
	select {
	case <-done:
	case <-time.After(clitest.Patience):
		t.Fatal("it does not end")
	}
	if len(out.got) > 0 {
		t.Errorf("more is told: %.200s", <-out.got)
	}
}

func TestDoctorWatchAll(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"old.json.gz": data, "cut.json.gz": data[:len(data)*3/4]} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &lines{got: make(chan string, 8)}
	done := make(chan int, 1)
	go func() {
		done <- root.Execute(ctx, []string{"doctor", "watch", dir, "--every", "10ms", "--all"}, out, &bytes.Buffer{})
	}()
	if line := out.next(t); !strings.Contains(line, "cut.json.gz: a step of ") || !strings.Contains(line, " About the recording: the file is cut off after ") {
		t.Errorf("%q", line)
	}
	if line := out.next(t); !strings.Contains(line, "old.json.gz: a step of ") || !strings.Contains(line, "sync-storm") || strings.Contains(line, "About") {
		t.Errorf("%q", line)
	}
	cancel()
	<-done
	for _, args := range [][]string{{"doctor", "watch", filepath.Join(dir, "nowhere")}, {"doctor", "watch", dir, "--every", "1ms"}, {"doctor", "watch"},
		{"doctor", "watch", dir, dir}, {"doctor", "watch", filepath.Join(dir, "old.json.gz")}} {
		if r := inprocess.Run(t, args...); r.Code == cli.ExitDone || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
		}
	}
}

// --fail-on ends with 1 where a finding is at least so severe, and prints the report all the same.
func TestDoctorFailOn(t *testing.T) {
	healthy := filepath.Join("..", "..", "..", "internal", "doctor", "testdata", "healthy_bf16.json.gz")
	for _, c := range []struct {
		trace, on string
		code      int
	}{{recording, "critical", cli.ExitFailed}, {recording, "note", cli.ExitFailed}, {healthy, "critical", cli.ExitDone}, {healthy, "note", cli.ExitDone}, {recording, "fatal", cli.ExitUsage}} {
		r := inprocess.Run(t, "doctor", c.trace, "--fail-on", c.on)
		if r.Code != c.code || c.code != cli.ExitUsage && !strings.Contains(r.Stdout, "of the time") || c.code == cli.ExitFailed && !strings.Contains(r.Stderr, "--fail-on "+c.on+": sync-storm, critical") {
			t.Errorf("%s --fail-on %s: exit %d, %q", c.trace, c.on, r.Code, r.Stderr)
		}
	}
	// of two traces the second counts
	if r := inprocess.Run(t, "doctor", "--diff", recording, healthy, "--fail-on", "critical"); r.Code != cli.ExitDone {
		t.Errorf("exit %d, %s", r.Code, r.Stderr)
	}
	if r := inprocess.Run(t, "doctor", "--diff", healthy, recording, "--fail-on", "critical"); r.Code != cli.ExitFailed {
		t.Errorf("exit %d, %s", r.Code, r.Stderr)
	}
}

// Two jobs are compared as two traces are; a job and a trace are not.
func TestDoctorComparesJobs(t *testing.T) {
	before, after := t.TempDir(), t.TempDir()
	for dir, name := range map[string]string{before: "item_sync", after: "healthy_bf16"} {
		data, err := os.ReadFile(filepath.Join("..", "..", "..", "internal", "doctor", "testdata", name+".json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, rank := range []string{"rank0", "rank1"} {
			if err := os.WriteFile(filepath.Join(dir, rank+".json.gz"), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := inprocess.Object(t, "doctor", "--diff", before, after, "--json")
	delta := v["delta_ms"].(float64)
	var sum float64
	for _, p := range v["parts"].([]any) {
		sum += p.(map[string]any)["delta"].(float64)
	}
	gone := v["findings_gone"].([]any)
	if delta > -30 || sum-delta > 1e-6 || delta-sum > 1e-6 || !slices.Contains(gone, any("sync-storm")) {
		t.Errorf("%v ms, parts %v ms, gone %v", delta, sum, gone)
	}
	if r := inprocess.Run(t, "doctor", "--diff", before, after); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "sync-storm") {
		t.Errorf("exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, args := range [][]string{{"doctor", "--diff", before, recording}, {"doctor", "--diff", before, after, "--html", filepath.Join(t.TempDir(), "x.html")}} {
		if r := inprocess.Run(t, args...); r.Code != cli.ExitUsage || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", args, r.Code, r.Stderr)
		}
	}
}

// A recording without a capture is refused as one.
func TestDoctorCapture(t *testing.T) {
	if r := inprocess.Run(t, "doctor", recording, "--capture", recording); r.Code != cli.ExitFailed || !strings.Contains(r.Stderr, "no graph is captured in this recording") {
		t.Errorf("exit %d, %q", r.Code, r.Stderr)
	}
}
