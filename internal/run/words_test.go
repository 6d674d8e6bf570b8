package run

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/internal/kernel"
)

// TestBetterKeepsTheLowest: weights are the best if their figure is lower than all before, and not
// if it equals the lowest.
func TestBetterKeepsTheLowest(t *testing.T) {
	p := &Progress{Updates: 3}
	for i, c := range []struct {
		figure, best float64
		better       bool
		at           int
	}{{5, 5, true, 3}, {5, 5, false, 3}, {6, 5, false, 3}, {4, 4, true, 6}, {math.Inf(1), 4, false, 6}} {
		if got := p.Better(c.figure); got != c.better || *p.Best != c.best || p.BestAt != c.at {
			t.Errorf("figure %d: %v, best %g at %d", i, got, *p.Best, p.BestAt)
		}
		p.Updates++
	}
}

// TestProgressThatNoRunCanHave is refused. The error lists the figures in a fixed order.
func TestProgressThatNoRunCanHave(t *testing.T) {
	for text, want := range map[string]string{
		`{"updates":5,"concluded":5,"since":5}`: "",
		`{"updates":5,"concluded":6,"since":1}`: "its progress is broken: 5 updates, 6 of them concluded, 1 not reported",
		`{"updates":5,"concluded":2,"since":6}`: "its progress is broken: 5 updates, 2 of them concluded, 6 not reported",
		`{"updates":-1}`:                        "its progress is broken: -1 updates, 0 of them concluded, 0 not reported",
	} {
		err := decodeProgress(text, new(Progress))
		if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestAnEndThatIsNoNumberSaysWhich: the error names the gradient, sum or validation result.
func TestAnEndThatIsNoNumberSaysWhich(t *testing.T) {
	for want, e := range map[string]*NonFinite{
		"the loss is NaN (epoch 3), though every gradient was finite":                                             {Dir: "d", Sum: "loss", Value: math.NaN(), Place: "epoch 3", Key: "k"},
		"training diverged (epoch 3): the network's results in validation are not finite, first in softmax; d ho": {Dir: "d", Place: "epoch 3", Op: "softmax", Key: "k"},
	} {
		if got := e.Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%s", got)
		}
	}
	if got := (&NonFinite{Dir: "d", Step: 7, Place: "epoch 3", Key: "k"}).Error(); !strings.Contains(got, "7") || strings.Contains(got, "validation") {
		t.Errorf("%s", got)
	}
}

// TestAFolderBelowAFile: the error begins with the requested folder.
func TestAFolderBelowAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self"); err == nil { // a folder in which no process can create another
		const path = "/proc/haul/run"
		if _, err := OpenDir(path, false, false); err == nil || !strings.HasPrefix(err.Error(), "run folder "+path+": ") {
			t.Errorf("%v", err)
		}
	}
	path := filepath.Join(file, "run")
	if _, err := OpenDir(path, false, false); err == nil || err.Error() != "run folder "+path+": not a directory" {
		t.Errorf("%v", err)
	}
}

// TestALockThatIsTaken differs in its error from a lock that cannot be taken.
func TestALockThatIsTaken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	first := open()
	if taken, err := lockFile(first); taken || err != nil {
		t.Fatalf("a free lock: taken %v, %v", taken, err)
	}
	if taken, err := lockFile(open()); !taken || err == nil {
		t.Errorf("a lock of another: taken %v, %v", taken, err)
	}
	closed := open()
	closed.Close()
	if taken, err := lockFile(closed); taken || err == nil {
		t.Errorf("a file that is closed: taken %v, %v", taken, err)
	}
}

// TestPartsAreNoted: the note names the setting and its effect on the device.
func TestPartsAreNoted(t *testing.T) {
	for _, c := range []struct {
		parts, cuts, turns int
		want               string
	}{{1, 0, 0, ""}, {2, 2, 0, ""}, {2, 0, 0, "training.gradient_parts 2 has no effect on this device"}, {2, 0, 2, "training.gradient_parts 2 saves memory alone on this device"}} {
		said := ""
		s := &Setup{Note: func(text string) { said += text }}
		s.TellParts("training.gradient_parts", c.parts, &kernel.Program{Turns: c.turns, Share: kernel.Share{Cuts: c.cuts}})
		if !strings.HasPrefix(said, c.want) || c.want == "" && said != "" {
			t.Errorf("%d parts in %d cuts and %d turns: %q", c.parts, c.cuts, c.turns, said)
		}
	}
}
