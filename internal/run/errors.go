package run

import (
	"errors"
	"fmt"

	"haul/internal/report"
)

// ErrTimeUp is the cause of a context that ended because the run has used its time.
var ErrTimeUp = errors.New("time is up")

// CutShort is the error of an evaluation whose context ended. The result that is returned with it
// covers the work until then.
type CutShort struct{ Cause error }

func (e *CutShort) Error() string { return "the result is of what was done so far: " + e.Cause.Error() }

// Unwrap returns why the context ended.
func (e *CutShort) Unwrap() error { return e.Cause }

// Interrupted is the error of a run whose context ended. All completed updates are saved.
type Interrupted struct {
	Dir     string
	Place   string // position in the run: "in epoch 3 after step 12 of 25"
	Again   string // flags that must be repeated when the run is resumed
	Updates int    // completed by the whole run
	Total   int    // planned for the whole run
	TimeUp  bool   // the cause is ErrTimeUp
	Cause   error
}

// Error returns a message with the command that resumes the run.
func (e *Interrupted) Error() string {
	why := "interrupted"
	if e.TimeUp {
		why = ErrTimeUp.Error()
	}
	return fmt.Sprintf("%s %s; all is saved, continue with haul train --resume %s%s", why, e.Place, report.ShellWord(e.Dir), e.Again)
}

// Unwrap returns the context's error.
func (e *Interrupted) Unwrap() error { return e.Cause }

// NonFinite is the error of a run whose gradient, loss or validation result was not finite. The
// checkpoints are from before that.
type NonFinite struct {
	Dir   string
	Step  int64 // number of the optimizer step in the whole run, from 1; 0: all gradients were finite
	Place string
	Op    string  // the first op with a result that is not finite; "": a replay found none
	Sum   string  // name of the sum that is not finite, if all gradients were
	Value float64 // value of that sum
	Key   string  // key of the learning rate
}

// Error returns a message with the value that was not finite and the checkpoints that remain.
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

// firstOf calls steps in order until one fails, and returns its error.
func firstOf(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// UsageError marks an error in the user's flags or settings that was found without reading a file.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }
