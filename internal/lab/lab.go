// Package lab tests the claims of five reports on the speed of a training program by experiments,
// for `haul lab`. Each experiment prints the claim, what it measured on this machine, and a
// verdict.
//
// A verdict is computed from a measured number and the thresholds in its claim (verdict.go), never
// set by an experiment. Contenders compute the same result; experiments compare the results before
// they time anything.
//
// An experiment is one file and one line in the table below.
package lab

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"haul/internal/cu"
	"haul/internal/device"
	"haul/internal/kernel"
)

// Experiment tests claims on one question.
type Experiment struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Reports string `json:"reports"` // numbers of the reports whose claims it tests
	GPU     bool   `json:"needs_gpu"`
	run     func(ctx context.Context, e *env, r *Result) error
}

// experiments are in the order of the generated page.
var experiments = []Experiment{
	{Name: "arithmetic-001", Title: "Report 001's own figures, recomputed", Reports: "000, 001", run: arithmetic001},
	{Name: "arithmetic-002", Title: "Report 002's own figures, recomputed", Reports: "002", run: arithmetic002},
	{Name: "arithmetic-003", Title: "Report 003's own percentages, recomputed", Reports: "003", run: arithmetic003},
	{Name: "arithmetic-004", Title: "Report 004's own figures, recomputed", Reports: "004", run: arithmetic004},
	{Name: "cost-cpu", Title: "The cost of 128 routes on the CPU: a loop, a batch, an operation at a time", Reports: "000, 001", run: costCPU},
	{Name: "paradox-cpu", Title: "The paradox on the CPU: clean, nine-fold, vectorised", Reports: "000", run: paradoxCPU},
	{Name: "optimizer-cpu", Title: "The optimizer on the CPU: pass by pass, or all in one", Reports: "003", run: optimizerCPU},
	{Name: "recompute", Title: "Recomputing activations against storing them", Reports: "003", run: recompute},
	{Name: "workers", Title: "Workers that collate batches: 0 to 16", Reports: "004", run: workers},
	{Name: "collate", Title: "A batch built from lists, against one laid out beforehand", Reports: "004", run: collate},
	{Name: "prefetch", Title: "Batches made ahead of the trainer: 0 to 4", Reports: "004", run: prefetch},
	{Name: "tensors-cpu", Title: "A tensor made for every token on the CPU, or none", Reports: "004", run: tensorsCPU},
	{Name: "packing", Title: "Sequences of unequal length: packed end to end, or padded to the longest", Reports: "004", run: packing},
	{Name: "batch", Title: "An agent's step by size of the batch: 128 to 2,048", Reports: "004", run: batchTime},
	{Name: "ranks", Title: "Four that share an iteration: a quarter of the rows each, and the exchange of gradients", Reports: "004", run: ranks},
	{Name: "batch-rate", Title: "Larger batches from the same samples, and whether the learning rate must follow", Reports: "004", run: batchRate},
	{Name: "crossover", Title: "Where a GPU starts to win: batch by N", Reports: "000, 001, 002", run: crossover},
	{Name: "cost-gpu", Title: "The cost of 128 routes on the GPU: a route at a time, read back, padded and masked, fused", Reports: "000, 001, 003", GPU: true, run: costGPU},
	{Name: "paradox-gpu", Title: "The paradox on the GPU: clean, nine-fold, vectorised", Reports: "000", GPU: true, run: paradoxGPU},
	{Name: "transfers", Title: "Distance matrices moved one by one, as one block, page-locked, never", Reports: "002, 003", GPU: true, run: transfers},
	{Name: "graph", Title: "One graph against single launches", Reports: "003", GPU: true, run: graph},
	{Name: "tf32", Title: "Tensor cores in tf32 against fp32", Reports: "003", GPU: true, run: tf32},
	{Name: "overlap", Title: "Copies beside the computation, or before it", Reports: "003", GPU: true, run: overlap},
	{Name: "optimizer-gpu", Title: "The optimizer on the GPU: pass by pass, or all in one", Reports: "003", GPU: true, run: optimizerGPU},
	{Name: "page-locked", Title: "A batch's way to the GPU: page-locked or pageable, before the step or beside it", Reports: "004", GPU: true, run: pageLocked},
	{Name: "tensors-gpu", Title: "A tensor made for every token on the GPU, or one per batch", Reports: "004", GPU: true, run: tensorsGPU},
}

// List returns every experiment.
func List() []Experiment { return append([]Experiment(nil), experiments...) }

// Find returns the experiments with that name, or all of them for "all".
func Find(name string) ([]Experiment, error) {
	if name == "all" {
		return List(), nil
	}
	var names []string
	for _, x := range experiments {
		if x.Name == name {
			return []Experiment{x}, nil
		}
		names = append(names, x.Name)
	}
	return nil, fmt.Errorf("no experiment %q: use all or one of %s", name, strings.Join(names, ", "))
}

