package cli

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
	StandardInput  = "-"
	StandardOutput = "-"
)

// FilesOut are the flags that name what is written, filesIn those that name what is read.
var (
	FilesOut = []string{"out", "plot", "curve", "html", "page", "trace"}
	FilesIn  = []string{"start", "checkpoint", "instances", "reference", "testset", "tasks", "from", "history", "resume", "agent", "began", "runs", "jobs", "token-file", "key-file", "problem"}
)

// named are flags that name what may be no file.
var named = []string{"config", "policy", "decode", "to", "fix", "method", "objective", "distance", "variant", "seeds", "range", "fail-on"}

// Piped are the flags that take -, by verb. --config, which every verb reads through the same
// function, always does.
var Piped = map[string][]string{
	"haul solve":  {"out", "start"},
	"haul gen":    {"out"},
	"haul doctor": {"html"},
}

// CheckNames tells of a - that would be taken for a file's name, and of a name that is empty, as a
// shell's variable may be: it was meant to name something.
func CheckNames(cmd *cobra.Command) (err error) {
	takes := Piped[cmd.CommandPath()]
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if kind := f.Value.Type(); err == nil && kind == "string" && f.Value.String() == "" && slices.Contains(slices.Concat(FilesOut, FilesIn, named), f.Name) {
			err = Usagef("--%s is empty: leave it out or give it a value: %s", f.Name, f.Usage)
		}
		dash := f.Value.String() == StandardInput
		if list, ok := f.Value.(pflag.SliceValue); ok {
			dash = slices.Contains(list.GetSlice(), StandardInput)
		}
		if err != nil || !dash || slices.Contains(takes, f.Name) {
			return
		}
		switch {
		case slices.Contains(FilesOut, f.Name):
			err = Usagef("--%s - is standard output, where this cannot go; name a file or folder: %s", f.Name, f.Usage)
		case slices.Contains(FilesIn, f.Name):
			err = Usagef("--%s - is standard input, where this cannot come from; name a file or folder: %s", f.Name, f.Usage)
		}
	})
	return err
}

// Whole is standard output for what must arrive as it is: a file, whose lines no screen may break.
func (a *App) Whole() io.Writer {
	if s, ok := a.Stdout.(*ScreenWriter); ok {
		return s.To
	}
	return a.Stdout
}

// ReportAside is the program with its reports on standard error, because standard output takes a
// file.
func (a *App) ReportAside() *App {
	b := *a
	b.Stdout = a.Stderr
	return &b
}

// With is the program with other standard error.
func (a *App) With(stderr io.Writer) *App {
	b := *a
	b.Stderr = stderr
	return &b
}

// Spoken is what words call a file that is read.
func Spoken(path string) string {
	if path == StandardInput {
		return "standard input"
	}
	return path
}

// LoadSolution reads routes from a file or standard input: a .sol, or what haul solve and the
// server write. v is the input of VROOM's that the problem comes from, whose answers name its ids.
func LoadSolution(path string, p *vrp.Problem, v *files.VROOM) (vrp.Solution, float64, error) {
	from := os.Stdin
	if path != StandardInput {
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
			return vrp.Solution{}, 0, fmt.Errorf("%s: %w", Spoken(path), err)
		}
		if v != nil && files.LooksAnswer(text) {
			s, err := v.ReadAnswer(text, Spoken(path))
			return s, math.NaN(), err
		}
		return files.ReadSolutionJSON(bytes.NewReader(text), Spoken(path))
	} else if files.LooksSolutionXLSX(start) {
		return files.ReadSolutionXLSX(in, Spoken(path), p)
	} else if files.LooksSolutionCSV(start) {
		return files.ReadSolutionCSV(in, Spoken(path), p)
	}
	return files.ReadSolution(in, Spoken(path), p)
}
