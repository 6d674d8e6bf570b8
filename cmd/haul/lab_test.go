package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLab(t *testing.T) {
	if r := haul(t, "lab", "list"); r.code != exitDone || !strings.Contains(r.stdout, "transfers") || !strings.Contains(r.stdout, "GPU") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	if r := haul(t, "lab", "run", "transfers", "--device", "cpu"); r.code != exitFailed || !strings.Contains(r.stdout, "needs a GPU") || !strings.Contains(r.stderr, "haul: transfers: needs a GPU") {
		t.Errorf("exit %d, %q, %q", r.code, r.stdout, r.stderr)
	}
	page := filepath.Join(t.TempDir(), "lab.md")
	r := haul(t, "lab", "run", "arithmetic-002", "--device", "cpu", "--json", "--page", page)
	var found struct {
		Claims []struct{ Verdict string }
	}
	if err := json.Unmarshal([]byte(r.stdout), &found); err != nil || r.code != exitDone || len(found.Claims) != 8 || found.Claims[0].Verdict != "holds" {
		t.Errorf("exit %d, %v, %q, %q", r.code, err, r.stdout, r.stderr)
	}
	text, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(text), "3,200 transfers") || !strings.Contains(string(text), "CPU: ") {
		t.Errorf("%v, page %q", err, text)
	}
}

func TestLabRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run"}, exitUsage, "which experiment"},
		{[]string{"run", "nothing"}, exitUsage, "cost-cpu"},
		{[]string{"run", "all", "more"}, exitUsage, "unexpected"},
		{[]string{"run", "all", "--workers", "0"}, exitUsage, "--workers"},
		{[]string{"run", "arithmetic-001", "--device", "tpu"}, exitUsage, "unknown device"},
	} {
		if r := haul(t, append([]string{"lab"}, c.args...)...); r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%v: exit %d, %q", c.args, r.code, r.stderr)
		}
	}
}
