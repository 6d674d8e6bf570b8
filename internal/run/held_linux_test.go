package run_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"haul/internal/run"
	"haul/internal/run/runtest"
)

// Runs under kill -9, with failing disks, and in a race for one folder, in short versions.

// Environment variables of a child process that trains: the folder, the number of epochs, and the
// largest file size in bytes ("": no limit).
const (
	childDir    = "HAUL_TEST_CHILD_DIR"
	childEpochs = "HAUL_TEST_CHILD_EPOCHS"
	childLimit  = "HAUL_TEST_CHILD_LIMIT"
)

func ofEpochs(t testing.TB, n string) run.Options {
	return toyOptions(toySettings(t, "training.num_epochs="+n))
}

// TestChild is the program of the child processes. It starts a run, or resumes it if the folder
// holds one.
func TestChild(t *testing.T) {
	path := os.Getenv(childDir)
	if path == "" {
		t.Skip("run by other tests")
	}
	o := ofEpochs(t, os.Getenv(childEpochs))
	if n, err := strconv.ParseUint(os.Getenv(childLimit), 10, 64); err == nil {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := os.Stat(filepath.Join(path, run.LastName))
	o.Resume = err == nil
	if o.Dir, err = run.OpenDir(path, o.Resume, !o.Resume); err != nil {
		t.Fatal(err)
	}
	fmt.Println("open")
	if err := run.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Dir.Close()
}

func child(path, epochs, limit string) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=^TestChild$")
	c.Env = append(os.Environ(), childDir+"="+path, childEpochs+"="+epochs, childLimit+"="+limit)
	return c
}

// TestTimedKills kills a run after different times and resumes it. Afterwards the folder is never
// locked, no checkpoint is ever broken, and the final state equals that of an uninterrupted run.
func TestTimedKills(t *testing.T) {
	const epochs = "40"
	_, want := runtest.Whole(t, ofEpochs(t, epochs))
	random := rand.New(rand.NewPCG(1, 2))
	most := 20
	if testing.Short() {
		most = 5
	}
	for kills := 0; kills < most; { // a completed run is checked, and another one begins
		path := runtest.Folder(t)
		for alive := true; alive; {
			c := child(path, epochs, "")
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if word, err := bufio.NewReader(out).ReadString('\n'); word != "open\n" {
				t.Fatalf("after %d kills the child says %q, %v", kills, word, err)
			}
			if kills < most {
				time.Sleep(time.Duration(random.IntN(8000)) * time.Microsecond)
				c.Process.Kill() // it may have ended already
			}
			if err := c.Wait(); err == nil {
				alive = false
			} else if kills++; kills > most {
				t.Fatalf("nobody killed it: %v", err)
			}
			if last := filepath.Join(path, run.LastName); exists(last) {
				runtest.Load(t, last)
			}
		}
		runtest.Same(t, want, runtest.Load(t, filepath.Join(path, run.LastName)))
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestFailingDisk makes writes past a number of bytes fail, in the settings, the first checkpoint
// or a later one. The run ends with a one-line error that names the file, earlier files stay
// complete and no partial file stays. With enough space the run resumes to its regular end.
func TestFailingDisk(t *testing.T) {
	const epochs = "3"
	full, want := runtest.Whole(t, ofEpochs(t, epochs))
	size, err := os.Stat(full.Info.Last)
	if err != nil {
		t.Fatal(err)
	}
	whole := size.Size()
	for _, limit := range []int64{0, 8, 1000, whole / 2, whole - 200} {
		path := runtest.Folder(t)
		out, err := child(path, epochs, fmt.Sprint(limit)).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "file too large") || !strings.Contains(string(out), path) {
			t.Fatalf("%d bytes of %d: %v\n%s", limit, whole, err, out)
		}
		if strings.Contains(string(out), "goroutine") || strings.Contains(string(out), "panic") {
			t.Errorf("%d bytes: %s", limit, out)
		}
		if left, _ := filepath.Glob(filepath.Join(path, "*.tmp")); len(left) > 0 {
			t.Errorf("%d bytes: %v is left", limit, left)
		}
		for _, name := range []string{run.LastName, run.BestName} {
			if file := filepath.Join(path, name); exists(file) {
				runtest.Load(t, file)
			}
		}
		if out, err := child(path, epochs, "").CombinedOutput(); err != nil {
			t.Fatalf("with room again after %d bytes: %v\n%s", limit, err, out)
		}
		runtest.Same(t, want, runtest.Load(t, filepath.Join(path, run.LastName)))
	}
}

// TestOneWinner: if many processes open one folder at once (new, to resume or by force), one of
// them succeeds and the others get an error. Numbered folders are used once each.
func TestOneWinner(t *testing.T) {
	const racers, rounds = 8, 10
	race := func(open func(i int) (*run.Dir, error)) (won []*run.Dir, lost []error) {
		var wg sync.WaitGroup
		begin := make(chan struct{})
		dirs, errs := make([]*run.Dir, racers), make([]error, racers)
		for i := range racers {
			wg.Go(func() {
				<-begin
				dirs[i], errs[i] = open(i)
			})
		}
		close(begin)
		wg.Wait()
		for i, d := range dirs {
			if errs[i] != nil {
				lost = append(lost, errs[i])
			} else {
				won = append(won, d)
			}
		}
		return won, lost
	}
	root := t.TempDir()
	for n := range rounds {
		path := filepath.Join(root, fmt.Sprint("r", n))
		for _, c := range []struct{ resume, force bool }{{false, false}, {true, false}, {false, true}} {
			won, lost := race(func(int) (*run.Dir, error) { return run.OpenDir(path, c.resume, c.force) })
			if len(won) != 1 {
				t.Fatalf("%d of %d got the folder at once, %+v: %v", len(won), racers, c, lost)
			}
			for _, err := range lost {
				if text := err.Error(); !strings.Contains(text, "in use by another run") && !strings.Contains(text, "exists: continue it with --resume") && !strings.Contains(text, "holds no run") {
					t.Errorf("a loser is told %v", err)
				}
			}
			// a run that has begun keeps its folder
			if err := os.WriteFile(won[0].Last(), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := won[0].Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	won, lost := race(func(int) (*run.Dir, error) { return run.NewDir(root, "numbered") })
	seen := map[string]bool{}
	for _, d := range won {
		seen[d.Path()] = true
	}
	if len(seen) != racers {
		t.Errorf("%d different folders for %d runs: %v", len(seen), racers, lost)
	}
	for _, d := range won {
		d.Close()
	}
}
