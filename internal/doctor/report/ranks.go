package report

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// Collectives are the common clock of ranks: the k-th collective of a kind and group is the same
// event on every rank that has it, and it cannot end before all ranks have arrived. Clocks are
// aligned so that the ends coincide. The other ranks waited for the last to start.

// Ranks is the diagnosis of a job from several ranks' traces.
type Ranks struct {
	Ranks    []*Report      `json:"ranks"`
	Findings []rule.Finding `json:"findings"`
	Recorded []string       `json:"recorded"` // on any rank
	StepMS   float64        `json:"step_ms"`  // mean over the ranks
	Waits    []RankWait     `json:"waits"`
	Meetings []Meeting      `json:"collectives"` // the collectives with the longest waits, in time order
	Matched  int            `json:"collectives_matched"`
	Clocks   []ClockSkew    `json:"clock_offsets"`
	Remarks  []string       `json:"remarks"`

	blame *analysis.Blame
	own   *analysis.Blame // without disturbances by the machine
	apart bool            // the traces are not of ranks of one job
}

// RankWait holds the time that a rank waits for others, and how often others wait for it.
type RankWait struct {
	Rank      int     `json:"rank"`
	WaitMS    float64 `json:"wait_ms"` // per step, in collectives, for ranks that arrived later
	Last      int     `json:"last"`    // number of collectives at which it arrived last
	CausedMS  float64 `json:"caused_ms"`
	ComputeMS float64 `json:"compute_ms"`
	Operators float64 `json:"operators"` // per step
}

// Meeting is one collective over the ranks.
type Meeting struct {
	Kind   string  `json:"kind"`
	Group  string  `json:"group,omitempty"`
	Number int     `json:"number"` // of its kind and group, counted from 1
	Last   int     `json:"last_rank"`
	LateMS float64 `json:"late_ms"` // after the first to arrive
	AtMS   float64 `json:"at_ms"`   // since the start of the first step
	Ranks  int     `json:"ranks"`
}

// ClockSkew is the offset of a rank's clock from the others'.
type ClockSkew struct {
	Rank     int     `json:"rank"`
	MS       float64 `json:"ms"`
	SpreadMS float64 `json:"spread_ms"` // of the estimate, over the collectives
}

const (
	stragglerShare = 0.05 // mean fraction of the step that the others wait
	stragglerPart  = 0.25 // fraction of all waiting that one rank causes
	// chance is the largest probability of chance at which a rank is named.
	chance = 0.02
	// moreWork is the ratio of operators to the other ranks' from which a rank has more work. A
	// count has no noise and needs no test.
	moreWork = 1.1
	// unlike is the spread of the clocks' offsets, as a fraction of a step, above which two traces
	// are not of one job, because their collectives do not match.
	unlike = 0.5
	// byMachine is the fraction of the waiting from which the machine is named as the cause, since
	// the rest is within the machine's influence outside operators. A tenth of it is mentioned.
	byMachine      = 0.5
	shownMeetings  = 12
	commonFindings = 0.5 // fraction of the ranks that must have a finding for it to be the job's
)

// JoinRanks matches the ranks' collectives and finds the rank that the others wait for. Reports
// must come from Diagnose and not be released.
func JoinRanks(reports []*Report) *Ranks {
	reports, repeats, alone := oneEach(reports)
	j := &Ranks{Ranks: reports, Findings: []rule.Finding{}, Recorded: []string{}, Waits: []RankWait{}, Meetings: []Meeting{}, Clocks: []ClockSkew{}, Remarks: []string{}}
	if repeats != "" {
		j.Remarks = append(j.Remarks, repeats)
	}
	if !alone {
		j.Remarks = append(j.Remarks, sameRank(reports)...)
	}
	numberRanks(reports)
	slices.SortStableFunc(reports, func(x, y *Report) int { return cmp.Compare(*x.Rank, *y.Rank) })
	for _, r := range reports {
		j.StepMS += r.StepMS / float64(len(reports))
		for _, w := range r.Recorded {
			if !slices.Contains(j.Recorded, w) {
				j.Recorded = append(j.Recorded, w)
			}
		}
	}
	arrivals := make([][]analysis.Arrival, len(reports))
	for i, r := range reports {
		arrivals[i] = r.a.Arrivals()
	}
	list := analysis.MatchRanks(arrivals)
	clocks := analysis.AlignRanks(len(reports), list)
	switch why := j.unrelated(clocks); {
	case why != "" && !alone:
		j.Remarks = append(j.Remarks, why)
		list, clocks, j.apart = nil, make([]analysis.Clock, len(reports)), true
	case alone:
		list, clocks, j.apart = nil, make([]analysis.Clock, len(reports)), true
	case len(list) == 0:
		j.Remarks = append(j.Remarks, "no collective is common to these traces: they are judged one by one")
		j.apart = !slices.ContainsFunc(reports, func(r *Report) bool { return r.a.Job.World > 1 })
	}
	j.Matched = len(list)
	for i, r := range reports {
		j.Clocks = append(j.Clocks, ClockSkew{*r.Rank, float64(clocks[i].Offset) / 1e6, float64(clocks[i].Spread) / 1e6})
	}
	j.blame = analysis.Blamed(clocks, list)
	analyses := make([]*analysis.Analysis, len(reports))
	for i, r := range reports {
		analyses[i] = r.a
	}
	j.own = j.blame.Without(analysis.Jitter(analyses))
	j.count(list)
	j.findCauses(list)
	return j
}

