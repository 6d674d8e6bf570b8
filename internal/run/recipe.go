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

// Recipe is a kind of model and the way it is trained: all that differs between one run and
// another. internal/recipe lists them.
type Recipe interface {
	About() *About
	// Length is how many units a run with these settings has, and Lengthen a copy of them for a run of
	// n, as --epochs or --iterations asks for.
	Length(s config.Settings) int
	Lengthen(s config.Settings, n int) config.Settings
	// Merge is the settings of a run's checkpoint, with the keys that a resumed run may change taken
	// from `now`.
	Merge(file, now config.Settings) config.Settings
	// Precision is what the settings prefer of a GPU; "" leaves it to the device.
	Precision(s config.Settings) string
	// Step compiles the training step alone, for whoever measures steps and trains nothing.
	Step(dev kernel.Device, s config.Settings) (*Step, error)
	// Open readies what a run reads and says in one line why it cannot start. Nothing is compiled and
	// nothing written yet. A run that continues hands over its last checkpoint, which may remember
	// where its data lies; nil begins one.
	Open(s config.Settings, f Flags, last *Checkpoint) (Task, error)
	// Evaluate puts a checkpoint to the test.
	Evaluate(ctx context.Context, e *Evaluation) (Result, error)
}

// Adopter is a recipe whose runs settle what settings leave open: Adopt is `now` with what a run's
// checkpoint has settled.
type Adopter interface {
	Adopt(file, now config.Settings) config.Settings
}

// About is how a recipe presents itself to the command line.
type About struct {
	Name   string // as --model, settings and checkpoints have it
	Trains string // what: "a routing policy"
	Train  string // a paragraph for `haul train --help`
	Eval   string // a paragraph for `haul eval --help`
	Config string // the settings that run where none are named
	Unit   string // what a run counts: "epoch"; its flag is --epochs
	Length string // the key that the flag stands in for
	Seed   string // the key of the seed
	// settings that change the names or shapes of weights
	ShapeKeys []string
	// settings that change the network but not the shape of any weight
	ShapelessKeys []string
	// Grows names the weights that a run of settings `to` may take over from one of settings `from`
	// whose network sees less: each with the axis along which the old weight is the beginning. sees
	// says what the old network does not see. nil: none.
	Grows func(from, to config.Settings) (axes map[string]int, sees string)
	// the key of the rows of a step, where ranks can share them out; "" where they cannot
	Batch string
	Rows  func(s config.Settings) int // what an update learns from: instances, sequences, steps
	// the checkpoint of a folder that is put to use: BestName or LastName
	Use string
	// UseBest says of settings that their runs choose the best checkpoint by what nothing is judged
	// on, so that it is put to use whatever Use says; nil: none do.
	UseBest   func(s config.Settings) bool
	Flags     []Flag // of train
	EvalFlags []Flag // of eval
}

// UseOf is the checkpoint that is put to use of a folder of a run with these settings.
func (a *About) UseOf(s config.Settings) string {
	if a.UseBest != nil && a.UseBest(s) {
		return BestName
	}
	return a.Use
}

// RowsOf is what an update with these settings learns from; 0 where the recipe does not say.
func (a *About) RowsOf(s config.Settings) int {
	if a.Rows == nil {
		return 0
	}
	return a.Rows(s)
}

// Flag is a flag of one recipe or of several. Default says its type: string, int or float64.
type Flag struct {
	Name    string
	Default any
	Usage   string
	// Check says what is wrong with the value given, without reading any file; nil: nothing can be.
	Check func(f Flags) error
}

// Flags are the values that were given on the command line.
type Flags interface {
	Changed(name string) bool
	String(name string) string
	Int(name string) int
	Float(name string) float64
}

// Task is a run that may start: its data are open.
type Task interface {
	// Trainer compiles everything for a device.
	Trainer(s *Setup) (Trainer, error)
	Close() error
}

// Setup is what a run hands to its recipe.
type Setup struct {
	Settings config.Settings // a trainer that sets something in them puts a copy here
	Device   kernel.Device
	Workers  int         // cores for work on the host; 0: as the settings say
	World    *comm.World // the ranks that share every step; nil: this process is alone
	Resumed  bool
	Until    time.Time // when the run's time is up, on the rank that has the clock; zero: no limit
	Dir      *Dir
	Progress *Progress // the run's; the trainer reads it
	Note     func(string)
}

