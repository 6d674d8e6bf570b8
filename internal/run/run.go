package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"haul/internal/comm"
	"haul/internal/config"
	"haul/internal/device"
	"haul/internal/kernel"
	"haul/internal/report"
)

// Options configure a run.
type Options struct {
	Recipe   Recipe
	Task     Task
	Settings config.Settings
	Device   kernel.Device
	Dir      *Dir
	Resume   bool        // continue from Dir.Last
	From     *Checkpoint // weights that a new run begins with; nil: the recipe's initial weights
	Workers  int         // cores for work on the host; 0: by the settings
	Again    string      // flags that must be repeated when the run is resumed
	World    *comm.World // the ranks of the run; nil: a single process
	Listener report.Listener
}

// Run trains until no update is left or the recipe ends the run, and then lets the recipe evaluate
// the result. Its errors are one line each. Interrupted and NonFinite are found by errors.As. A
// context with a deadline and the cause ErrTimeUp limits the run's time.
func Run(ctx context.Context, o Options) (err error) {
	if o.Listener == nil {
		o.Listener = report.Silent{}
	}
	until, _ := ctx.Deadline()
	r := &run{Options: o, limit: newLimit(ctx, o.World != nil)}
	ctx = o.World.Agree(ctx)
	o.World.Saves(o.Dir.Last())
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.prepare(ctx, until); err != nil {
		return r.interrupted(err)
	}
	info := r.info()
	r.view = info.View
	o.Listener.Start(info)
	if err := r.trainer.Prepare(ctx); err != nil {
		return r.interrupted(err)
	}
	if r.Resume && r.over() {
		o.Listener.Note(fmt.Sprintf("the run is complete, %s; what came of it is judged once more", r.trainer.Place(r.at.Updates)))
	}
	if err := r.loop(ctx); err != nil {
		return err
	}
	end, err := r.trainer.Finish(ctx)
	if err != nil {
		return r.interrupted(err)
	}
	o.Listener.Done(end)
	return nil
}

// run is a training run in progress. One goroutine owns it.
type run struct {
	Options
	trainer       Trainer
	view          report.View
	at            Progress
	asked         report.Asked // requests by this process since the last report
	pace          pace
	limit         limit
	hasCheckpoint bool // the folder holds a checkpoint of this run
}

// prepare loads or creates the state, compiles the programs and writes a first checkpoint, so that
// the run can be resumed at any time and a folder that cannot be written is noticed early.
func (r *run) prepare(ctx context.Context, until time.Time) error {
	ck, err := r.checkpoint()
	if err != nil {
		return err
	}
	if err := r.sameEverywhere(); err != nil {
		return err
	}
	if ck != nil {
		r.at, r.hasCheckpoint = ck.Progress, true
	}
	setup := &Setup{Settings: r.Settings, Device: r.Device, Workers: r.Workers, Resumed: ck != nil, Until: until, Dir: r.Dir, Progress: &r.at, Note: r.Listener.Note, World: r.World}
	trainer, err := r.Task.Trainer(setup)
	if err != nil {
		return err
	}
	r.trainer, r.Settings = trainer, setup.Settings
	if err := r.sameEverywhere(); err != nil {
		return err
	}
	if err := r.place(ctx, ck); err != nil {
		return err
	}
	if !r.Resume {
		if err := r.save(r.Dir.Last()); err != nil { // from here on the folder holds this run
			return err
		}
		r.hasCheckpoint = true
	}
	if r.World.Number() != 0 {
		return nil // only rank 0 writes
	}
	if !r.Resume || r.at.Updates == 0 {
		if err := r.Dir.cleared(); err != nil {
			return err
		}
	}
	return r.Dir.writeConfig(r.Settings)
}

// place restores the run from its checkpoint, or initializes it. The recipe compares settings
// before shapes are compared, because its errors are clearer.
func (r *run) place(ctx context.Context, ck *Checkpoint) error {
	t := r.trainer
	if ck == nil {
		weights, err := r.first(t)
		if err != nil {
			return err
		}
		if err := begin(t, weights); err != nil {
			return err
		}
		return t.Restore(ctx, nil, false)
	}
	if r.at.Updates > t.Total() {
		return fmt.Errorf("resume %s: it stands %s, past the end of what is asked for", r.Dir.Path(), t.Place(r.at.Updates))
	}
	more := r.Recipe.Length(r.Settings) > r.Recipe.Length(ck.Settings)
	if more {
		r.at.Stopped = false
	}
	return firstOf(
		func() error { return ck.State(t.State()) },
		func() error { return t.Restore(ctx, ck, more) },
		func() error { return ck.restore(t) },
		ck.noOthers)
}

