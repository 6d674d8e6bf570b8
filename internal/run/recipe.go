package run

import (
	"context"
	"fmt"
	"io"
	"time"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/kernel"
	"haul/internal/report"
	"haul/internal/safetensors"
)

// Recipe is a type of model with its training method: everything that differs between runs.
// internal/recipe lists all recipes.
type Recipe interface {
	About() *About
	// Length returns the length of a run with these settings in About.Unit. Lengthen returns a copy
	// of the settings for a run of length n, as --epochs or --iterations asks for.
	Length(s config.Settings) int
	Lengthen(s config.Settings, n int) config.Settings
	// Merge returns the settings of a run's checkpoint, except for the keys that a resumed run may
	// change, which come from `now`.
	Merge(file, now config.Settings) config.Settings
	// Precision returns the precision that the settings request for a GPU; "" leaves it to the device.
	Precision(s config.Settings) string
	// Step compiles only the training step, for measurements without training.
	Step(dev kernel.Device, s config.Settings) (*Step, error)
	// Open opens the run's data, or returns a one-line error if the run cannot start. It compiles
	// and writes nothing. last is the last checkpoint of a resumed run, which may hold the location
	// of the data; nil for a new run.
	Open(s config.Settings, f Flags, last *Checkpoint) (Task, error)
	// Evaluate evaluates a checkpoint.
	Evaluate(ctx context.Context, e *Evaluation) (Result, error)
}

// Adopter is a recipe whose runs choose values that the settings leave open. Adopt returns `now`
// with the values that the run of a checkpoint has chosen.
type Adopter interface {
	Adopt(file, now config.Settings) config.Settings
}

// About describes a recipe for the command line.
type About struct {
	Name   string // the name in --model, settings and checkpoints
	Trains string // the result: "a routing policy"
	Train  string // a paragraph for `haul train --help`
	Eval   string // a paragraph for `haul eval --help`
	Config string // the default settings
	Unit   string // unit of a run's length: "epoch"; its flag is --epochs
	Length string // key of a run's length
	Seed   string // key of the seed
	// settings that change the names or shapes of weights
	ShapeKeys []string
	// settings that change the network but not the shape of any weight
	ShapelessKeys []string
	// Grows names the weights that a run with settings `to` can take over from a run with settings
	// `from` whose network has fewer inputs, each with the axis along which the old weight is the
	// beginning. sees describes the inputs that the old network lacks. nil: there are none.
	Grows func(from, to config.Settings) (axes map[string]int, sees string)
	// key of the number of rows of a step, if ranks can partition them; "": they cannot
	Batch string
	Rows  func(s config.Settings) int // number of instances, sequences or steps of an update
	// the checkpoint of a run folder for inference: BestName or LastName
	Use string
	// UseBest reports whether runs with these settings choose the best checkpoint on data that no
	// result is measured on. BestName then takes precedence over Use. nil: always false.
	UseBest   func(s config.Settings) bool
	Flags     []Flag // of train
	EvalFlags []Flag // of eval
}

// UseOf returns the name of the checkpoint for inference in the folder of a run with these
// settings.
func (a *About) UseOf(s config.Settings) string {
	if a.UseBest != nil && a.UseBest(s) {
		return BestName
	}
	return a.Use
}

// RowsOf returns the rows of an update with these settings; 0 if the recipe does not define them.
func (a *About) RowsOf(s config.Settings) int {
	if a.Rows == nil {
		return 0
	}
	return a.Rows(s)
}

// Flag is a flag of some recipes. The type of Default is the flag's: string, int or float64.
type Flag struct {
	Name    string
	Default any
	Usage   string
	// Check returns an error for an invalid value, without reading a file; nil: all values are
	// valid.
	Check func(f Flags) error
}

// Flags gives access to the values on the command line.
type Flags interface {
	Changed(name string) bool
	String(name string) string
	Int(name string) int
	Float(name string) float64
}

// Task is a run that is ready to start: its data are open.
type Task interface {
	// Trainer compiles all programs for a device.
	Trainer(s *Setup) (Trainer, error)
	Close() error
}

// Setup holds what a run passes to its recipe.
type Setup struct {
	Settings config.Settings // a trainer that changes a setting stores a copy here
	Device   kernel.Device
	Workers  int         // cores for work on the host; 0: by the settings
	World    *comm.World // the ranks that share every step; nil: a single process
	Resumed  bool
	Until    time.Time // when the run's time is over, on the rank that keeps time; zero: no limit
	Dir      *Dir
	Progress *Progress // owned by the run; the trainer only reads it
	Note     func(string)
}

