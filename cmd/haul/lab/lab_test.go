package lab_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

func TestLab(t *testing.T) {
	if r := inprocess.Run(t, "lab", "list"); r.Code != cli.ExitDone || !strings.Contains(r.Stdout, "transfers") || !strings.Contains(r.Stdout, "GPU") {
		t.Errorf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	if r := inprocess.Run(t, "lab", "run", "transfers", "--device", "cpu"); r.Code != cli.ExitFailed || !strings.Contains(r.Stdout, "needs a GPU") || !strings.Contains(r.Stderr, "haul: transfers: needs a GPU") {
		t.Errorf("exit %d, %q, %q", r.Code, r.Stdout, r.Stderr)
	}
	page := filepath.Join(t.TempDir(), "lab.md")
	r := inprocess.Run(t, "lab", "run", "arithmetic-002", "--device", "cpu", "--json", "--page", page)
	var found struct {
		Claims []struct{ Verdict string }
	}
	if err := json.Unmarshal([]byte(r.Stdout), &found); err != nil || r.Code != cli.ExitDone || len(found.Claims) != 8 || found.Claims[0].Verdict != "holds" {
		t.Errorf("exit %d, %v, %q, %q", r.Code, err, r.Stdout, r.Stderr)
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
		{[]string{"run"}, cli.ExitUsage, "which experiment"},
		{[]string{"run", "nothing"}, cli.ExitUsage, "cost-cpu"},
		{[]string{"run", "all", "more"}, cli.ExitUsage, "unexpected"},
		{[]string{"run", "all", "--workers", "0"}, cli.ExitUsage, "--workers"},
		{[]string{"run", "arithmetic-001", "--device", "tpu"}, cli.ExitUsage, "unknown device"},
	} {
		if r := inprocess.Run(t, append([]string{"lab"}, c.args...)...); r.Code != c.code || !strings.Contains(r.Stderr, c.want) {
			t.Errorf("%v: exit %d, %q", c.args, r.Code, r.Stderr)
		}
	}
}
