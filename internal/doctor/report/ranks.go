package report

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"haul/internal/doctor/analysis"
	"haul/internal/doctor/phrase"
	"haul/internal/doctor/rule"
	"haul/internal/doctor/trace"
)

// Over ranks the collectives are the common clock: the k-th collective of a kind and group is the
// same event on every rank that has it, and it cannot end anywhere before all have arrived. Clocks
// are aligned so that the ends meet; who starts last is who the others waited for.

// Ranks is the diagnosis of a job from several ranks' traces.
type Ranks struct {
	Ranks    []*Report      `json:"ranks"`
	Findings []rule.Finding `json:"findings"`
	Recorded []string       `json:"recorded"` // on any rank
	StepMS   float64        `json:"step_ms"`  // mean over the ranks
	Waits    []RankWait     `json:"waits"`
	Meetings []Meeting      `json:"collectives"` // those that cost most waiting, in time order
	Matched  int            `json:"collectives_matched"`
	Clocks   []ClockSkew    `json:"clock_offsets"`
	Remarks  []string       `json:"remarks"`
}

// RankWait is what one rank waits for others, and how often others wait for it.
type RankWait struct {
	Rank      int     `json:"rank"`
	WaitMS    float64 `json:"wait_ms"` // per step, in collectives, for ranks that came later
	Last      int     `json:"last"`    // collectives at which it came last
	CausedMS  float64 `json:"caused_ms"`
	ComputeMS float64 `json:"compute_ms"`
}

// Meeting is one collective over the ranks.
type Meeting struct {
	Kind   string  `json:"kind"`
	Group  string  `json:"group,omitempty"`
	Number int     `json:"number"` // of its kind and group, counted from 1
	Last   int     `json:"last_rank"`
	LateMS float64 `json:"late_ms"` // behind the first to arrive
	AtMS   float64 `json:"at_ms"`   // since the first step began
	Ranks  int     `json:"ranks"`
}

// ClockSkew is how far a rank's clock stood off the others'.
type ClockSkew struct {
	Rank int     `json:"rank"`
	MS   float64 `json:"ms"`
}

const (
	stragglerShare = 0.05 // of the step that the others wait, on average
	stragglerPart  = 0.4  // of all waiting that one rank causes
	shownMeetings  = 12
	commonFindings = 0.5 // of the ranks must have a finding for it to be the job's
)

// meeting is a collective matched over ranks: entry i of the lists belongs to ranks[i].
type meeting struct {
	kind, group string
	number      int
	ranks       []int // positions in the list of reports
	items       []rankCollective
	starts      []int64 // aligned
	ends        []int64
}

// rankCollective is a collective with its group by name: names are numbered by trace.
type rankCollective struct {
	kind, group string
	start, end  int64
	step        int
}

// JoinRanks matches the ranks' collectives and says who waited for whom. Reports must come from
// Diagnose, whose analyses it still needs.
func JoinRanks(reports []*Report) *Ranks {
	j := &Ranks{Ranks: reports, Findings: []rule.Finding{}, Recorded: []string{}, Waits: []RankWait{}, Meetings: []Meeting{}, Clocks: []ClockSkew{}, Remarks: []string{}}
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
	list := match(reports)
	j.Matched = len(list)
	if len(list) == 0 {
		j.Remarks = append(j.Remarks, "no collective is common to these traces: they are judged one by one")
	}
	offsets := align(reports, list)
	for i, r := range reports {
		j.Clocks = append(j.Clocks, ClockSkew{*r.Rank, float64(offsets[i]) / 1e6})
	}
	j.count(list)
	j.judge(list)
	return j
}

var rankDigits = regexp.MustCompile(`(?i)(?:rank|worker|gpu|node|proc|_r)[-_.]?(\d+)`)

// numberRanks takes each rank's number from its trace, from its file's name, or from the order; all
// from the same place, so that no two are equal.
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

