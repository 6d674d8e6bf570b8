package routing

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"haul/internal/config"
	"haul/internal/report"
	"haul/internal/run"
	"haul/internal/run/runtest"
)

// killDir names the folder in which the child process of TestKillNine trains.
const killDir = "HAUL_TEST_KILL_DIR"

// TestKillNine trains in a separate process, kills it in the middle of an epoch without any chance
// to clean up, and resumes: the lock must be free and the end the same.
func TestKillNine(t *testing.T) {
	if path := os.Getenv(killDir); path != "" {
		trainUntilKilled(t, path)
		return
	}
	dev := openCPU(t, 2)
	_, want := whole(t, killConfig(t), dev)
	path := runtest.Folder(t)
	child := exec.Command(os.Args[0], "-test.run=^TestKillNine$")
	child.Env = append(os.Environ(), killDir+"="+path)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child said nothing: %v", err)
	}
	if _, err := run.OpenDir(path, true, false); err == nil {
		t.Error("two runs got into one folder")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	o := options(killConfig(t), dev)
	e := &runtest.Heard{}
	o.Dir, o.Resume, o.Listener = runtest.OpenDir(t, path, true), true, e
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	runtest.Same(t, want, runtest.Load(t, o.Dir.Last()))
	if e.Info.At != 2 {
		t.Errorf("resumed after epoch %d, want 2", e.Info.At)
	}
}

func killConfig(t *testing.T) *config.Config { return tiny(t, "training.num_epochs=4") }

// trainUntilKilled stops the third epoch at its second step, says so, and waits to be killed.
func trainUntilKilled(t *testing.T, path string) {
	epochs := 0
	dev := &runtest.Counting{Device: openCPU(t, 2)}
	dev.Stop = func() {
		fmt.Println("in the middle of an epoch")
		select {}
	}
	o := options(killConfig(t), dev)
	o.Dir = runtest.OpenDir(t, path, false)
	o.Listener = &runtest.Heard{OnRecord: func(*report.Record) {
		if epochs++; epochs == 2 {
			dev.StopAt = dev.Runs + 2
		}
	}}
	t.Error(run.Run(t.Context(), o))
}
