package run

import (
	"strings"
	"testing"
	"time"
)

// TestARunOfWeeksSaysSoOnce: the note comes once, as soon as the first updates are measured.
func TestARunOfWeeksSaysSoOnce(t *testing.T) {
	var p pace
	if note := p.add(1, time.Second, 100_000, "iteration"); note != "" {
		t.Errorf("after a second it says %q", note)
	}
	note := p.add(1, 39*time.Second, 100_000, "iteration") // 20 s each: 23 days
	if !strings.Contains(note, "3 weeks") || !strings.Contains(note, "--iterations") {
		t.Errorf("it says %q", note)
	}
	if again := p.add(1, 20*time.Second, 99_999, "iteration"); again != "" {
		t.Errorf("it says again %q", again)
	}
	short := pace{}
	if note := short.add(100, 10*time.Second, 10_000, "epoch"); note != "" {
		t.Errorf("a run of a quarter of an hour says %q", note)
	}
	long := pace{}
	if note := long.add(1, time.Hour, 1_000_000_000, "epoch"); !strings.Contains(note, "years") {
		t.Errorf("it says %q", note)
	}
}

// TestAFolderWithBlanksCanBeCopied: the advice to resume quotes the folder for a shell.
func TestAFolderWithBlanksCanBeCopied(t *testing.T) {
	for path, want := range map[string]string{"runs/quick-001": "runs/quick-001", "runs/my run": "'runs/my run'", "it's": `'it'\''s'`, "runs/x[1]": "'runs/x[1]'", "läufe/1": "läufe/1", "": "''"} {
		if got := (&Interrupted{Dir: path}).Error(); !strings.HasSuffix(got, "--resume "+want) {
			t.Errorf("%q: %s", path, got)
		}
	}
}
