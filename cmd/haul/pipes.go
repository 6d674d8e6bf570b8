package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"haul/internal/vrp"
	"haul/internal/vrp/files"
)

// What a reader could break: - in place of a file is standard input or output, and never the name
// of a file. A flag that names a file or a folder stands in one of the lists below, which a test
// holds against every flag there is.

// Names that stand for what is piped: of a file to read, and of one to write.
const (
	standardInput  = "-"
	standardOutput = "-"
)

// filesOut are the flags that name what is written, filesIn those that name what is read.
var (
	filesOut = []string{"out", "plot", "curve", "html", "page", "trace"}
	filesIn  = []string{"fleet", "depots", "shipments", "distances", "durations", "check", "start", "checkpoint", "instances", "reference", "testset", "tasks", "from", "history", "resume", "agent", "began", "runs", "jobs", "token-file"}
)

// named are flags that name what may be no file.
var named = []string{"config", "policy", "decode", "fix", "method", "objective", "distance", "variant", "seeds", "range", "fail-on"}

// piped are the flags that take -, by verb. --config, which every verb reads through the same
// function, always does.
var piped = map[string][]string{
	"haul solve":  {"out", "check", "start"},
	"haul gen":    {"out"},
	"haul doctor": {"html"},
}

// checkNames tells of a - that would be taken for a file's name, and of a name that is empty, as a
// shell's variable may be: it was meant to name something.
func checkNames(cmd *cobra.Command) (err error) {
	takes := piped[cmd.CommandPath()]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if kind := f.Value.Type(); err == nil && kind == "string" && f.Value.String() == "" && slices.Contains(slices.Concat(filesOut, filesIn, named), f.Name) {
			err = usagef("--%s is empty: leave it out or give it a value: %s", f.Name, f.Usage)
		}
		dash := f.Value.String() == standardInput
		if list, ok := f.Value.(pflag.SliceValue); ok {
			dash = slices.Contains(list.GetSlice(), standardInput)
		}
		if err != nil || !dash || slices.Contains(takes, f.Name) {
			return
		}
		switch {
		case slices.Contains(filesOut, f.Name):
			err = usagef("--%s - is standard output, where this cannot go; name a file or folder: %s", f.Name, f.Usage)
		case slices.Contains(filesIn, f.Name):
			err = usagef("--%s - is standard input, where this cannot come from; name a file or folder: %s", f.Name, f.Usage)
		}
	})
	return err
}

// whole is standard output for what must arrive as it is: a file, whose lines no screen may break.
func (a *app) whole() io.Writer {
	if s, ok := a.stdout.(*screenWriter); ok {
		return s.to
	}
	return a.stdout
}

// reportAside is the program with its reports on standard error, because standard output takes a
// file.
func (a *app) reportAside() *app {
	b := *a
	b.stdout = a.stderr
	return &b
}

// spoken is what words call a file that is read.
func spoken(path string) string {
	if path == standardInput {
		return "standard input"
	}
	return path
}

// loadSolution reads routes from a file or standard input: a .sol, or what haul solve and the
// server write. v is the input of VROOM's that the problem comes from, whose answers name its ids.
func loadSolution(path string, p *vrp.Problem, v *files.VROOM) (vrp.Solution, float64, error) {
	from := os.Stdin
	if path != standardInput {
		f, err := os.Open(path)
		if err != nil {
			return vrp.Solution{}, 0, err
		}
		defer f.Close()
		from = f
	}
	in := bufio.NewReader(from)
	if start, _ := in.Peek(512); files.LooksJSON(start) {
		text, err := io.ReadAll(in)
		if err != nil {
			return vrp.Solution{}, 0, fmt.Errorf("%s: %w", spoken(path), err)
		}
		if v != nil && files.LooksAnswer(text) {
			s, err := v.ReadAnswer(text, spoken(path))
			return s, math.NaN(), err
		}
		return files.ReadSolutionJSON(bytes.NewReader(text), spoken(path))
	} else if files.LooksSolutionXLSX(start) {
		return files.ReadSolutionXLSX(in, spoken(path), p)
	} else if files.LooksSolutionCSV(start) {
		return files.ReadSolutionCSV(in, spoken(path), p)
	}
	return files.ReadSolution(in, spoken(path), p)
}
