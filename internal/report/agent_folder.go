package report

import (
	"io"
	"time"

	"haul/internal/draw"
	"haul/internal/train"
)

// The files of an agent's run folder that this package writes, beside the event files.
const (
	agentHistoryName = "csv/history_ad.csv"
	agentTestName    = "csv/test_ad.csv"
	agentUseName     = "csv/in_context_ad.csv"
	inContextName    = "in_context" // .svg and .png
	episodesName     = "episodes"   // .svg and .png
)

// AgentFolder keeps the history of an agent's run in its folder: CSV and TensorBoard events as they come, pictures at the end.
// The owner calls Close however the run ends.
type AgentFolder struct {
	quietAgent
	papers
	now func() time.Time

	info    train.ADInfo
	reports []train.ADReport
	tests   []train.ADTest
	used    *train.ADEvaluation
	files   map[string]*appendFile
}

// NewAgentFolder notes failures to note, once a file.
func NewAgentFolder(note func(string)) *AgentFolder {
	return &AgentFolder{papers: newPapers(note), now: time.Now, files: map[string]*appendFile{}}
}

// Start opens the files; of a resumed run it drops what lies past the checkpoint.
func (f *AgentFolder) Start(i train.ADInfo) {
	f.info, f.dir = i, i.Dir
	f.reports = openTable(f, agentReports, agentHistoryName)
	f.tests = openTable(f, agentTests, agentTestName)
	openTable(f, agentUses, agentUseName)
	events, err := openEvents(i.Dir, i.Resumed, i.Done, f.now())
	f.fail(eventPrefix+"*", err, events == nil)
	if events != nil {
		f.files[eventPrefix+"*"] = events
	}
}

// Reports are those of a resumed run that stand, and those since.
func (f *AgentFolder) Reports() []train.ADReport { return f.reports }

func openTable[T any](f *AgentFolder, c table[T], name string) []T {
	file, rows, err := c.open(f.path(name), f.info.Done)
	if err != nil {
		f.fail(name, err, true)
		return nil
	}
	f.files[name] = file
	return rows
}

// add puts a piece into a file that could be opened.
func (f *AgentFolder) add(name string, piece []byte) {
	if file := f.files[name]; file != nil {
		f.fail(name, file.add(piece), false)
	}
}

// Report adds a row and an event.
func (f *AgentFolder) Report(r train.ADReport) {
	f.reports = append(f.reports, r)
	f.add(agentHistoryName, encode(agentReports.cells(&r)))
	f.add(eventPrefix+"*", scalarEvent(agentReportScalars, &r, r.Iteration, f.now()))
}

// Test likewise.
func (f *AgentFolder) Test(r train.ADTest) {
	f.tests = append(f.tests, r)
	f.add(agentTestName, encode(agentTests.cells(&r)))
	f.add(eventPrefix+"*", scalarEvent(agentTestScalars, &r, r.Iteration, f.now()))
}

// Evaluated likewise; the last is drawn.
func (f *AgentFolder) Evaluated(e *train.ADEvaluation) {
	f.used = e
	f.add(agentUseName, encode(agentUses.cells(e)))
	f.add(eventPrefix+"*", scalarEvent(agentUseScalars, e, e.Iteration, f.now()))
}

// Close draws the pictures, closes the files and returns what is missing from them, in one error.
func (f *AgentFolder) Close() error {
	if f.dir == "" {
		return nil // the run never started
	}
	for _, format := range []draw.Format{draw.SVG, draw.PNG} {
		f.picture(curvesName, format, len(f.reports) > 0, func(w io.Writer) error { return drawAgentCurves(w, format, &f.info, f.reports, f.tests) })
		f.picture(inContextName, format, f.used != nil, func(w io.Writer) error { return DrawInContext(w, format, f.info.Name, f.used) })
		f.picture(episodesName, format, f.used != nil, func(w io.Writer) error { return DrawEpisodes(w, format, f.info.Name, f.used) })
	}
	for name, file := range f.files {
		f.fail(name, file.close(), true)
	}
	return f.missing()
}

