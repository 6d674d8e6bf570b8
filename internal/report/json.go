package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Objects writes one JSON object per line: every record with its kind as "event", and the summary
// as "done", or "stopped" if the time limit came first.
type Objects struct {
	Silent
	w   io.Writer
	err error
}

// NewObjects returns Objects that write to w.
func NewObjects(w io.Writer) *Objects { return &Objects{w: w} }

// Record writes a record.
func (o *Objects) Record(r *Record) { o.print(r.Kind, r.Row) }

// Done writes the summary of the run.
func (o *Objects) Done(e *Ending) { o.print("done", e.Row) }

// Stopped describes a run that reached its time limit before its end.
type Stopped struct {
	Updates int    `json:"updates"` // completed by the whole run
	Total   int    `json:"total"`   // planned for the whole run
	Dir     string `json:"dir"`
	Text    string `json:"text"` // position in the run and how to resume it
}

// Stopped writes the position of a run that will be resumed.
func (o *Objects) Stopped(s *Stopped) { o.print("stopped", s) }

// print writes a line. After a failed write it writes nothing more, because a reader would take the
// stream for complete.
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

// Close returns the first error of a write.
func (o *Objects) Close() error { return o.err }
