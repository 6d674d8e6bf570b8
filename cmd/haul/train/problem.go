package train

import (
	"errors"
	"fmt"
	"strings"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/rules"
	"haul/internal/rules/parse"
)

// withProblem is settings for the problem file that --problem names. A run that goes on keeps the
// text that it began with.
func (f *trainFlags) withProblem(s config.Settings) (config.Settings, error) {
	c, ok := s.(*config.Config)
	if !ok {
		return nil, cli.Usagef("--problem trains a routing policy, and these settings are of %s", s.Recipe())
	}
	path, text, err := cli.ReadProblem(f.problem)
	if err != nil {
		return nil, err
	}
	if _, err := rules.Compile(path, text, nil); err != nil {
		if list := (parse.ErrorList)(nil); errors.As(err, &list) && len(list) > 1 {
			return nil, fmt.Errorf("%w (haul problem check %s lists all %d mistakes)", list[0], f.problem, len(list))
		} else if errors.As(err, &list) {
			return nil, list[0]
		}
	}
	if f.last != nil {
		was := f.last.Settings.(*config.Config).Problem.Rules
		if was == "" {
			return nil, fmt.Errorf("resume %s: the run has no problem file, and --problem names %s: begin another run", f.resume, path)
		}
		if was != string(text) {
			return nil, fmt.Errorf("resume %s: %s has changed since the run began: %s; begin another run, or leave --problem out to go on with the run's own text", f.resume, path, differs(was, string(text)))
		}
	}
	own, err := c.WithRules(string(text))
	if err != nil {
		return nil, fmt.Errorf("--problem %s: %w", f.problem, err)
	}
	return own, nil
}

// differs says what the first line is in which two texts differ.
func differs(was, is string) string {
	a, b := strings.Split(was, "\n"), strings.Split(is, "\n")
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	line := func(list []string) string {
		if n >= len(list) {
			return "missing"
		}
		return fmt.Sprintf("%q", strings.TrimSpace(list[n]))
	}
	return fmt.Sprintf("line %d was %s and is %s", n+1, line(a), line(b))
}