// match pairs the k-th collective of each kind and group. Where the ranks' counts differ, as when
// recordings begin at different moments, it is counted anew in each step.
func match(reports []*Report) []*meeting {
	type key struct {
		kind, group string
		step, k     int
	}
	totals := make([]map[[2]string]int, len(reports))
	for i, r := range reports {
		totals[i] = map[[2]string]int{}
		for _, c := range r.comm {
			totals[i][[2]string{c.kind, c.group}]++
		}
	}
	even := func(id [2]string) bool {
		n := 0
		for _, t := range totals {
			if t[id] > 0 && n > 0 && t[id] != n {
				return false
			}
			n = max(n, t[id])
		}
		return true
	}
	found := map[key]*meeting{}
	for i, r := range reports {
		seen := map[key]int{}
		for _, c := range r.comm {
			id := key{kind: c.kind, group: c.group, step: -1}
			if !even([2]string{c.kind, c.group}) {
				id.step = c.step
			}
			id.k = seen[id]
			seen[key{kind: c.kind, group: c.group, step: id.step, k: 0}]++
			m := found[id]
			if m == nil {
				m = &meeting{kind: c.kind, group: c.group, number: id.k + 1}
				found[id] = m
			}
			m.ranks = append(m.ranks, i)
			m.items = append(m.items, c)
		}
	}
	var out []*meeting
	for _, m := range found {
		if len(m.ranks) >= 2 && len(m.ranks) == distinct(m.ranks) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(x, y *meeting) int {
		return cmp.Or(cmp.Compare(x.items[0].start, y.items[0].start), strings.Compare(x.kind+x.group, y.kind+y.group), cmp.Compare(x.number, y.number))
	})
	return out
}

func distinct(list []int) int {
	seen := map[int]bool{}
	for _, v := range list {
		seen[v] = true
	}
	return len(seen)
}

// align moves each rank's clock so that collectives end together, and returns by how much. Ranks
// are joined one to another through the collectives they share, starting from the first.
func align(reports []*Report, list []*meeting) []int64 {
	offsets := make([]int64, len(reports))
	off := make([][]int64, len(reports))
	for _, m := range list {
		ends := make([]int64, len(m.items))
		for i, c := range m.items {
			ends[i] = c.end
		}
		slices.Sort(ends)
		middle := ends[len(ends)/2]
		for i, r := range m.ranks {
			off[r] = append(off[r], m.items[i].end-middle)
		}
	}
	for r := range reports {
		if len(off[r]) > 0 {
			offsets[r] = analysis.Median(off[r])
		}
	}
	for _, m := range list {
		for i, r := range m.ranks {
			m.starts = append(m.starts, m.items[i].start-offsets[r])
			m.ends = append(m.ends, m.items[i].end-offsets[r])
		}
	}
	return offsets
}

// last is the position in a meeting of who came last, and the first arrival.
func (m *meeting) last() (last int, first int64) {
	first = m.starts[0]
	for i, s := range m.starts {
		if s > m.starts[last] {
			last = i
		}
		first = min(first, s)
	}
	return last, first
}

func (j *Ranks) count(list []*meeting) {
	waits := make([]RankWait, len(j.Ranks))
	for i, r := range j.Ranks {
		waits[i].Rank = *r.Rank
		waits[i].ComputeMS = r.StepMS * r.Breakdown.ComputeShare
	}
	steps := func(i int) float64 { return float64(max(1, j.Ranks[i].Steps)) }
	// Collectives overlap, and a moment of waiting for two of them is one moment: unions, not sums.
	waiting := make([][]trace.Span, len(j.Ranks))
	blamed := make([]map[int][]trace.Span, len(j.Ranks)) // by the rank that is waited for
	for i := range blamed {
		blamed[i] = map[int][]trace.Span{}
	}
	for _, m := range list {
		last, first := m.last()
		culprit := m.ranks[last]
		for i, r := range m.ranks {
			w := trace.Span{Start: m.starts[i], End: m.starts[last]}
			waiting[r] = append(waiting[r], w)
			blamed[r][culprit] = append(blamed[r][culprit], w)
		}
		waits[culprit].Last++
		j.Meetings = append(j.Meetings, Meeting{m.kind, phrase.Printable(m.group), m.number, *j.Ranks[culprit].Rank, float64(m.starts[last]-first) / 1e6,
			float64(first-j.origin()) / 1e6, len(m.ranks)})
	}
	for r := range j.Ranks {
		waits[r].WaitMS = float64(trace.Total(trace.Union(waiting[r]))) / 1e6 / steps(r)
		for culprit, spans := range blamed[r] {
			waits[culprit].CausedMS += float64(trace.Total(trace.Union(spans))) / 1e6 / steps(r) / float64(len(j.Ranks)-1)
		}
	}
	j.Waits = waits
	slices.SortStableFunc(j.Meetings, func(x, y Meeting) int { return cmp.Compare(y.LateMS, x.LateMS) })
	j.Meetings = j.Meetings[:min(len(j.Meetings), shownMeetings)]
	slices.SortStableFunc(j.Meetings, func(x, y Meeting) int { return cmp.Compare(x.AtMS, y.AtMS) })
}