// Result is the outcome of an experiment.
type Result struct {
	Name    string    `json:"name"`
	Title   string    `json:"title"`
	Seconds float64   `json:"seconds"`
	Needs   string    `json:"needs,omitempty"` // what is missing for it to run; "" if it ran
	Error   string    `json:"error,omitempty"` // "" unless it failed
	Rows    []Row     `json:"measured,omitempty"`
	Claims  []Finding `json:"claims,omitempty"`
	Notes   []string  `json:"notes,omitempty"`
	Tables  []Table   `json:"-"` // the rows as tables; empty: one table with all rows
	Plot    []byte    `json:"-"` // SVG; nil: no picture
}

// Table is a table with a heading line.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// Row is one measured quantity. Times are in seconds, with unit "s".
type Row struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

func (r *Result) row(unit string, value float64, format string, args ...any) {
	r.Rows = append(r.Rows, Row{fmt.Sprintf(format, args...), value, unit})
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Options configure where experiments run.
type Options struct {
	Device  string // cpu, cuda:K, or auto: a GPU if there is one
	Workers int    // cores; 0: all
	// Begin is called before each experiment; it may be nil.
	Begin func(x Experiment, number, of int)
}

// env opens devices for experiments.
type env struct {
	workers int
	gpu     int    // ordinal of the GPU; -1: none
	why     string // why there is no GPU
}

// Check returns a one-line error if the options are invalid. It does not look for the GPU.
func (o Options) Check() error {
	_, err := o.gpu()
	return err
}

// gpu returns the ordinal of the GPU in the options, -1 for the CPU only.
func (o Options) gpu() (int, error) {
	at, err := device.ParseName(o.Device)
	if at.CPU {
		return -1, nil
	}
	return at.Card, err
}

func newEnv(o Options) (*env, error) {
	gpu, err := o.gpu()
	if err != nil {
		return nil, err
	}
	e := &env{workers: o.Workers, gpu: gpu}
	if gpu < 0 {
		e.why = "needs a GPU: run it with --device cuda:0"
		return e, nil
	}
	if err := probe(gpu); err != nil {
		if o.Device != "auto" {
			return nil, fmt.Errorf("device %s: %w", o.Device, err)
		}
		e.gpu, e.why = -1, "needs a GPU: "+err.Error()
	}
	return e, nil
}

func probe(gpu int) error {
	driver, err := cu.Open()
	if err != nil {
		return err
	}
	devices, err := driver.Devices()
	if err != nil {
		return err
	}
	if gpu >= len(devices) {
		return fmt.Errorf("no GPU %d: the driver shows %d", gpu, len(devices))
	}
	return nil
}

func (e *env) openCPU() (kernel.Device, error) {
	return device.Open("cpu", device.Options{Workers: e.workers})
}

func (e *env) openGPU(precision string) (kernel.Device, error) {
	return device.Open(fmt.Sprintf("cuda:%d", e.gpu), device.Options{Precision: precision})
}

// everywhere calls f with the CPU and then with the GPU, if there is one, and their names.
func (e *env) everywhere(ctx context.Context, precision string, f func(dev kernel.Device, name string) error) error {
	open, names := []func() (kernel.Device, error){e.openCPU}, []string{"CPU"}
	if e.gpu >= 0 {
		open, names = append(open, func() (kernel.Device, error) { return e.openGPU(precision) }), append(names, "GPU")
	}
	for i, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		dev, err := open[i]()
		if err != nil {
			return err
		}
		if err := errors.Join(f(dev, name), dev.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Run runs the experiments in order and calls each with every result. A failure, also by a panic,
// is the result of its experiment; the others still run. Only the end of ctx stops Run.
func Run(ctx context.Context, list []Experiment, o Options, each func(Result)) ([]Result, error) {
	e, err := newEnv(o)
	if err != nil {
		return nil, err
	}
	var out []Result
	for i, x := range list {
		if o.Begin != nil {
			o.Begin(x, i+1, len(list))
		}
		r := Result{Name: x.Name, Title: x.Title}
		began := time.Now()
		switch {
		case x.GPU && e.gpu < 0:
			r.Needs = e.why
		default:
			if err := guard(func() error { return x.run(ctx, e, &r) }); err != nil {
				r.Error = err.Error()
			}
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		r.Seconds = time.Since(began).Seconds()
		out = append(out, r)
		each(r)
	}
	return out, nil
}

// guard turns a panic of f into an error with its position.
func guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v%s", p, origin(debug.Stack()))
		}
	}()
	return f()
}

// origin returns the first line of this program on the stack of a panic.
func origin(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	after := false
	for _, l := range lines {
		after = after || strings.HasPrefix(l, "panic(")
		if after && strings.Contains(l, ".go:") && strings.Contains(l, "/internal/") && !strings.Contains(l, "/runtime/") {
			return " at " + strings.TrimSpace(l[strings.LastIndex(l, "/internal/")+1:])
		}
	}
	return ""
}