// TellParts says where a device passes over the parts that a gradient was to be made in, or what
// they do there.
func (s *Setup) TellParts(key string, parts int, p *kernel.Program) {
	switch {
	case p.Turns > 1:
		s.Note(fmt.Sprintf("%s %d saves memory alone on this device: its sums have one order, and no number of parts changes the weights", key, parts))
	case parts > 1 && p.Share.Cuts == 0:
		s.Note(fmt.Sprintf("%s %d has no effect on this device: the order of its sums is fixed, and no number of ranks changes the weights",
			key, parts))
	}
}

// Trainer is a recipe at work. One goroutine owns it.
type Trainer interface {
	Layout() *kernel.Layout
	// Initial is the weights before the first update, of every set.
	Initial() []float32
	// Sets are the weight sets that a checkpoint keeps; the first is trained.
	Sets() []Set
	// Runner is the training step, whose state a checkpoint keeps.
	Runner() kernel.Runner
	// State is a pointer to what else decides the next update, kept as JSON.
	State() any
	// Extra are tensors that a checkpoint keeps beside the sets.
	Extra() []safetensors.Tensor
	// Restore takes over a checkpoint's State, which is read already, and its Extra; nil begins a run.
	// More says that the run was lengthened.
	Restore(ctx context.Context, c *Checkpoint, more bool) error

	// Prepare comes once, when listeners have heard what will run: long work before the first update.
	Prepare(ctx context.Context) error
	// Total is the updates of the whole run.
	Total() int
	// Next is the first update after `done` that something follows, at most Total.
	Next(done int) int
	// Begin comes before an interval of updates.
	Begin() error
	// Update makes one update. The context is heeded before it has begun, never within, but for a
	// trainer that is an Abandoner: a checkpoint holds whole ones only.
	Update(ctx context.Context) error
	// Waited is how long this process has waited for data.
	Waited() float64
	// EndInterval does what is due after the updates so far: tests, evaluations, reports. It may
	// change the run only once all of it is known, so that an interruption can be saved and taken up
	// again.
	EndInterval(ctx context.Context, s *Interval) (*Outcome, error)
	// Finish is how the run ended.
	Finish(ctx context.Context) (*report.Ending, error)

	// Describe fills in what the recipe knows of the run: tables, view, the place of the last record.
	Describe(i *report.Info)
	// Place says where a number of updates lies in the run: "in epoch 3 after step 12 of 25".
	Place(updates int) string
	// RateKey is the key of the learning rate.
	RateKey() string
	Memory() int64
	Close() error
}

// Shipper is a trainer whose best checkpoint holds other weights than those that it trains: what it
// judged.
type Shipper interface {
	Shipped() kernel.Store // nil: the weights that it trains
}

// Set is a weight set in a checkpoint: its parameters' names begin with Prefix. Moments are kept of
// the set that is trained.
type Set struct {
	Prefix  string
	Store   kernel.Store
	Trained bool
}

// Interval is what the updates since the last report came to.
type Interval struct {
	Updates int
	Seconds float64
	Waited  float64 // of those, for data from the host
	Sums    kernel.Metrics
	Asked   report.Asked // by this process
}

// Outcome is what followed some updates.
type Outcome struct {
	Records []report.Record
	Taken   bool // the interval was reported on: the next begins anew
	Save    bool // the last checkpoint is due
	Stop    bool // the run ends here
}

// Evaluation is a checkpoint to be judged, and how.
type Evaluation struct {
	Path       string
	Checkpoint *Checkpoint
	Settings   config.Settings // the checkpoint's
	// Device opens the device, which whoever gave this closes: after the flags were found right, since
	// choosing one takes time.
	Device   func() (kernel.Device, error)
	Workers  int
	Seed     *uint64 // nil: the training run's
	Flags    Flags
	Plot     bool // keep what a picture needs
	Progress func(done, of int)
	Note     func(string)
}

// Result is how a checkpoint fared.
type Result interface {
	// Object is what JSON prints beside the checkpoint's path and the device.
	Object() any
	// Text prints it for a person; bold marks a headline.
	Text(w io.Writer, bold func(string) string) error
	// Pictures are drawn by --plot: the first under the name that was asked for, the others under it
	// and their own.
	Pictures() []Drawing
}

// Drawing is a picture of a result; Suffix goes between the name and the ending.
type Drawing struct {
	Suffix string
	Draw   func(w io.Writer, f draw.Format) error
}