// origin is when the first rank's first step began, on the common clock.
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

// judge finds the causes of the whole job.
func (j *Ranks) judge(list []*meeting) {
	var caused float64
	worst := 0
	for i, w := range j.Waits {
		caused += w.CausedMS
		if w.CausedMS > j.Waits[worst].CausedMS {
			worst = i
		}
	}
	switch {
	case len(list) == 0:
	case caused < stragglerShare*j.StepMS:
	case j.Waits[worst].CausedMS >= stragglerPart*caused:
		j.Findings = append(j.Findings, j.straggler(list, worst, caused))
	default:
		j.Findings = append(j.Findings, j.imbalance(caused))
	}
	j.common()
	rule.SortFindings(j.Findings)
}

func (j *Ranks) finding(id, remedy string, ms float64, evidence ...string) rule.Finding {
	share := ms / j.StepMS
	f := rule.Finding{ID: id, Severity: rule.SeverityOf(share), Share: share, Evidence: evidence, Remedy: remedy, SavesMS: ms}
	if len(j.Recorded) > 0 {
		f.Severity = rule.Note
	}
	return f
}

// straggler says which rank the others wait for, how often, by how much, and why.
func (j *Ranks) straggler(list []*meeting, worst int, caused float64) rule.Finding {
	rank := *j.Ranks[worst].Rank
	var most *meeting
	var late int64
	var own []trace.Span
	var places []analysis.Place
	n := 0
	for _, m := range list {
		last, first := m.last()
		if m.ranks[last] != worst {
			continue
		}
		n++
		if most == nil || m.starts[last]-first > late {
			most, late = m, m.starts[last]-first
		}
		starts := slices.Clone(m.starts)
		slices.Sort(starts)
		off := j.skew(worst)
		places = append(places, analysis.Place{Span: trace.Span{Start: first + off, End: m.starts[last] + off}})
		own = append(own, trace.Span{Start: starts[len(starts)-2], End: starts[len(starts)-1]})
	}
	why, where := j.why(list, worst)
	waits := slices.Clone(j.Waits)
	slices.SortStableFunc(waits, func(x, y RankWait) int { return cmp.Compare(y.WaitMS, x.WaitMS) })
	var longest []string
	for _, w := range waits[:min(2, len(waits))] {
		longest = append(longest, fmt.Sprintf("rank %d %s ms", w.Rank, phrase.Figure(w.WaitMS)))
	}
	f := j.finding("straggler", "Look at this rank's own findings first: its loader, its Python, its share of the work, its machine. The others cannot go faster than it.",
		j.Waits[worst].CausedMS,
		fmt.Sprintf("rank %d comes last at %d of %d collectives, at most %s ms behind the first (%s %d)", rank, n, len(list), phrase.Figure(float64(late)/1e6), most.kind, most.number),
		fmt.Sprintf("the others wait %s ms per step for it on average, of %s ms for any rank; longest wait %s", phrase.Figure(j.Waits[worst].CausedMS), phrase.Figure(caused), strings.Join(longest, ", ")),
		fmt.Sprintf("without it they would wait for the next one: %s ms per step are its alone", phrase.Figure(float64(trace.Total(trace.Union(own)))/1e6/float64(max(1, j.Ranks[worst].Steps)))),
		"why: "+why)
	f.Rank, f.Where, f.Places = &rank, where, places
	if where != "" {
		f.Evidence = append(f.Evidence, "in the code: "+where)
	}
	return f
}

