// Package report passes the events of a training run to listeners: a terminal, JSON objects, a CSV
// history, TensorBoard events, pictures. internal/run calls the listeners and prints nothing
// itself; cmd/haul chooses them.
//
// A run does not fail because a listener does. A write that fails is noted once, kept, and retried
// with the next record. Close returns an error if something is still missing, so that the run
// completes and its exit code reports the loss.
package report

import (
	"fmt"
	"io"

	"haul/internal/draw"
)

// Listener receives the events of a run, one call at a time. A slow listener delays the run: Tick
// should do very little.
type Listener interface {
	// Start is called once, after everything is compiled and before the first update.
	Start(*Info)
	// Tick is called at most ten times per second while updates run.
	Tick(Tick)
	// Record is called with each measurement, before the checkpoint that includes it is written.
	Record(*Record)
	// Note is called with messages for the user: long preparations, a resumed run on another
	// device.
	Note(text string)
	// Done is called once, when the run has completed.
	Done(*Ending)
}

// Info describes a run at its start.
type Info struct {
	Recipe     string
	Config     string // name of the settings
	Parameters int    // number of weights
	Device     string
	Precision  string
	Paths      []string // the kernels and graphs of the step
	Memory     int64    // bytes, an upper bound: each program counts its weights
	Dir        string
	Last, Best string // paths of the checkpoints
	Resumed    bool
	At         int     // records after this position were discarded by resuming
	Done       string  // what a resumed run has completed: "3 epochs and 12 steps"
	Tables     []Table // the kinds of records of the run
	View       View
}

// Table describes a kind of record that is stored as a CSV file of the run folder.
type Table struct {
	Kind     string
	File     string // path in the run folder
	Row      any    // a pointer to an empty row; its tags csv and tb name columns and curves, in order
	Recorded int    // number of records before a resumed run
}

// Tick is the progress of a run.
type Tick struct {
	Updates, Total int
	PerSecond      float64 // updates per second since the last record
	WaitShare      float64 // fraction of that time spent waiting for data from the host
}

// Record is a measurement. Row has the type of its table.
type Record struct {
	Kind string
	At   int // position in the run: an epoch or an iteration
	Row  any
}

// Ending is the summary of a run, as text and as an object.
type Ending struct {
	Title string
	Rows  [][2]string // name and text; a row without a name continues the previous row
	Row   any         // the object for JSON
}

// Line appends a row.
func (e *Ending) Line(name, format string, args ...any) {
	e.Rows = append(e.Rows, [2]string{name, fmt.Sprintf(format, args...)})
}

// View is a recipe's text and pictures for one run. It receives every record, also those from
// before a resumed run, before any other method uses it.
type View interface {
	// Banner returns the title, and the recipe's rows besides the model, the device and the memory.
	Banner(live bool) (title string, rows [][2]string)
	// Heading returns the line above the records, with a word above each column's right edge; ""
	// for none. A narrow screen drops columns, those in spare first, in that order.
	Heading() (line string, spare []string)
	// Add receives a record. past is true for a record from before this process.
	Add(r *Record, past bool)
	// Line returns the terminal's line for a record; "" for none.
	Line(r *Record, live bool) string
	// Status returns the parts of the line that is redrawn during updates.
	Status(t Tick) Status
	// Chart returns the curve below that line.
	Chart() Chart
	// Pictures returns the pictures to draw after the run, also if it was interrupted.
	Pictures() []Picture
}

// Status is the parts of the line that is redrawn.
type Status struct {
	Place   string  // "3/10"
	Share   float64 // fraction that is done, for the bar
	Speed   string
	Left    float64 // estimated seconds that remain
	Figures string
}

// Chart is a curve over a run, with a level for comparison.
type Chart struct {
	Points []Point
	Last   int // x at the end of the run
	Level  float64
	Name   string // name of the level
}

// Point is a point of a curve.
type Point struct{ X, Y float64 }

// Picture is written into the run folder as Name.svg and Name.png.
type Picture struct {
	Name string
	Draw func(w io.Writer, f draw.Format) error
}

// Asked counts requests to a device during some updates.
type Asked struct {
	Launches    int64 `json:"launches" csv:"launches"`
	Waits       int64 `json:"waits" csv:"waits"`
	CopiesIn    int64 `json:"copies_in" csv:"copies_in"`
	CopiesOut   int64 `json:"copies_out" csv:"copies_out"`
	Allocations int64 `json:"allocations" csv:"allocations"`
}

// Add adds the counts of other updates.
func (a *Asked) Add(b Asked) {
	a.Launches += b.Launches
	a.Waits += b.Waits
	a.CopiesIn += b.CopiesIn
	a.CopiesOut += b.CopiesOut
	a.Allocations += b.Allocations
}

func (a Asked) String() string {
	launches := "1 launch"
	if a.Launches != 1 {
		launches = Thousands(a.Launches) + " launches"
	}
	return fmt.Sprintf("%s, %s, copies: %s in and %s out, %s", launches, Plural(a.Waits, "wait"), Thousands(a.CopiesIn), Thousands(a.CopiesOut), Plural(a.Allocations, "allocation"))
}

// All returns a listener that passes each call to all listeners, in order.
func All(listeners ...Listener) Listener { return all(listeners) }

type all []Listener

func (a all) Start(i *Info) {
	for _, l := range a {
		l.Start(i)
	}
}

func (a all) Tick(t Tick) {
	for _, l := range a {
		l.Tick(t)
	}
}

func (a all) Record(r *Record) {
	for _, l := range a {
		l.Record(r)
	}
}

func (a all) Note(text string) {
	for _, l := range a {
		l.Note(text)
	}
}

func (a all) Done(e *Ending) {
	for _, l := range a {
		l.Done(e)
	}
}

// Silent ignores all calls. Listeners that need only some calls embed it.
type Silent struct{}

func (Silent) Start(*Info)    {}
func (Silent) Tick(Tick)      {}
func (Silent) Record(*Record) {}
func (Silent) Note(string)    {}
func (Silent) Done(*Ending)   {}
