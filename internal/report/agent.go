package report

import (
	"io"

	"haul/internal/train"
)

// AllAgent passes everything that an agent's run tells on to each listener, in order.
func AllAgent(listeners ...train.ADListener) train.ADListener { return allAgent(listeners) }

type allAgent []train.ADListener

func (a allAgent) Start(i train.ADInfo) {
	for _, l := range a {
		l.Start(i)
	}
}

func (a allAgent) Tick(p train.ADProgress) {
	for _, l := range a {
		l.Tick(p)
	}
}

func (a allAgent) Report(r train.ADReport) {
	for _, l := range a {
		l.Report(r)
	}
}

func (a allAgent) Test(r train.ADTest) {
	for _, l := range a {
		l.Test(r)
	}
}

func (a allAgent) Evaluated(e *train.ADEvaluation) {
	for _, l := range a {
		l.Evaluated(e)
	}
}

func (a allAgent) Note(text string) {
	for _, l := range a {
		l.Note(text)
	}
}

func (a allAgent) Done(s train.ADSummary) {
	for _, l := range a {
		l.Done(s)
	}
}

// quietAgent is embedded by listeners that do not need every call.
type quietAgent struct{}

func (quietAgent) Start(train.ADInfo)            {}
func (quietAgent) Tick(train.ADProgress)         {}
func (quietAgent) Report(train.ADReport)         {}
func (quietAgent) Test(train.ADTest)             {}
func (quietAgent) Evaluated(*train.ADEvaluation) {}
func (quietAgent) Note(string)                   {}
func (quietAgent) Done(train.ADSummary)          {}

// AgentObjects prints one JSON object a line: what an agent's run reports, each kind under its event's name.
type AgentObjects struct {
	quietAgent
	jsonLines
}

// NewAgentObjects prints to w.
func NewAgentObjects(w io.Writer) *AgentObjects { return &AgentObjects{jsonLines: jsonLines{w: w}} }

// Report prints a report of training.
func (o *AgentObjects) Report(r train.ADReport) {
	o.print(struct {
		Event string `json:"event"`
		train.ADReport
	}{"train", r})
}

// Test prints a test on held-out histories.
func (o *AgentObjects) Test(r train.ADTest) {
	o.print(struct {
		Event string `json:"event"`
		train.ADTest
	}{"test", r})
}

// Evaluated prints how agents fared in context.
func (o *AgentObjects) Evaluated(e *train.ADEvaluation) {
	o.print(struct {
		Event string `json:"event"`
		*train.ADEvaluation
	}{"in_context", e})
}