// agentReports is the history of an agent's training, a row for every summary_interval.
var agentReports = table[train.ADReport]{
	{"iteration", func(r *train.ADReport) any { return &r.Iteration }},
	{"loss_action", func(r *train.ADReport) any { return &r.LossAction }},
	{"acc_action", func(r *train.ADReport) any { return &r.AccAction }},
	{"loss_token_type", func(r *train.ADReport) any { return &r.LossTokenType }},
	{"acc_token_type", func(r *train.ADReport) any { return &r.AccTokenType }},
	{"lr", func(r *train.ADReport) any { return &r.LR }},
	{"grad_norm", func(r *train.ADReport) any { return &r.GradNorm }},
	{"since", func(r *train.ADReport) any { return &r.Since }},
	{"seconds", func(r *train.ADReport) any { return &r.Seconds }},
	{"iterations_per_second", func(r *train.ADReport) any { return &r.PerSecond }},
	{"tokens_per_second", func(r *train.ADReport) any { return &r.TokensPerSecond }},
	{"flops_per_second", func(r *train.ADReport) any { return &r.FLOPsPerSecond }},
	{"busy_share", func(r *train.ADReport) any { return &r.BusyShare }},
	{"wait_share", func(r *train.ADReport) any { return &r.WaitShare }},
	{"memory_bytes", func(r *train.ADReport) any { return &r.Memory }},
	{"launches", func(r *train.ADReport) any { return &r.Launches }},
	{"waits", func(r *train.ADReport) any { return &r.Waits }},
	{"copies_in", func(r *train.ADReport) any { return &r.CopiesIn }},
	{"copies_out", func(r *train.ADReport) any { return &r.CopiesOut }},
	{"allocations", func(r *train.ADReport) any { return &r.Allocations }},
}

// agentTests is the history of tests on held-out goals.
var agentTests = table[train.ADTest]{
	{"iteration", func(r *train.ADTest) any { return &r.Iteration }},
	{"loss_action", func(r *train.ADTest) any { return &r.LossAction }},
	{"acc_action", func(r *train.ADTest) any { return &r.AccAction }},
	{"loss_token_type", func(r *train.ADTest) any { return &r.LossTokenType }},
	{"acc_token_type", func(r *train.ADTest) any { return &r.AccTokenType }},
	{"seconds", func(r *train.ADTest) any { return &r.Seconds }},
	{"best", func(r *train.ADTest) any { return &r.Best }},
}

// agentUses is the history of in-context evaluations.
var agentUses = table[train.ADEvaluation]{
	{"iteration", func(e *train.ADEvaluation) any { return &e.Iteration }},
	{"first_episode", func(e *train.ADEvaluation) any { return &e.First }},
	{"last_ten_episodes", func(e *train.ADEvaluation) any { return &e.Last }},
	{"last_ten_se", func(e *train.ADEvaluation) any { return &e.LastSE }},
	{"optimal", func(e *train.ADEvaluation) any { return &e.Optimal }},
	{"share_of_optimum", func(e *train.ADEvaluation) any { return &e.Share }},
	{"share_of_optimum_se", func(e *train.ADEvaluation) any { return &e.ShareSE }},
	{"episodes", func(e *train.ADEvaluation) any { return &e.Episodes }},
	{"prunes", func(e *train.ADEvaluation) any { return &e.Prunes }},
	{"mean_region", func(e *train.ADEvaluation) any { return &e.Regions.Mean }},
	{"seconds", func(e *train.ADEvaluation) any { return &e.Seconds }},
}

var agentReportScalars = []scalar[train.ADReport]{
	{"train/loss_action", func(r *train.ADReport) *float64 { return &r.LossAction }},
	{"train/acc_action", func(r *train.ADReport) *float64 { return &r.AccAction }},
	{"train/loss_token_type", func(r *train.ADReport) *float64 { return &r.LossTokenType }},
	{"train/acc_token_type", func(r *train.ADReport) *float64 { return &r.AccTokenType }},
	{"train/lr", func(r *train.ADReport) *float64 { return &r.LR }},
	{"train/grad_norm", func(r *train.ADReport) *float64 { return &r.GradNorm }},
	{"speed/iterations_per_second", func(r *train.ADReport) *float64 { return &r.PerSecond }},
	{"speed/tokens_per_second", func(r *train.ADReport) *float64 { return &r.TokensPerSecond }},
	{"speed/busy_share", func(r *train.ADReport) *float64 { return &r.BusyShare }},
	{"speed/loader_wait_share", func(r *train.ADReport) *float64 { return &r.WaitShare }},
}

var agentTestScalars = []scalar[train.ADTest]{
	{"test/loss_action", func(r *train.ADTest) *float64 { return &r.LossAction }},
	{"test/acc_action", func(r *train.ADTest) *float64 { return &r.AccAction }},
	{"test/loss_token_type", func(r *train.ADTest) *float64 { return &r.LossTokenType }},
	{"test/acc_token_type", func(r *train.ADTest) *float64 { return &r.AccTokenType }},
}

var agentUseScalars = []scalar[train.ADEvaluation]{
	{"test/return_first_episode", func(e *train.ADEvaluation) *float64 { return &e.First }},
	{"test/return_last_ten", func(e *train.ADEvaluation) *float64 { return &e.Last }},
	{"test/share_of_optimum", func(e *train.ADEvaluation) *float64 { return &e.Share }},
}