// first returns the weights that a new run begins with.
func (r *run) first(t Trainer) ([]float32, error) {
	if r.From == nil {
		return t.Initial(), nil
	}
	if of, want := r.From.Settings.Recipe(), r.Recipe.About().Name; of != want {
		return nil, fmt.Errorf("begin with the weights of %s: they are of %s, not of %s", r.From.Path, of, want)
	}
	about := r.Recipe.About()
	var axes map[string]int
	sees := ""
	if about.Grows != nil {
		axes, sees = about.Grows(r.From.Settings, r.Settings)
	}
	weights, err := r.From.grown(t.Layout(), "", axes)
	if err == nil {
		err = r.From.noMore(t.Layout())
	}
	if err != nil {
		why := strings.Join(changed(r.From.Settings, r.Settings, about.ShapeKeys), ", ")
		if why != "" {
			why = " (" + why + ")"
		}
		return nil, fmt.Errorf("begin with the weights of %s: its network is another one than the settings ask for%s: %w", r.From.Path, why, err)
	}
	note := fmt.Sprintf("begins with the weights of %s", r.From.Path)
	if sees != "" {
		note += "; " + sees
	}
	if seed := valueOf(r.Settings, about.Seed); seed != "" && seed == valueOf(r.From.Settings, about.Seed) {
		note += ", and with the seed of their run: it draws what that one drew; --seed draws anew"
	}
	for _, key := range changed(r.From.Settings, r.Settings, about.ShapelessKeys) {
		note += "; " + key + ", which makes another model of them"
	}
	r.Listener.Note(note)
	r.at.Began = r.From.Chain(r.Recipe.About().RowsOf(r.From.Settings))
	return weights, nil
}

// checkpoint loads the checkpoint of a resumed run and compares its settings with those asked for.
func (r *run) checkpoint() (*Checkpoint, error) {
	if !r.Resume {
		return nil, nil
	}
	ck, err := LoadShared(r.World, r.Dir.Last(), r.Recipe.About().Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("run folder %s holds no %s: there is nothing to resume; start over with --force", r.Dir.Path(), LastName)
	}
	if err != nil {
		return nil, err
	}
	// the run keeps its name if its settings come from another file this time
	r.Settings = r.Settings.Named(ck.Settings.Title())
	if a, ok := r.Recipe.(Adopter); ok {
		r.Settings = a.Adopt(ck.Settings, r.Settings)
	}
	if err := sameText(r.Recipe.Merge(ck.Settings, r.Settings), r.Settings); err != nil {
		return nil, fmt.Errorf("resume %s: %w", r.Dir.Path(), err)
	}
	if !ck.Summed {
		r.Listener.Note("the checkpoint has no checksum, as earlier versions wrote it: damage to it would not be noticed")
	}
	switch {
	case device.Kind(r.Device.Name()) != device.Kind(ck.Device):
		r.Listener.Note(fmt.Sprintf("the checkpoint was written on %s: the run continues from the same state, but only the same kind of device repeats it bit for bit", ck.Device))
	case ck.Precision != "" && ck.Precision != Precision(r.Device):
		r.Listener.Note(fmt.Sprintf("the checkpoint was written in %s: the run continues in %s from the same state, but only the same precision repeats it bit for bit", ck.Precision, Precision(r.Device)))
	}
	return ck, nil
}

// Precision returns the precision of a device's matrix products: fp32 unless the device says so.
func Precision(dev kernel.Device) string {
	if d, ok := dev.(interface{ Precision() string }); ok {
		return d.Precision()
	}
	return "fp32"
}

func (r *run) info() *report.Info {
	i := &report.Info{Recipe: r.Recipe.About().Name, Config: r.Settings.Title(), Parameters: r.trainer.Layout().Count(), Device: r.Device.Name(),
		Precision: Precision(r.Device), Memory: r.trainer.Memory(), Dir: r.Dir.Path(), Last: r.Dir.Last(), Best: r.Dir.Best(), Resumed: r.Resume}
	if t, ok := r.trainer.Runner().(kernel.Teller); ok {
		i.Paths = t.Paths()
	}
	if r.World != nil {
		i.Paths = append(i.Paths, r.World.String())
	}
	r.trainer.Describe(i)
	for k := range i.Tables {
		i.Tables[k].Recorded = r.at.Recorded[i.Tables[k].Kind]
	}
	return i
}

// save writes a checkpoint. Rank 0 writes for all, whose states are equal once moments are
// gathered. All ranks must call it.
func (r *run) save(path string) error {
	if err := r.trainer.Runner().GatherMoments(); err != nil {
		return err
	}
	if r.World.Number() > 0 {
		return nil
	}
	return save(path, r.Settings, r.Device, &r.at, r.trainer, r.trainer.Sets(), r.trainer.Extra())
}

// saveBest writes the checkpoint with the lowest validation figure. If validated and trained
// weights differ, the file holds only the validated ones: a run resumes from its last checkpoint.
func (r *run) saveBest() error {
	if s, ok := r.trainer.(Shipper); ok && s.Shipped() != nil {
		if r.World.Number() > 0 {
			return nil
		}
		return save(r.Dir.Best(), r.Settings, r.Device, &r.at, r.trainer, []Set{{Store: s.Shipped()}}, nil)
	}
	return r.save(r.Dir.Best())
}

func (r *run) close() error {
	if r.trainer == nil {
		return nil
	}
	return r.trainer.Close()
}