// sameRank returns remarks on traces with the same rank of one job: a copy, or a second recording.
func sameRank(reports []*Report) []string {
	type rank struct{ rank, world int }
	first := map[rank]*Report{}
	for _, r := range reports {
		if r.Rank == nil || r.a.Job.World < 2 {
			continue
		}
		of := rank{*r.Rank, r.a.Job.World}
		if other := first[of]; other != nil {
			return []string{fmt.Sprintf("%s and %s both say that they are rank %d: ranks are numbered by the files' names, else by their order", nameOf(other), nameOf(r), *r.Rank)}
		}
		first[of] = r
	}
	return nil
}

// unrelated returns the reason why the traces cannot be of ranks of one job, or "".
func (j *Ranks) unrelated(clocks []analysis.Clock) string {
	worlds := map[int]bool{}
	for _, r := range j.Ranks {
		if w := r.a.Job.World; w > 0 {
			worlds[w] = true
		}
	}
	if len(worlds) > 1 {
		return "these are traces of jobs of different sizes: they are judged one by one"
	}
	for i, c := range clocks {
		if ms := float64(c.Spread) / 1e6; ms > unlike*j.StepMS {
			return fmt.Sprintf("the collectives of %s do not line up with the others' (their ends spread by %s ms, a step takes %s): "+
				"these are not ranks of one job over the same steps, and are judged one by one", nameOf(j.Ranks[i]), phrase.Figure(ms), phrase.Figure(j.StepMS))
		}
	}
	return ""
}

var rankDigits = regexp.MustCompile(`(?i)(?:rank|worker|gpu|node|proc|_r)[-_.]?(\d+)`)

// numberRanks takes the ranks' numbers from the traces, from the files' names, or from the order.
// All numbers have the same source, so that they are distinct.
func numberRanks(reports []*Report) {
	fromName := func(r *Report) (int, bool) {
		m := rankDigits.FindStringSubmatch(filepath.Base(r.File))
		if m == nil {
			return 0, false
		}
		n, err := strconv.Atoi(m[1])
		return n, err == nil
	}
	fromTrace := func(r *Report) (int, bool) {
		if r.Rank == nil {
			return 0, false
		}
		return *r.Rank, true
	}
	for _, from := range []func(*Report) (int, bool){fromTrace, fromName} {
		seen := map[int]bool{}
		for _, r := range reports {
			if n, ok := from(r); ok {
				seen[n] = true
			}
		}
		if len(seen) == len(reports) {
			for _, r := range reports {
				n, _ := from(r)
				r.Rank = &n
			}
			return
		}
	}
	for i, r := range reports {
		n := i
		r.Rank = &n
	}
}

func (j *Ranks) count(list []*analysis.Meeting) {
	waits := make([]RankWait, len(j.Ranks))
	for i, r := range j.Ranks {
		waits[i].Rank = *r.Rank
		waits[i].ComputeMS = r.computeMS()
	}
	for _, m := range list {
		last, first := m.Last()
		j.Meetings = append(j.Meetings, Meeting{m.Kind, phrase.Printable(m.Group), m.Number, *j.Ranks[m.Ranks[last]].Rank, float64(m.Starts[last]-first) / 1e6,
			float64(first-j.origin()) / 1e6, len(m.Ranks)})
	}
	for i, r := range j.Ranks {
		steps := float64(max(1, r.Steps))
		waits[i].Last = j.blame.Last[i]
		waits[i].WaitMS = j.blame.Waits[i] / 1e6 / steps
		waits[i].CausedMS = j.blame.Caused[i] / 1e6 / steps
		waits[i].Operators = r.operators
	}
	j.Waits = waits
	slices.SortStableFunc(j.Meetings, func(x, y Meeting) int { return cmp.Compare(y.LateMS, x.LateMS) })
	j.Meetings = j.Meetings[:min(len(j.Meetings), shownMeetings)]
	slices.SortStableFunc(j.Meetings, func(x, y Meeting) int { return cmp.Compare(x.AtMS, y.AtMS) })
}

// computeMS returns the time per step in which the GPU computes or, without one, in which the main
// thread is in operators.
func (r *Report) computeMS() float64 {
	if len(r.Breakdown.GPUs) > 0 {
		return r.StepMS * r.Breakdown.ComputeShare
	}
	return r.parts()[onCPU]
}

// origin returns the start of the earliest first step, on the common clock.
func (j *Ranks) origin() int64 {
	var at int64
	for i, r := range j.Ranks {
		s := r.a.Steps[0].Start - int64(j.Clocks[i].MS*1e6)
		if i == 0 || s < at {
			at = s
		}
	}
	return at
}

// findCauses finds the causes of the whole job.
func (j *Ranks) findCauses(list []*analysis.Meeting) {
	var caused, own float64
	worst := 0
	for i, w := range j.Waits {
		caused += w.CausedMS
		own += j.ownMS(i)
		if j.ownMS(i) > j.ownMS(worst) {
			worst = i
		}
	}
	switch {
	case len(list) == 0:
	case caused < stragglerShare*j.StepMS:
	case caused-own < byMachine*caused && j.ownMS(worst) >= stragglerShare*j.StepMS && j.ownMS(worst) >= stragglerPart*own && j.standsOut(worst):
		j.Findings = append(j.Findings, j.straggler(list, worst, caused))
	default:
		j.Findings = append(j.Findings, j.imbalance(list, worst, caused, own))
	}
	j.common()
	rule.SortFindings(j.Findings)
}

// ownMS returns the time per step that the others wait for a rank, without disturbances by the
// machine.
func (j *Ranks) ownMS(rank int) float64 {
	return j.own.Caused[rank] / 1e6 / float64(max(1, j.Ranks[rank].Steps))
}

// standsOut reports whether a rank is later than chance explains: by the test, or because it has
// more work than all others.
func (j *Ranks) standsOut(worst int) bool {
	return j.own.StandsOut(worst) < chance || j.moreOperators(worst) >= moreWork
}

// moreOperators returns a rank's operators per step divided by the largest number of another rank.
func (j *Ranks) moreOperators(rank int) float64 {
	most := 0.0
	for i, w := range j.Waits {
		if i != rank {
			most = max(most, w.Operators)
		}
	}
	if most == 0 {
		return 0
	}
	return j.Waits[rank].Operators / most
}

func (j *Ranks) finding(id, remedy string, ms float64, evidence ...string) rule.Finding {
	share := ms / j.StepMS
	f := rule.Finding{ID: id, Severity: rule.SeverityOf(share), Share: share, Evidence: evidence, Remedy: remedy, SavesMS: ms, More: rule.MoreOn(id)}
	if rule.Withheld(j.Recorded, id) {
		f.Severity = rule.Note
	}
	return f
}

