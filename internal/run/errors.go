package run

import (
	"errors"
	"fmt"

	"haul/internal/report"
)

// ErrTimeUp is the cause of a context that ended as planned: the run has used its time.
var ErrTimeUp = errors.New("time is up")

// CutShort is the end of an evaluation whose context ended; the result that comes with it is of
// what was done until then.
type CutShort struct{ Cause error }

func (e *CutShort) Error() string { return "the result is of what was done so far: " + e.Cause.Error() }

// Unwrap is why the context ended.
func (e *CutShort) Unwrap() error { return e.Cause }

// Interrupted is the end of a run whose context ended. Its state is saved to the update.
type Interrupted struct {
	Dir     string
	Place   string // "in epoch 3 after step 12 of 25"
	Again   string // flags that the run must be told again
	Updates int    // made by the whole run so far
	Total   int    // of the whole run
	TimeUp  bool   // the context ended by ErrTimeUp, as planned
	Cause   error
}

// Error says how to go on.
func (e *Interrupted) Error() string {
	why := "interrupted"
	if e.TimeUp {
		why = ErrTimeUp.Error()
	}
	return fmt.Sprintf("%s %s; all is saved, continue with haul train --resume %s%s", why, e.Place, report.ShellWord(e.Dir), e.Again)
}

// Unwrap is the context's error.
func (e *Interrupted) Unwrap() error { return e.Cause }

// NonFinite is the end of a run whose gradient, whose loss, or whose results in validation were not
// finite. Checkpoints are of before.
type NonFinite struct {
	Dir   string
	Step  int64 // optimizer steps of the whole run, from 1; 0 where no gradient went wrong
	Place string
	Op    string  // the first op whose result was not finite; "" if a replay found none
	Sum   string  // the sum that is no number, where no gradient went wrong
	Value float64 // its value
	Key   string  // of the learning rate
}

// Error names what went wrong and what is left.
func (e *NonFinite) Error() string {
	if e.Sum != "" {
		return fmt.Sprintf("the %s is %v (%s), though every gradient was finite: a temperature or a coefficient is out of range, or the learning rate (%s) too high; %s holds the last state before it",
			e.Sum, e.Value, e.Place, e.Key, e.Dir)
	}
	if e.Step == 0 {
		return fmt.Sprintf("training diverged (%s): the network's results in validation are not finite, first in %s; %s holds the last state before it: try a lower %s",
			e.Place, e.Op, e.Dir, e.Key)
	}
	op := e.Op
	if op == "" {
		op = "no op of a replay, so in their sum"
	}
	return fmt.Sprintf("the gradient of step %d (%s) is not finite, first in %s; %s holds the last state before it: try a lower %s",
		e.Step, e.Place, op, e.Dir, e.Key)
}

// firstOf does one thing after another until one fails.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// UsageError marks an error in what the user typed, found without reading a file.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap is what was wrong.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes one.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }
