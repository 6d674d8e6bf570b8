package ledger

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"haul/internal/kernel"
)

// The trace uses the names of PyTorch's profiler (categories, ProfilerStep, microseconds), so that
// tools for its traces can read it: Perfetto, and haul doctor.

type traceEvent struct {
	Phase    string         `json:"ph"`
	Category string         `json:"cat,omitempty"`
	Name     string         `json:"name"`
	PID      int            `json:"pid"`
	TID      int            `json:"tid"`
	Start    *float64       `json:"ts,omitempty"`
	Duration *float64       `json:"dur,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// The process and thread ids of the row for the whole step, above those of the workers.
const (
	tracePID = 1
	stepTID  = 0
)

// WriteTrace writes the instrumented step as a Chrome trace, with a row for the step and one for
// each worker. Workers are rows of kernels if gpu is true, else rows of operators.
func (l *Ledger) WriteTrace(w io.Writer, gpu bool) error {
	out := bufio.NewWriter(w)
	head, err := json.Marshal(map[string]any{"program": l.Program, "device": l.Device, "workers": l.Workers})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "{\"schemaVersion\":1,\"displayTimeUnit\":\"ms\",\"haul\":%s,\"traceEvents\":[\n", head)
	if err := l.events(gpu, func(e traceEvent) error {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s,\n", line)
		return err
	}); err != nil {
		return err
	}
	step, err := json.Marshal(span("user_annotation", "ProfilerStep#0", stepTID, 0, l.profile.Wall, nil))
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n]}\n", step)
	return out.Flush()
}

func (l *Ledger) events(gpu bool, emit func(traceEvent) error) error {
	category, row := "cpu_op", "worker"
	if gpu {
		category, row = "kernel", "stream"
	}
	names := []traceEvent{
		{Phase: "M", Name: "process_name", PID: tracePID, Args: map[string]any{"name": "haul: " + l.Device}},
		{Phase: "M", Name: "thread_name", PID: tracePID, TID: stepTID, Args: map[string]any{"name": "step"}},
	}
	for i := range l.Workers {
		names = append(names, traceEvent{Phase: "M", Name: "thread_name", PID: tracePID, TID: stepTID + 1 + i, Args: map[string]any{"name": fmt.Sprintf("%s %d", row, i)}})
	}
	for _, e := range names {
		if err := emit(e); err != nil {
			return err
		}
	}
	kinds := kindsOf(l.profile.Program)
	for _, s := range l.profile.Spans {
		e := span("idle", string(Idle), stepTID+1+s.Worker, s.Start, s.End, nil)
		if s.Op != kernel.Idle {
			args := map[string]any{"stage": l.stageOf[s.Op], "op": s.Op}
			if s.Shard >= 0 {
				args["shard"] = s.Shard
			}
			e = span(category, kinds[s.Op], stepTID+1+s.Worker, s.Start, s.End, args)
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// span returns a complete event; times of a trace are in microseconds.
func span(category, name string, tid int, start, end time.Duration, args map[string]any) traceEvent {
	ts, dur := float64(start)/1e3, float64(end-start)/1e3
	return traceEvent{Phase: "X", Category: category, Name: name, PID: tracePID, TID: tid, Start: &ts, Duration: &dur, Args: args}
}
