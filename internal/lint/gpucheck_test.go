package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestGPUCheckTellsWhatItDidNotCheck: where a sanitizer is not installed, or is not done in time,
// the last line of scripts/gpu-check does not say that all is well. The binaries that it runs stand
// in here for those of a machine with a card.
func TestGPUCheckTellsWhatItDidNotCheck(t *testing.T) {
	if _, err := exec.LookPath("timeout"); err != nil || runtime.GOOS != "linux" {
		t.Skip("a script for Linux, with its timeout")
	}
	for _, c := range []struct{ name, sanitizer, want, last string }{
		{"none", "", "sanitizers: compute-sanitizer is not installed", "not checked, see above"},
		{"slow", "#!/bin/sh\nexec sleep 20\n", "memcheck of chosen: no report within 1 s", "not checked, see above"},
		{"quick", "#!/bin/sh\necho '--- PASS'\necho '========= ERROR SUMMARY: 0 errors'\n", "clean  racecheck chosen: ERROR SUMMARY: 0 errors",
			"2 not checked, see above"}, // resume and data
		{"finds", "#!/bin/sh\necho '========= ERROR SUMMARY: 1 error'\nexit 9\n", "FAILED  memcheck chosen", "something failed, see above"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			script, err := os.ReadFile(filepath.Join("..", "..", "scripts", "gpu-check"))
			if err != nil {
				t.Fatal(err)
			}
			put := func(path, text string) {
				t.Helper()
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			put("scripts/gpu-check", string(script))
			put("build/gpu/haul", "#!/bin/sh\necho cuda:0\n")
			put("build/gpu/cuda.test", "#!/bin/sh\necho PASS\n")
			put("build/gpu/device.test", "#!/bin/sh\necho PASS\n")
			put("internal/kernel/cuda/x", "")
			put("internal/device/x", "")
			// No Go on the path: the script would build what it runs.
			for _, tool := range strings.Fields("bash sh cat dirname mktemp rm sed grep tail head wc timeout sleep mkdir seq") {
				if at, err := exec.LookPath(tool); err == nil {
					put("tools/"+tool, "#!/bin/sh\nexec "+at+" \"$@\"\n")
				}
			}
			if c.sanitizer != "" {
				put("tools/compute-sanitizer", c.sanitizer)
			}
			cmd := exec.Command("bash", filepath.Join(root, "scripts", "gpu-check"), "tests", "sanitizers", "bench")
			cmd.Env = []string{"PATH=" + filepath.Join(root, "tools"), "SANITIZE=chosen", "SANITIZE_SECONDS=1", "TMPDIR=" + root}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			err = cmd.Run()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			last := lines[len(lines)-1]
			if !strings.Contains(out.String(), c.want) || !strings.HasSuffix(last, c.last) || (err != nil) != (c.name == "finds") {
				t.Errorf("%v, want %q and at the end %q:\n%s", err, c.want, c.last, out.String())
			}
		})
	}
}
