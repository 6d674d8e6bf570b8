package train

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"haul/internal/config"
)

// killDir names the folder in which the child process of TestKillNine trains.
const killDir = "HAUL_TEST_KILL_DIR"

// TestKillNine trains in a process of its own, kills it in the middle of an epoch without any chance to
// clean up, and resumes: the lock must be free and the end the same.
func TestKillNine(t *testing.T) {
	if path := os.Getenv(killDir); path != "" {
		trainUntilKilled(t, path)
		return
	}
	dev := openCPU(t, 2)
	_, want := whole(t, killConfig(t), dev)
	path := setup(t)
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
	if _, err := OpenDir(path, true, false); err == nil {
		t.Error("two runs got into one folder")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
	d := openDir(t, path, true)
	e := &ear{}
	if err := Run(t.Context(), Options{Device: dev, Dir: d, Resume: true, Listener: e}); err != nil {
		t.Fatal(err)
	}
	got, _, err := loadCheckpoint(d.Last(), nil)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, got)
	if e.info.EpochsDone != 2 {
		t.Errorf("resumed after epoch %d, want 2", e.info.EpochsDone)
	}
}

func killConfig(t *testing.T) *config.Config { return tiny(t, "training.num_epochs=4") }

// trainUntilKilled stops the third epoch at its second step, says so, and waits to be killed.
func trainUntilKilled(t *testing.T, path string) {
	d := openDir(t, path, false)
	epochs := 0
	dev := &counting{Device: openCPU(t, 2)}
	dev.stop = func() {
		fmt.Println("in the middle of an epoch")
		select {}
	}
	e := &ear{onEpoch: func(EpochReport) {
		if epochs++; epochs == 2 {
			dev.stopAt = dev.runs + 2
		}
	}}
	t.Error(Run(t.Context(), Options{Config: killConfig(t), Device: dev, Dir: d, Listener: e}))
}