// imbalance says that the ranks arrive at different times with no single one to blame.
func (j *Ranks) imbalance(caused float64) rule.Finding {
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
	return j.finding("imbalance", "Give the ranks equal work: balance batches by cost rather than count, shard tables and experts by load, and look at what differs in their reports.", caused,
		fmt.Sprintf("the ranks wait %s ms per step for one another on average, and no single one is to blame", phrase.Figure(caused)),
		"last to arrive: "+strings.Join(parts, "; "),
		fmt.Sprintf("compute is between %s ms (rank %d) and %s ms (rank %d) per step", phrase.Figure(low.ComputeMS), low.Rank, phrase.Figure(high.ComputeMS), high.Rank))
}

// why compares what a late rank did before its collectives with what the others did before theirs.
func (j *Ranks) why(list []*meeting, worst int) (why, where string) {
	type sums struct {
		kinds   [analysis.IdleKinds]float64
		busy    float64
		entered float64
	}
	all := make([]sums, len(j.Ranks))
	before := make([]int64, len(j.Ranks)) // the end of each rank's collective before
	for i, r := range j.Ranks {
		before[i] = r.a.Steps[0].Start
	}
	var places []analysis.Place
	n := 0
	for _, m := range list {
		last, _ := m.last()
		counts := m.ranks[last] == worst
		for i, r := range m.ranks {
			a := j.Ranks[r].a
			w := trace.Span{Start: before[r], End: m.items[i].start}
			if s, ok := trace.Within(a.Steps, m.items[i].start); ok && w.Start < a.Steps[s].Start && a.Marked && counts {
				// the time between two steps belongs to the later one
				w.Start = min(w.Start, a.Steps[s].Start)
			}
			if counts && w.End > w.Start {
				kinds, busy := during(a, w)
				for k := range kinds {
					all[r].kinds[k] += kinds[k]
				}
				all[r].busy += busy
				if before[r] == a.Steps[0].Start {
					all[r].entered += float64(w.Start) - j.Clocks[r].MS*1e6
				}
				if r == worst {
					places = append(places, analysis.Place{Span: w})
				}
			}
			before[r] = max(before[r], m.items[i].end)
		}
		if counts {
			n++
		}
	}
	if n == 0 {
		return "nothing before its collectives tells it", ""
	}
	excess := func(of func(s *sums) float64) float64 {
		var others []float64
		for i := range all {
			if i != worst {
				others = append(others, of(&all[i]))
			}
		}
		return (of(&all[worst]) - analysis.Median(others)) / 1e6 / float64(max(1, j.Ranks[worst].Steps))
	}
	words := map[string]float64{
		"its GPU computes longer":            excess(func(s *sums) float64 { return s.busy }),
		"it enters the recorded steps later": excess(func(s *sums) float64 { return s.entered }),
	}
	if len(j.Ranks[worst].a.Devices) == 0 {
		words = map[string]float64{"its operators take longer": words["its GPU computes longer"], "it enters the recorded steps later": words["it enters the recorded steps later"]}
	}
	causeWords := map[analysis.IdleKind]string{analysis.IdleLoader: "its data loader", analysis.IdlePython: "its Python", analysis.IdleWait: "its waits", analysis.IdleAlloc: "its driver allocations", analysis.IdleCopy: "its copies",
		analysis.IdleCold: "its first uses", analysis.IdleCapture: "its graph capture", analysis.IdleUnrecorded: "work that was not recorded"}
	for k, w := range causeWords {
		words[w] = excess(func(s *sums) float64 { return s.kinds[k] })
	}
	words["its launches"] = excess(func(s *sums) float64 {
		return s.kinds[analysis.IdleOp] + s.kinds[analysis.IdleLaunch] + s.kinds[analysis.IdleBetween]
	})
	names := slices.SortedFunc(maps.Keys(words), func(x, y string) int {
		return cmp.Or(cmp.Compare(words[y], words[x]), strings.Compare(x, y))
	})
	top := names[0]
	if words[top] <= 0 {
		return "before its collectives it does nothing that the others do not do as long", ""
	}
	why = fmt.Sprintf("before the collectives at which it is last, %s: %s ms per step more than on the other ranks", top, phrase.Figure(words[top]))
	if len(names) > 1 && words[names[1]] > words[top]/4 {
		why += fmt.Sprintf("; then %s, %s ms", names[1], phrase.Figure(words[names[1]]))
	}
	return why, j.Ranks[worst].a.Where(heldIn(j.Ranks[worst].a, places, top, causeWords))
}

