package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Objects prints one JSON object per line: every record under its kind as "event", and how the run
// ended under "done", or "stopped" where its time was up first.
type Objects struct {
	Silent
	w   io.Writer
	err error
}

// NewObjects prints to w.
func NewObjects(w io.Writer) *Objects { return &Objects{w: w} }

// Record prints a record.
func (o *Objects) Record(r *Record) { o.print(r.Kind, r.Row) }

// Done prints how the run ended.
func (o *Objects) Done(e *Ending) { o.print("done", e.Row) }

// Stopped is the end of a run that had used its time before it was over.
type Stopped struct {
	Updates int    `json:"updates"` // made by the whole run so far
	Total   int    `json:"total"`   // of the whole run
	Dir     string `json:"dir"`
	Text    string `json:"text"` // where it stands and how to go on
}

// Stopped prints where a run stands that goes on another time.
func (o *Objects) Stopped(s *Stopped) { o.print("stopped", s) }

// print writes a line. After a failure nothing more is printed: a reader would take the stream for
// whole.
func (o *Objects) print(event string, v any) {
	if o.err != nil {
		return
	}
	line, err := json.Marshal(v)
	if err == nil {
		if rest, ok := bytes.CutPrefix(line, []byte("{")); ok && len(rest) > 1 {
			line = append(fmt.Appendf(nil, "{%q:%q,", "event", event), rest...)
		}
		_, err = o.w.Write(append(line, '\n'))
	}
	o.err = err
}

// Close returns the first failure.
func (o *Objects) Close() error { return o.err }
