// Package report tells people and files what a training run does: lines and a chart on a terminal, JSON
// objects, a CSV history, TensorBoard events, pictures. Each is a train.Listener; All joins them.
//
// What a reader could break: a listener may fail, a run may not fail because of one. A write that
// fails is noted once, kept and tried again with the next epoch; what is still missing at the
// end is the error of Close, so that the run ends whole and its exit code still tells.
package report

import "haul/internal/train"

// All passes everything on to each listener, in order.
func All(listeners ...train.Listener) train.Listener { return all(listeners) }

type all []train.Listener

func (a all) Start(i train.Info) {
	for _, l := range a {
		l.Start(i)
	}
}

func (a all) Tick(p train.Progress) {
	for _, l := range a {
		l.Tick(p)
	}
}

func (a all) Epoch(r train.EpochReport) {
	for _, l := range a {
		l.Epoch(r)
	}
}

func (a all) Note(text string) {
	for _, l := range a {
		l.Note(text)
	}
}

func (a all) Done(s train.Summary) {
	for _, l := range a {
		l.Done(s)
	}
}

// quiet is embedded by listeners that do not need every call.
type quiet struct{}

func (quiet) Start(train.Info)        {}
func (quiet) Tick(train.Progress)     {}
func (quiet) Epoch(train.EpochReport) {}
func (quiet) Note(string)             {}
func (quiet) Done(train.Summary)      {}
