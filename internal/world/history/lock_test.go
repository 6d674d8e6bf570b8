package history

import (
	"path/filepath"
	"testing"
	"time"
)

// What a writer notes of a goal is noted under its lock: goals come from many goroutines.
func TestAGoalIsNotedUnderTheLock(t *testing.T) {
	h := small()
	w, err := Create(filepath.Join(t.TempDir(), "a.hist"), h)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	w.mu.Lock()
	done := make(chan error, 1)
	go func() { done <- w.WriteGoal(0, walk(h, 0)) }()
	select {
	case <-done:
		t.Error("a goal was noted while another goroutine held the lock")
	case <-time.After(300 * time.Millisecond):
	}
	if w.written[0] {
		t.Error("a goal was noted while another goroutine held the lock")
	}
	w.mu.Unlock()
	if err := <-done; err != nil || !w.written[0] {
		t.Errorf("%v", err)
	}
}