// heldIn are the pieces of the given cause inside the places.
func heldIn(a *analysis.Analysis, places []analysis.Place, top string, words map[analysis.IdleKind]string) []analysis.Place {
	var out []analysis.Place
	for _, w := range places {
		i := sort.Search(len(a.Held), func(i int) bool { return a.Held[i].End > w.Start })
		for ; i < len(a.Held) && a.Held[i].Start < w.End; i++ {
			p := a.Held[i]
			if words[p.Kind] == top {
				out = append(out, analysis.Place{Span: trace.Span{Start: max(p.Start, w.Start), End: min(p.End, w.End)}, Thread: p.Thread})
			}
		}
	}
	return out
}

// during is the idle time by kind inside a window, and how long the GPU (without one, the main
// thread) works in it.
func during(a *analysis.Analysis, w trace.Span) (kinds [analysis.IdleKinds]float64, busy float64) {
	i := sort.Search(len(a.Held), func(i int) bool { return a.Held[i].End > w.Start })
	for ; i < len(a.Held) && a.Held[i].Start < w.End; i++ {
		kinds[a.Held[i].Kind] += float64(trace.Overlap(a.Held[i].Span, w))
	}
	if len(a.Devices) > 0 {
		d := a.Devices[0]
		idle := float64(trace.Covered(d.Gaps, w))
		inSteps := float64(trace.Covered(spansOfSteps(a.Steps), w))
		return kinds, inSteps - idle
	}
	if th := a.Main; th != nil {
		i := sort.Search(th.Ops.Len(), func(i int) bool { return th.Ops.At(i).End() > w.Start })
		for ; i < th.Ops.Len() && th.Ops.At(i).Start < w.End; i++ {
			busy += float64(trace.Overlap(trace.Span{Start: th.Ops.At(i).Start, End: th.Ops.At(i).End()}, w))
		}
		busy -= kinds[analysis.IdleLoader] // a loader in the main process runs operators
	}
	return kinds, max(0, busy)
}

func spansOfSteps(steps []trace.Window) []trace.Span {
	out := make([]trace.Span, len(steps))
	for i, s := range steps {
		out[i] = trace.Span(s)
	}
	return out
}

// common are the findings that many ranks share.
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
	waited := 0.0
	for _, w := range j.Waits {
		waited += w.WaitMS
	}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		s := by[id]
		if id == rule.CommExposed.Id { // waiting for late ranks is theirs
			if s.ms -= min(s.ms, waited); s.ms/float64(len(j.Ranks)) < rule.CommShare*j.StepMS {
				continue
			}
		}
		if float64(s.n) < commonFindings*float64(len(j.Ranks)) {
			continue
		}
		f := j.finding(id, s.first.Remedy, s.ms/float64(len(j.Ranks)),
			append([]string{fmt.Sprintf("on %d of %d ranks, %s ms on average; most on rank %d, %s ms", s.n, len(j.Ranks), phrase.Figure(s.ms/float64(len(j.Ranks))), s.rank, phrase.Figure(s.most))},
				s.first.Evidence...)...)
		if rule.Order(f.Severity) > rule.Order(s.worst) {
			f.Severity = s.worst
		}
		f.Where = s.first.Where
		j.Findings = append(j.Findings, f)
	}
}