// straggler returns the finding on the rank that the others wait for: how often, how long, and why.
func (j *Ranks) straggler(list []*analysis.Meeting, worst int, caused float64) rule.Finding {
	rank := *j.Ranks[worst].Rank
	var most *analysis.Meeting
	var late int64
	var own []trace.Span
	var places []analysis.Place
	n := 0
	for _, m := range list {
		last, first := m.Last()
		if m.Ranks[last] != worst {
			continue
		}
		n++
		if most == nil || m.Starts[last]-first > late {
			most, late = m, m.Starts[last]-first
		}
		starts := slices.Clone(m.Starts)
		slices.Sort(starts)
		off := j.skew(worst)
		places = append(places, analysis.Place{Span: trace.Span{Start: first + off, End: m.Starts[last] + off}})
		own = append(own, trace.Span{Start: starts[len(starts)-2], End: starts[len(starts)-1]})
	}
	why := whyLate(j.Ranks, j.offsets(), list, worst)
	waits := slices.Clone(j.Waits)
	slices.SortStableFunc(waits, func(x, y RankWait) int { return cmp.Compare(y.WaitMS, x.WaitMS) })
	var longest []string
	for _, w := range waits[:min(2, len(waits))] {
		longest = append(longest, fmt.Sprintf("rank %d %s ms", w.Rank, phrase.Figure(w.WaitMS)))
	}
	f := j.finding("straggler", "Look at this rank's own findings first: its loader, its Python, its share of the work, its machine. The others cannot go faster than it.",
		j.ownMS(worst),
		fmt.Sprintf("rank %d comes last at %d of %d collectives, at most %s ms behind the first (%s %d)", rank, n, len(list), phrase.Figure(float64(late)/1e6), most.Kind, most.Number),
		fmt.Sprintf("the others wait %s ms per step for it on average, of %s ms for any rank; longest wait %s", phrase.Figure(j.Waits[worst].CausedMS), phrase.Figure(caused), strings.Join(longest, ", ")),
		fmt.Sprintf("without it they would wait for the next one: %s ms per step are its alone", phrase.Figure(float64(trace.Total(trace.Union(own)))/1e6/float64(max(1, j.Ranks[worst].Steps)))),
		"why: "+why.why)
	if caused := j.Waits[worst].CausedMS; caused-j.ownMS(worst) >= byMachine/10*caused {
		f.Evidence = append(f.Evidence, machineWords(caused-j.ownMS(worst)))
	}
	slower := slowerWords(j.Ranks, worst)
	if slower != "" {
		f.Evidence = append(f.Evidence, slower)
	}
	if more := j.moreOperators(worst); more >= moreWork {
		f.Evidence = append(f.Evidence, fmt.Sprintf("it runs %s operators per step, %.2f times as many as any other rank: it has more to do", phrase.PerStepCount(j.Waits[worst].Operators), more))
	} else {
		f.Evidence = append(f.Evidence, fmt.Sprintf("chance alone would make some rank stand out like this in less than %s of such recordings", phrase.Percent(max(0.001, j.own.StandsOut(worst)))))
	}
	if why.unrecorded > 0 && j.moreOperators(worst) < moreWork {
		if certain := min(why.known, j.ownMS(worst)-why.unrecorded); certain >= stragglerShare*j.StepMS {
			f = j.finding(f.ID, f.Remedy, certain, append(f.Evidence,
				fmt.Sprintf("of that, %s ms per step are left out of the cost: its GPU waits for work that is not in its recording, another process on its card for example", phrase.Figure(j.ownMS(worst)-certain)))...)
		} else {
			withhold(&f)
		}
	}
	if slower != "" && why.host && j.moreOperators(worst) < moreWork && j.Ranks[worst].Steps < manySteps && f.Severity != rule.Note {
		f.Severity = rule.Note
		f.Evidence = append(f.Evidence, fmt.Sprintf("a note: it does what the others do, and %d steps cannot tell a slow machine from one that was in use for a moment; record %d or more to know", j.Ranks[worst].Steps, manySteps))
	}
	f.Rank, f.Where, f.Places = &rank, why.where, places
	if why.where != "" {
		f.Evidence = append(f.Evidence, "in the code: "+why.where)
	}
	return f
}

// imbalance returns the finding that ranks arrive at different times, without a single late rank.
func (j *Ranks) imbalance(list []*analysis.Meeting, worst int, caused, own float64) rule.Finding {
	low, high := j.Waits[0], j.Waits[0]
	for _, w := range j.Waits {
		if w.ComputeMS < low.ComputeMS {
			low = w
		}
		if w.ComputeMS > high.ComputeMS {
			high = w
		}
	}
	var parts []string
	waits := slices.Clone(j.Waits)
	slices.SortStableFunc(waits, func(x, y RankWait) int { return cmp.Compare(y.CausedMS, x.CausedMS) })
	for _, w := range waits[:min(3, len(waits))] {
		parts = append(parts, fmt.Sprintf("rank %d %s times, %s ms", w.Rank, phrase.Thousands(w.Last), phrase.Figure(w.CausedMS)))
	}
	f := j.finding("imbalance", "Give the ranks equal work: balance batches by cost rather than count, shard tables and experts by load, and look at what differs in their reports.", own,
		fmt.Sprintf("the ranks wait %s ms per step for one another on average, and no single one is to blame", phrase.Figure(caused)),
		"last to arrive: "+strings.Join(parts, "; "),
		fmt.Sprintf("compute is between %s ms (rank %d) and %s ms (rank %d) per step", phrase.Figure(low.ComputeMS), low.Rank, phrase.Figure(high.ComputeMS), high.Rank))
	machine := caused - own
	if machine >= byMachine*caused {
		f.Evidence[0] = fmt.Sprintf("the ranks wait %s ms per step for one another on average", phrase.Figure(caused))
		remedy := "Give each rank cores of its own (taskset, numactl, the launcher's binding), with one to spare for its exchange, and look at what else runs on the machine."
		if len(j.Ranks[worst].a.Devices) > 0 {
			remedy = "Give each rank a card of its own, and look at what else runs on it (nvidia-smi)."
		}
		f = j.finding("imbalance", remedy, caused,
			append(f.Evidence, fmt.Sprintf("a note: %s of the waiting is for operators or kernels that take longer than they otherwise do: that is the machine's doing", phrase.Percent(machine/caused)))...)
		f.Severity = rule.Note
		return f
	}
	if machine >= byMachine/10*caused {
		f.Evidence = append(f.Evidence, machineWords(machine))
	}
	if p := j.own.Exceeds(stragglerShare * j.StepMS * 1e6); p >= chance {
		f.Severity = rule.Note
		f.Evidence = append(f.Evidence, fmt.Sprintf("a note: so few steps, or so unequal, that chance alone would make the waits as long in %s of such recordings", phrase.Percent(p)))
	}
	if whyLate(j.Ranks, j.offsets(), list, worst).unrecorded > 0 {
		withhold(&f)
	}
	return f
}

