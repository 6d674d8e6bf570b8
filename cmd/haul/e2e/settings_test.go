package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A resumed run was refused for another working_dir_path, which nothing reads; and its folder's
// settings listed every such key.
func TestResumeIgnoresSettingsWithoutEffect(t *testing.T) {
	wholeOnly(t)
	dir, args := tiny(t, "--set", "working_dir_path=here", "--epochs", "1")
	if r := haul(t, args...); r.code != exitDone {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"working_dir_path", "gat_", "gpu", "logging", "max_steps_multiplier"} {
		if strings.Contains(string(text), key) {
			t.Errorf("the run's settings have %s, which has no effect:\n%s", key, text)
		}
	}
	if r := haul(t, "train", "--resume", dir, "--epochs", "2", "--set", "working_dir_path=elsewhere", "--set", "gpu.device=cuda:7"); r.code != exitDone {
		t.Errorf("other settings without effect: exit %d, %s", r.code, r.stderr)
	}
	refused(t, []string{"train", "--resume", dir, "--epochs", "3", "--set", "training.learning_rate=0.5"}, exitFailed, "learning_rate")
}

// TestWhatPartsDoIsTold: on a CPU gradient_parts saves memory alone, an agent's has no effect, and
// a run says so.
func TestWhatPartsDoIsTold(t *testing.T) {
	wholeOnly(t)
	const told = "gradient_parts 4 saves memory alone on this device"
	for parts, want := range map[string]bool{"1": false, "4": true} {
		_, args := tiny(t, "--epochs", "1", "--set", "training.gradient_parts="+parts)
		if r := haul(t, args...); r.code != exitDone || strings.Contains(strings.Join(strings.Fields(r.stderr), " "), "training."+told) != want {
			t.Errorf("GT+RL in %s parts: exit %d, %s", parts, r.code, r.stderr)
		}
	}
	_, args := smallAgent(t, histories(t), "--set", "gradient_parts=4")
	if r := haul(t, args...); r.code != exitDone || !strings.Contains(strings.Join(strings.Fields(r.stderr), " "), "gradient_parts 4 has no effect on this device") {
		t.Errorf("AD: exit %d, %s", r.code, r.stderr)
	}
}