// TellParts reports by a note how a device treats the setting that divides a gradient into parts,
// if it ignores the setting or uses it in a special way.
func (s *Setup) TellParts(key string, parts int, p *kernel.Program) {
	switch {
	case p.Turns > 1:
		s.Note(fmt.Sprintf("%s %d saves memory alone on this device: its sums have one order, and no number of parts changes the weights", key, parts))
	case parts > 1 && p.Share.Cuts == 0:
		s.Note(fmt.Sprintf("%s %d has no effect on this device: the order of its sums is fixed, and no number of ranks changes the weights",
			key, parts))
	}
}

// Trainer runs the training of a recipe. One goroutine owns it.
type Trainer interface {
	Layout() *kernel.Layout
	// Initial returns the weights before the first update, of every set.
	Initial() []float32
	// Sets returns the weight sets that a checkpoint holds. The first one is trained.
	Sets() []Set
	// Runner returns the training step. A checkpoint holds its state.
	Runner() kernel.Runner
	// State returns a pointer to the recipe's state that decides the next update. It is saved as
	// JSON.
	State() any
	// Extra returns the tensors that a checkpoint holds besides the sets.
	Extra() []safetensors.Tensor
	// Restore loads a checkpoint's Extra; its State is loaded already. c is nil for a new run. more
	// is true if the run was lengthened.
	Restore(ctx context.Context, c *Checkpoint, more bool) error

	// Prepare runs once, after listeners have received the run's description: long work before the
	// first update.
	Prepare(ctx context.Context) error
	// Total returns the number of updates of the whole run.
	Total() int
	// Next returns the first update after `done` at which an interval ends, at most Total.
	Next(done int) int
	// Begin is called before an interval of updates.
	Begin() error
	// Update runs one update. It checks the context before the update only, unless the trainer is
	// an Abandoner: checkpoints hold whole updates only.
	Update(ctx context.Context) error
	// Waited returns the seconds that this process has waited for data.
	Waited() float64
	// EndInterval runs what is due after the updates so far: tests, evaluations, reports. It
	// changes the run only after all of that has succeeded, so that an interrupted call can be
	// repeated by a resumed run.
	EndInterval(ctx context.Context, s *Interval) (*Outcome, error)
	// Finish returns the summary of a completed run.
	Finish(ctx context.Context) (*report.Ending, error)

	// Describe sets the recipe's fields of i: tables, view, position of the last record.
	Describe(i *report.Info)
	// Place describes the position of an update in the run: "in epoch 3 after step 12 of 25".
	Place(updates int) string
	// RateKey returns the key of the learning rate.
	RateKey() string
	Memory() int64
	Close() error
}

// Shipper is a trainer that validates other weights than it trains, such as their moving average.
// The best checkpoint holds the validated weights.
type Shipper interface {
	Shipped() kernel.Store // nil: the trained weights
}

// Set is a weight set in a checkpoint. The names of its parameters begin with Prefix. A checkpoint
// holds moments of the trained set only.
type Set struct {
	Prefix  string
	Store   kernel.Store
	Trained bool
}

// Interval sums up the updates since the last report.
type Interval struct {
	Updates int
	Seconds float64
	Waited  float64 // part of Seconds spent waiting for data from the host
	Sums    kernel.Metrics
	Asked   report.Asked // requests by this process
}

// Outcome is the result of EndInterval.
type Outcome struct {
	Records []report.Record
	Taken   bool // the interval was reported: the next one begins with zero sums
	Save    bool // the last checkpoint must be written
	Stop    bool // the run ends here
}

// Evaluation describes how to evaluate a checkpoint.
type Evaluation struct {
	Path       string
	Checkpoint *Checkpoint
	Settings   config.Settings // those of the checkpoint
	// Device opens the device; the caller of Evaluate closes it. Evaluate calls Device after it has
	// checked the flags, because choosing a device takes time.
	Device   func() (kernel.Device, error)
	Workers  int
	Seed     *uint64 // nil: the seed of the training run
	Flags    Flags
	Plot     bool // keep the data that pictures need
	Progress func(done, of int)
	Note     func(string)
}

// Result is the result of an evaluation.
type Result interface {
	// Object returns the object that --json prints next to the checkpoint's path and the device.
	Object() any
	// Text writes the result as text; bold formats a headline.
	Text(w io.Writer, bold func(string) string) error
	// Pictures returns the pictures of --plot. The first one gets the file name that was asked for,
	// the others that name with their suffix.
	Pictures() []Drawing
}

// Drawing is a picture of a result. Suffix is inserted before the file name's extension.
type Drawing struct {
	Suffix string
	Draw   func(w io.Writer, f draw.Format) error
}