// machineWords describes the part of the waiting that the machine causes.
func machineWords(ms float64) string {
	return fmt.Sprintf("of that waiting, %s ms per step are left out of the cost: they go back to operators or kernels that take longer than they otherwise do, which is the machine's doing", phrase.Figure(ms))
}

// withhold turns a finding into a note, about a rank whose GPU waits for work that its recording
// lacks.
func withhold(f *rule.Finding) {
	if f.Severity != rule.Note {
		f.Severity = rule.Note
		f.Evidence = append(f.Evidence, "a note: the GPU of the one that is late most waits for work that is not in its recording, another process on its card for example, which may be another rank of this job")
	}
}

// common adds the findings that many ranks share.
func (j *Ranks) common() {
	type shared struct {
		n     int
		ms    float64
		first rule.Finding
		worst rule.Severity
		rank  int
		most  float64
	}
	by := map[string]*shared{}
	for _, r := range j.Ranks {
		for _, f := range r.Findings {
			s := by[f.ID]
			if s == nil {
				s = &shared{first: f, worst: rule.Note}
				by[f.ID] = s
			}
			s.n++
			s.ms += f.SavesMS
			if rule.Order(f.Severity) > rule.Order(s.worst) {
				s.worst = f.Severity
			}
			if f.SavesMS > s.most {
				s.most, s.rank, s.first = f.SavesMS, *r.Rank, f
			}
		}
	}
	late := -1
	for _, f := range j.Findings {
		if f.ID == "straggler" {
			late = *f.Rank
		}
	}
	waited := 0.0
	for _, w := range j.Waits {
		waited += w.WaitMS
	}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		s := by[id]
		if id == rule.CommExposed.ID { // waiting for late ranks belongs to them
			if s.ms -= min(s.ms, waited); s.ms/float64(len(j.Ranks)) < rule.CommShare*j.StepMS {
				continue
			}
		}
		if float64(s.n) < commonFindings*float64(len(j.Ranks)) {
			continue
		}
		if s.n == 1 && s.rank == late { // the reason for its lateness, which is already charged
			continue
		}
		without, with := "", ""
		if id == rule.CommExposed.ID && waited > 0 {
			without, with = " without waits for late ranks", "with them "
		}
		f := j.finding(id, s.first.Remedy, s.ms/float64(len(j.Ranks)),
			append([]string{fmt.Sprintf("on %d of %d ranks, %s ms on average%s; %smost on rank %d, %s ms, whose figures follow", s.n, len(j.Ranks), phrase.Figure(s.ms/float64(len(j.Ranks))), without, with, s.rank, phrase.Figure(s.most))},
				s.first.Evidence...)...)
		if rule.Order(f.Severity) > rule.Order(s.worst) {
			f.Severity = s.worst
		}
		f.Where = s.first.Where
		j.Findings = append(j.Findings, f)
	}
}

// offsets returns the offsets of the ranks' clocks in ns.
func (j *Ranks) offsets() []float64 {
	out := make([]float64, len(j.Clocks))
	for i, c := range j.Clocks {
		out[i] = c.MS * 1e6
	}
	return out
}

func (j *Ranks) skew(i int) int64 { return int64(j.Clocks[i].MS * 1e6) }

// hasGPU reports whether any rank has a GPU.
func (j *Ranks) hasGPU() bool {
	return slices.ContainsFunc(j.Ranks, func(r *Report) bool { return len(r.Breakdown.GPUs) > 0 })
}
