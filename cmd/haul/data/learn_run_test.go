package data_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/clitest/inprocess"
)

// TestLearnHearsTheEnd: what cannot be read any more is an error, and what is interrupted ends.
func TestLearnHearsTheEnd(t *testing.T) {
	c := cli.NewConversation(io.MultiReader(strings.NewReader("{}\n"), broken{}), io.Discard, 1)
	if line, err := c.Hear(); err != nil || string(line) != "{}\n" {
		t.Errorf("%q, %v", line, err)
	}
	if _, err := c.Hear(); err == nil || err == io.EOF || !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("a broken pipe: %v", err)
	}
	c = &cli.Conversation{In: bufio.NewReader(strings.NewReader("\n \n{\"a\":1}")), Limit: 8}
	if line, err := c.Hear(); err != nil || string(line) != `{"a":1}` {
		t.Errorf("a last line without its end: %q, %v", line, err)
	}
	if _, err := c.Hear(); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestLearnRefusals: flags that cannot be are wrong use, in one line.
func TestLearnRefusals(t *testing.T) {
	for args, why := range map[string]string{
		"--actions 2":                               "--sizes or --measured is missing",
		"--actions 2 --sizes 3 --measured 1":        "not both",
		"--measured 1":                              "--actions is missing",
		"--measured 1 --actions 1":                  "1 actions: want 2 to 64",
		"--measured 1 --actions 65":                 "65 actions",
		"--measured 65 --actions 2":                 "an observation of 65 numbers",
		"--measured -1 --actions 2":                 "an observation of -1 numbers",
		"--sizes 257 --actions 2":                   "field 0 takes 257 values",
		"--measured 1 --actions 2 --envs 0":         "0 environments",
		"--measured 1 --actions 2 --steps 63":       "63 steps of a history: want 64",
		"--measured 1 --actions 2 --discount 1":     "a discount of 1",
		"--measured 1 --actions 2 --rate 0":         "a learning rate of 0",
		"--measured 1 --actions 2 --device auto":    "--device is auto: use cpu or cuda:K",
		"--measured 1 --actions 2 --precision bf16": "--precision is bf16",
		"--measured 1 --actions 2 --precision fp16": "--precision is fp16: networks learn in fp32, or in tf32 on a GPU",
		"--measured 1 --actions 2 --precision tf32": "--precision tf32 is for GPUs: on a CPU networks learn in fp32",
		"--measured 1 --actions 2 --device gpu":     `unknown device "gpu"`,
		"--measured 1 --actions 2 --workers 0":      "--workers is 0",
		"--measured 1 --actions 2 more":             "more",
	} {
		inprocess.Refused(t, append([]string{"data", "learn"}, strings.Fields(args)...), cli.ExitUsage, why)
	}
}
