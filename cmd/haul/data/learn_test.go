package data

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
)

// TestLearnAnswersLineByLine: a learner acts on what it is told, task after task; a line that makes
// no sense is answered by what is wrong with it and changes nothing; the answer to the last step is
// a label for every step; and the end of the input, within a task too, is the end.
func TestLearnAnswersLineByLine(t *testing.T) {
	var said strings.Builder
	talk := func(in string) []string {
		t.Helper()
		var out strings.Builder
		said.Reset()
		a := &app{&cli.App{Stdout: &out, Stderr: &said}}
		cmd := a.newDataLearn()
		cmd.SetIn(strings.NewReader(in))
		cmd.SetArgs(strings.Fields("--envs 2 --sizes 3,2 --actions 4 --steps 3 --rollout 2 --hidden 4 --seed 5"))
		if err := cmd.ExecuteContext(context.Background()); err != nil {
			t.Fatal(err, said.String())
		}
		return strings.Split(strings.TrimSpace(out.String()), "\n")
	}
	const begin = `{"task": 7, "obs": [[0, 0], [2, 1]]}` + "\n"
	const step = `{"obs": [[1, 0], [2, 1]], "reward": [0, 1.5], "end": [false, true]}` + "\n"
	plain := talk(begin + step + step + step + begin + step)
	if len(plain) != 7 || plain[0] != `{"actions":4,"envs":2,"fields":2,"steps":3}` {
		t.Fatalf("%q", plain)
	}
	var labels struct{ Best [][]int }
	if err := json.Unmarshal([]byte(plain[4]), &labels); err != nil || len(labels.Best) != 2 || len(labels.Best[0]) != 3 || len(labels.Best[1]) != 3 {
		t.Errorf("the answer to the last step: %s, %v", plain[4], err)
	}
	if plain[5] != plain[1] || plain[6] != plain[2] {
		t.Errorf("a task that is lived once more: %q, at first %q", plain[5:], plain[1:3])
	}
	other := strings.Replace(begin, "7", "8", 1)
	if next := talk(other + step + step + step + begin + step); len(next) != 7 || fmt.Sprint(next[1:4]) == fmt.Sprint(plain[1:4]) || next[5] != plain[1] || next[6] != plain[2] {
		t.Errorf("another task and then the same: %q, at first %q", next, plain)
	}
	const rest = "--steps 3 is no multiple of --rollout 2: the rest is recorded and not learned from\n"
	if again := talk(begin + step); len(again) != 3 || again[2] != plain[2] || said.String() != rest+"the input ended at step 2 of 3 of a task: what was learned of it is lost\n" {
		t.Errorf("cut short: %q, %q", again, said.String())
	}
	if talk(begin + step + step + step); said.String() != rest {
		t.Errorf("a whole task: %q", said.String())
	}
	wrong := []struct{ line, why string }{
		{"x", "not a line of this kind"},
		{"[]", "not a line of this kind"},
		{"{}", "a task begins with a line such as"},
		{step, "a task begins with a line such as"},
		{`{"task": 1.5, "obs": [[0, 0], [2, 1]]}`, "task: want a whole number"},
		{`{"task": null, "obs": [[0, 0], [2, 1]]}`, "task: want a whole number"},
		{`{"task": 7, "task": 8, "obs": [[0, 0], [2, 1]]}`, "task is given twice"},
		{`{"task": 7, "obs": [[0, 0]]}`, "obs: want a list of 2 observations"},
		{`{"task": 7, "obs": [[0, 0], [2, null]]}`, "obs: want a list of 2 observations"},
		{`{"task": 7, "obs": [[0, 0], [3, 1]]}`, "field 0 of environment 1 is 3"},
		{`{"task": 7, "obs": [[0, 0], [2, 1]]} {}`, "a line holds one object"},
	}
	in := ""
	for _, c := range wrong {
		in += strings.TrimSpace(c.line) + "\n\n"
	}
	in += begin
	within := []struct{ line, why string }{
		{begin, "a task is under way"},
		{`{"obs": [[1, 0], [2, 1]]}`, "reward: want a list of 2 numbers"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0]}`, "reward: want a list of 2 numbers"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, null]}`, "reward: want a list of 2 numbers"},
		{`{"obs": [[1, 0], [2, 1]], "reward": 3}`, "reward: want a list of 2 numbers"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "end": [true]}`, "end: want a list of 2 truth values"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "end": 1}`, "end: want a list of 2 truth values"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "last": [[1, 0]]}`, "last: want a list of 2 observations"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "cut": [true, false], "last": [[1, 2], null]}`, "last: field 1 of environment 0 is 2"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "cut": [false, true], "last": [[1, 0], [2, 1]]}`, "last: the episode of environment 0 goes on: want null"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "idle": [false, true], "end": [false, true]}`, "idle: environment 1 only began an episode, and its episode is over"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "idle": [true, false], "cut": [true, false]}`, "idle: environment 0 only began an episode"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "done": [true, true]}`, `unknown field \"done\", want task, obs, reward, end, cut, last or idle`},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "reward": [1, 1]}`, "reward is given twice"},
		{`{"obs": [[1, 0], [2, 1]], "reward": [0, 1], "cut": [true, null]}`, "cut: want a list of 2 truth values"},
	}
	for _, c := range within {
		in += strings.TrimSpace(c.line) + "\n"
	}
	told := talk(in + step + step + strings.Replace(step, "}", `, "last": null, "cut": [false, false], "idle": [false, false]}`, 1))
	if len(told) != 5+len(wrong)+len(within) {
		t.Fatalf("%d lines: %q", len(told), told)
	}
	for i, c := range wrong {
		if !strings.HasPrefix(told[1+i], `{"error":`) || !strings.Contains(told[1+i], c.why) {
			t.Errorf("%s is answered by %s", c.line, told[1+i])
		}
	}
	for i, c := range within {
		if at := told[2+len(wrong)+i]; !strings.HasPrefix(at, `{"error":`) || !strings.Contains(at, c.why) {
			t.Errorf("%s is answered by %s", c.line, at)
		}
	}
	if rest := told[len(told)-3:]; fmt.Sprint(rest) != fmt.Sprint(plain[2:5]) {
		t.Errorf("after wrong lines: %q, without %q", rest, plain[2:5])
	}
}

// TestEnvironmentsThatAPassLeavesOut: those that fill no minibatch are told of, others are not.
func TestEnvironmentsThatAPassLeavesOut(t *testing.T) {
	for envs, want := range map[int]string{1: "", 2: "", 3: "", 8: "", 9: "--envs 9: each pass learns from 8 of them, drawn anew; a multiple of 2 leaves out none\n"} {
		var said strings.Builder
		a := &app{&cli.App{Stdout: io.Discard, Stderr: &said}}
		cmd := a.newDataLearn()
		cmd.SetIn(strings.NewReader(""))
		cmd.SetArgs(strings.Fields(fmt.Sprintf("--envs %d --sizes 3 --actions 2 --steps 4 --rollout 2 --hidden 4", envs)))
		if err := cmd.ExecuteContext(context.Background()); err != nil || said.String() != want {
			t.Errorf("%d environments: %q, %v", envs, said.String(), err)
		}
	}
}
