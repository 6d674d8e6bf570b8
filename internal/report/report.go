// Package report is what a training run tells, and who listens: a terminal, JSON objects, a CSV
// history, TensorBoard events, pictures. The loop never prints; whoever starts it decides who
// listens.
//
// What a reader could break: a listener may fail, a run may not fail because of one. A write that
// fails is noted once, kept and tried again with the next record; what is still missing at the
// end is the error of Close, so that the run ends whole and its exit code still tells.
package report

import (
	"fmt"
	"io"

	"haul/internal/draw"
)

// Listener hears what a run does. All calls come one at a time; a listener that takes long holds
// the run up, so Tick should do next to nothing.
type Listener interface {
	// Start comes once, when everything is compiled and before the first update.
	Start(*Info)
	// Tick comes at most ten times per second while updates run.
	Tick(Tick)
	// Record comes with everything that was measured, before the checkpoint that counts it is written.
	Record(*Record)
	// Note is something worth a line: long preparations, a resumed run on another device.
	Note(text string)
	// Done comes once, when the run has ended by itself.
	Done(*Ending)
}

// Info says what is about to run.
type Info struct {
	Recipe     string
	Config     string // the settings' name
	Parameters int    // learned numbers
	Device     string
	Precision  string
	Paths      []string // kernels, graph, what the step is built on
	Memory     int64    // bytes; at most what the run holds, since each program counts its weights
	Dir        string
	Last, Best string // paths of the checkpoints
	Resumed    bool
	At         int     // records past this place belong to a history that did not happen
	Done       string  // what a resumed run has behind it: "3 epochs and 12 steps"
	Tables     []Table // what will be recorded
	View       View
}

// Table is one kind of record, kept as a CSV file of the run folder.
type Table struct {
	Kind string
	File string // under the run folder
	Row  any    // a pointer to an empty row; its tags csv and tb name columns and curves, in order
	Told int    // of a resumed run: how many of its records were told before
}

// Tick is where the run stands.
type Tick struct {
	Updates, Total int
	PerSecond      float64 // updates, since the last record
	WaitShare      float64 // of that time, spent waiting for data from the host
}

// Record is something that a run has measured. Row is of its table's type.
type Record struct {
	Kind string
	At   int // the place in the run that it belongs to: an epoch, an iteration
	Row  any
}

// Ending is how a run ended, in words and as an object.
type Ending struct {
	Title string
	Rows  [][2]string // name and text; a row without a name goes with the one above
	Row   any         // what JSON prints
}

// Line adds a row.
func (e *Ending) Line(name, format string, args ...any) {
	e.Rows = append(e.Rows, [2]string{name, fmt.Sprintf(format, args...)})
}

// View is a recipe's words and pictures for one run. It hears every record, a resumed run's past
// included, before it is asked about any.
type View interface {
	// Banner is the headline and, row by row, what the recipe adds to the model, the device and the
	// memory.
	Banner(live bool) (title string, rows [][2]string)
	// Heading stands over the lines on a screen, a word over each column's right edge; "" for none. On
	// a screen that is too narrow columns go, those named in spare first, in that order.
	Heading() (line string, spare []string)
	// Add takes a record in. A past one was made before this process.
	Add(r *Record, past bool)
	// Line is what a terminal prints about a record; "" for nothing.
	Line(r *Record, live bool) string
	// Status is where the run stands, for the line that is drawn anew.
	Status(t Tick) Status
	// Chart is the curve below that line.
	Chart() Chart
	// Pictures are drawn when the run has ended, however it did.
	Pictures() []Picture
}

// Status is the parts of the live line.
type Status struct {
	Place   string  // "3/10"
	Share   float64 // done of what the bar shows
	Speed   string
	Left    float64 // seconds
	Figures string
}

// Chart is a curve over a run with a level that it should reach.
type Chart struct {
	Points []Point
	Last   int // x of the run's end
	Level  float64
	Name   string // of the level
}

// Point is a value of a curve.
type Point struct{ X, Y float64 }

// Picture is drawn into the run folder as Name.svg and Name.png.
type Picture struct {
	Name string
	Draw func(w io.Writer, f draw.Format) error
}

// Asked is what a device was asked for over some updates.
type Asked struct {
	Launches    int64 `json:"launches" csv:"launches"`
	Waits       int64 `json:"waits" csv:"waits"`
	CopiesIn    int64 `json:"copies_in" csv:"copies_in"`
	CopiesOut   int64 `json:"copies_out" csv:"copies_out"`
	Allocations int64 `json:"allocations" csv:"allocations"`
}

// Add adds what was asked for over others.
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

// All passes everything on to each listener, in order.
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

// Silent hears nothing; listeners that do not need every call embed it.
type Silent struct{}

func (Silent) Start(*Info)    {}
func (Silent) Tick(Tick)      {}
func (Silent) Record(*Record) {}
func (Silent) Note(string)    {}
func (Silent) Done(*Ending)   {}
