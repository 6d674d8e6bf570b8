package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"haul/internal/doctor/trace"
	"haul/internal/stats"
)

// Collectives are the common clock of ranks: the k-th collective of a kind and group is the same
// event on every rank that has it, and it cannot end before all ranks have arrived. Clocks are
// aligned so that the ends coincide. The other ranks waited for the last to arrive. Arrivals within
// the clocks' uncertainty count as simultaneous.

// Arrival is one collective on one rank. It has its group's name, because each trace numbers names
// separately.
type Arrival struct {
	Kind, Group string
	Start, End  int64 // Start is the time at which the rank's data is ready, not the time of its announcement
	Step        int
}

// Meeting is a collective matched over ranks: entry i of the lists belongs to Ranks[i].
type Meeting struct {
	Kind, Group string
	Number      int   // of its kind and group, counted from 1
	Ranks       []int // indices in the list of ranks
	Items       []Arrival
	Starts      []int64 // on the common clock
}

// Arrivals returns the collectives of one trace.
func (a *Analysis) Arrivals() []Arrival {
	var out []Arrival
	for _, c := range a.Comm.List {
		out = append(out, Arrival{c.Kind, a.Names.List[c.Group].Text, max(c.Start, c.Arrived), c.End, c.Step})
	}
	return out
}

// MatchRanks matches the collectives of each kind and group that are the same event.
func MatchRanks(ranks [][]Arrival) []*Meeting {
	type family struct{ kind, group string }
	families := map[family][][]Arrival{}
	var order []family
	for i, list := range ranks {
		for _, c := range list {
			id := family{c.Kind, c.Group}
			if families[id] == nil {
				families[id] = make([][]Arrival, len(ranks))
				order = append(order, id)
			}
			families[id][i] = append(families[id][i], c)
		}
	}
	var out []*Meeting
	for _, id := range order {
		found := map[int]*Meeting{}
		lists := families[id]
		for i, events := range sameEvents(lists) {
			for k, event := range events {
				m := found[event]
				if m == nil {
					m = &Meeting{Kind: id.kind, Group: id.group, Number: k + 1}
					found[event] = m
				}
				m.Ranks = append(m.Ranks, i)
				m.Items = append(m.Items, lists[i][k])
			}
		}
		for _, m := range found {
			if len(m.Ranks) >= 2 {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, func(x, y *Meeting) int {
		return cmp.Or(cmp.Compare(x.Items[0].Start, y.Items[0].Start), strings.Compare(x.Kind+x.Group, y.Kind+y.Group), cmp.Compare(x.Number, y.Number))
	})
	return out
}

// sameEvents numbers the collectives of one kind and group on each rank. Equal numbers are the same
// event: the k-th of all ranks, or the k-th of a step if the counts differ. But steps of a rank
// whose CPU runs ahead of its GPU differ from those of a rank whose CPU waits, and its recording
// contains other collectives. So if the ends of a rank's list coincide much better with the longest
// list when shifted, it is shifted.
func sameEvents(lists [][]Arrival) [][]int {
	type place struct{ step, k int }
	longest, even := 0, true
	for i, list := range lists {
		if len(list) > len(lists[longest]) {
			longest = i
		}
	}
	for _, list := range lists {
		even = even && (len(list) == 0 || len(list) == len(lists[longest]))
	}
	events, next := map[place]int{}, 0
	out := make([][]int, len(lists))
	for i, list := range lists {
		seen := map[int]int{}
		for _, c := range list {
			at := place{step: -1}
			if !even {
				at.step = c.Step
			}
			at.k = seen[at.step]
			seen[at.step]++
			if _, ok := events[at]; !ok {
				events[at] = next
				next++
			}
			out[i] = append(out[i], events[at])
		}
	}
	for i := range lists {
		if i == longest || len(lists[i]) < fewestPairs {
			continue
		}
		shift, ok := fit(lists[longest], lists[i], out[longest], out[i])
		if !ok {
			continue
		}
		for k := range out[i] {
			if at := k + shift; at >= 0 && at < len(out[longest]) {
				out[i][k] = out[longest][at]
			} else {
				out[i][k] = next
				next++
			}
		}
	}
	return out
}

const (
	// number of pairs from which the ends show whether two lists fit
	fewestPairs = 6
	mostShift   = 16 // largest shift
	mostPairs   = 256
)

// fit returns the shift of a list relative to the reference, if the ends coincide much better with
// it than when paired by number.
func fit(reference, list []Arrival, events, own []int) (shift int, ok bool) {
	at := map[int]int{}
	for k, e := range events {
		at[e] = k
	}
	var off []int64
	for k, e := range own {
		if r, ok := at[e]; ok && len(off) < mostPairs {
			off = append(off, list[k].End-reference[r].End)
		}
	}
	now, best := math.MaxFloat64, math.MaxFloat64
	if len(off) >= fewestPairs {
		now = float64(spread(off))
	}
	for d := -mostShift; d <= mostShift; d++ {
		off = off[:0]
		for k := max(0, -d); k < len(list) && k+d < len(reference) && len(off) < mostPairs; k++ {
			off = append(off, list[k].End-reference[k+d].End)
		}
		if len(off) < fewestPairs || 2*len(off) < min(len(list), mostPairs) {
			continue
		}
		if s := float64(spread(off)); s < best && s < now/betterFit(len(off)) {
			shift, best, ok = d, s, true
		}
	}
	return shift, ok
}

// betterFit returns the factor by which the spread of this many pairs' ends must decrease in
// another position. With equal steps, every position fits equally well except for chance, which has
// more influence with few pairs.
func betterFit(pairs int) float64 { return max(2, 1+50/float64(pairs)) }

// spread returns the third quartile of the distances from the median. If two collectives per step
// are paired wrongly, half of them are as far off as each other. It reorders the list.
func spread(list []int64) int64 {
	middle := Median(list)
	away := make([]int64, len(list))
	for i, v := range list {
		away[i] = max(v-middle, middle-v)
	}
	slices.Sort(away)
	return away[(3*len(away)-1)/4]
}

// Clock is the offset of a rank's clock, and the spread of the estimates over the collectives.
type Clock struct{ Offset, Spread int64 }

// alignments is the number of successive estimates of the clocks. The ranks in the middle of a
// collective depend on the previous estimate, but hardly change after a few.
const alignments = 3

// AlignRanks shifts each rank's clock so that collectives end together, and returns the clocks.
func AlignRanks(n int, list []*Meeting) []Clock {
	clocks := make([]Clock, n)
	off := make([][]int64, n)
	for range alignments {
		for r := range off {
			off[r] = off[r][:0]
		}
		for _, m := range list {
			ends := make([]int64, len(m.Items))
			for i, c := range m.Items {
				ends[i] = c.End - clocks[m.Ranks[i]].Offset
			}
			slices.Sort(ends)
			low, high := ends[(len(ends)-1)/2], ends[len(ends)/2]
			middle := low + (high-low)/2
			for i, r := range m.Ranks {
				off[r] = append(off[r], m.Items[i].End-clocks[r].Offset-middle)
			}
		}
		for r := range clocks {
			if len(off[r]) == 0 {
				continue
			}
			by := Median(off[r])
			clocks[r].Offset += by
			for i := range off[r] {
				if off[r][i] -= by; off[r][i] < 0 {
					off[r][i] = -off[r][i]
				}
			}
			clocks[r].Spread = Median(off[r])
		}
	}
	for _, m := range list {
		for i, r := range m.Ranks {
			m.Starts = append(m.Starts, m.Items[i].Start-clocks[r].Offset)
		}
	}
	return clocks
}

// Last returns the index of the last rank to arrive, and the time of the first arrival.
func (m *Meeting) Last() (last int, first int64) {
	first = m.Starts[0]
	for i, s := range m.Starts {
		if s > m.Starts[last] {
			last = i
		}
		first = min(first, s)
	}
	return last, first
}

// Blame holds the time that ranks waited, and the ranks that they waited for.
type Blame struct {
	Waits  []float64   // ns, by waiting rank
	Caused []float64   // ns, by the rank that is waited for, mean over the others
	Last   []int       // number of collectives at which a rank arrived last
	By     [][]float64 // parts of Caused: by rank, then by step or collective
	Late   [][]float64 // delay relative to the others' median, likewise; negative is early
	ByStep bool        // the second index is the step
	Steps  []int       // the steps' numbers, if ByStep
}

// surer is the factor by which Student's test must be more certain if it pools the ranks' noise.
// The test assumes normal noise, but a machine's noise has longer tails.
const surer = 3

// minReplicates is the number of steps from which ranks are compared by steps; with fewer steps
// they are compared by collectives.
const minReplicates = 3

// Blamed attributes every wait to the rank that arrived last. Collectives overlap, and a moment of
// waiting for two of them counts once. Lateness within the clocks' spread is no wait.
func Blamed(clocks []Clock, list []*Meeting) *Blame {
	n := len(clocks)
	b := &Blame{Waits: make([]float64, n), Caused: make([]float64, n), Last: make([]int, n), By: make([][]float64, n), Late: make([][]float64, n)}
	steps := map[int]bool{}
	for _, m := range list {
		steps[m.Items[0].Step] = true
	}
	b.ByStep = len(steps) >= minReplicates
	index := map[int]int{}
	replicate := func(i int, m *Meeting) int {
		if !b.ByStep {
			return i
		}
		k, ok := index[m.Items[0].Step]
		if !ok {
			k = len(index)
			index[m.Items[0].Step] = k
			b.Steps = append(b.Steps, m.Items[0].Step)
		}
		return k
	}
	type who struct{ culprit, replicate int }
	waiting := make([][]trace.Span, n)
	blamed := make([]map[who][]trace.Span, n)
	late, early := make([]map[int][]trace.Span, n), make([]map[int][]trace.Span, n)
	for i := range blamed {
		blamed[i], late[i], early[i] = map[who][]trace.Span{}, map[int][]trace.Span{}, map[int][]trace.Span{}
	}
	count := 0
	for i, m := range list {
		last, _ := m.Last()
		culprit := m.Ranks[last]
		b.Last[culprit]++
		k := replicate(i, m)
		count = max(count, k+1)
		for j, r := range m.Ranks {
			w := trace.Span{Start: m.Starts[j], End: m.Starts[last]}
			if w.End-w.Start <= clocks[r].Spread+clocks[culprit].Spread {
				continue
			}
			waiting[r] = append(waiting[r], w)
			blamed[r][who{culprit, k}] = append(blamed[r][who{culprit, k}], w)
		}
		for j, middle := range m.middles() {
			r, at := m.Ranks[j], m.Starts[j]
			if at > middle {
				late[r][k] = append(late[r][k], trace.Span{Start: middle, End: at})
			} else if at < middle {
				early[r][k] = append(early[r][k], trace.Span{Start: at, End: middle})
			}
		}
	}
	for r := range b.By {
		b.By[r], b.Late[r] = make([]float64, count), make([]float64, count)
		for k := range count {
			b.Late[r][k] = float64(trace.Total(trace.Union(late[r][k])) - trace.Total(trace.Union(early[r][k])))
		}
	}
	for r := range n {
		b.Waits[r] = float64(trace.Total(trace.Union(waiting[r])))
		for w, spans := range blamed[r] {
			ns := float64(trace.Total(trace.Union(spans))) / float64(n-1)
			b.By[w.culprit][w.replicate] += ns
			b.Caused[w.culprit] += ns
		}
	}
	return b
}

// middles returns, for each rank of a meeting, the median arrival of the other ranks.
func (m *Meeting) middles() []int64 {
	order := make([]int, len(m.Starts))
	for j := range order {
		order[j] = j
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(m.Starts[x], m.Starts[y]) })
	out := make([]int64, len(order))
	for place, j := range order {
		other := func(i int) int64 { // the i-th of the others
			if i >= place {
				i++
			}
			return m.Starts[order[i]]
		}
		n := len(order) - 1
		low, high := other((n-1)/2), other(n/2)
		out[j] = low + (high-low)/2
	}
	return out
}

// StandsOut returns the probability that chance alone makes a rank as late as this one. It is the
// smaller result of two tests: Student's test of its delay relative to the others' median, step by
// step, and a test of how often it is last if every rank is equally likely to be. The median does
// not move when another rank has a bad step. As steps are few, the variance of delays is pooled
// over all ranks, unless this rank's is larger. Both tests are corrected for selecting one of all
// ranks: by chance alone, some rank is usually last in two of four steps. A slow machine affects
// several consecutive steps, so correlated neighbouring steps count together as one replicate.
func (b *Blame) StandsOut(rank int) float64 {
	ranks := len(b.Late)
	together := replicateSteps(b.Late[rank])
	late := make([][]float64, ranks)
	var pooled float64 // the mean of the variances
	for r := range late {
		late[r] = grouped(b.Late[r], together)
		pooled += variance(late[r]) / float64(ranks)
	}
	own := late[rank]
	steps := len(own)
	trials, latest := 0, 0
	for k := range own {
		most, some := rank, false
		for r := range late {
			some = some || late[r][k] != own[k]
			if late[r][k] > late[most][k] {
				most = r
			}
		}
		if some {
			trials++
			if most == rank {
				latest++
			}
		}
	}
	mean, _ := stats.MeanSE(own)
	spread := math.Sqrt(max(pooled, variance(own)) / float64(steps))
	p := 1.0
	switch {
	case mean <= 0 || steps < 2:
	case spread == 0:
		p = 0
	default:
		p = stats.StudentTail(mean/spread, float64((ranks-1)*(steps-1)))
	}
	if ranks > 2 { // two ranks have one difference, and nothing to pool
		p *= surer
	}
	return min(1, float64(ranks)*min(p, binomialTail(trials, latest, 1/float64(ranks))))
}

// middleOfOthers returns the median of a step's figures on all ranks but one.
func middleOfOthers(series [][]float64, rank, step int) float64 {
	var others []float64
	for r := range series {
		if r != rank {
			others = append(others, series[r][step])
		}
	}
	if len(others) == 0 {
		return 0
	}
	slices.Sort(others)
	return (others[(len(others)-1)/2] + others[len(others)/2]) / 2
}

// variance returns a sample's variance, or 0 for fewer than two values.
func variance(series []float64) float64 {
	_, se := stats.MeanSE(series)
	if len(series) < 2 {
		return 0
	}
	return se * se * float64(len(series))
}

// Exceeds returns the probability that chance alone makes the ranks wait this long if they would
// otherwise wait at most ns per step: by Student's test over the steps, of all ranks together. It
// returns 0 if the replicates are collectives.
func (b *Blame) Exceeds(ns float64) float64 {
	if len(b.By) == 0 || !b.ByStep {
		return 0
	}
	all := make([]float64, len(b.By[0]))
	for k := range all {
		for r := range b.By {
			all[k] += b.By[r][k]
		}
	}
	together := replicateSteps(all)
	all = grouped(all, together)
	limit := make([]float64, len(all))
	for k := range limit {
		limit[k] = ns
	}
	return stats.PairedTest(limit, all)
}

// Without returns the blame without the machine's influence: in each step, a rank's excess time in
// operators beyond the others' is subtracted from the waits that it caused. If jitter is nil, it
// returns b.
func (b *Blame) Without(jitter [][]float64) *Blame {
	if jitter == nil || !b.ByStep {
		return b
	}
	out := &Blame{Waits: b.Waits, Caused: make([]float64, len(b.By)), Last: b.Last, By: make([][]float64, len(b.By)), Late: make([][]float64, len(b.By)), ByStep: b.ByStep, Steps: b.Steps}
	for r := range b.By {
		out.By[r], out.Late[r] = make([]float64, len(b.Steps)), slices.Clone(b.Late[r])
	}
	for k, step := range b.Steps {
		var all float64
		for r := range b.By {
			if step >= len(jitter[r]) {
				return b
			}
			all += jitter[r][step]
		}
		for r := range b.By {
			others := (all - jitter[r][step]) / float64(max(1, len(b.By)-1))
			out.Late[r][k] -= jitter[r][step] - middleOfOthers(jitter, r, step)
			out.By[r][k] = max(0, b.By[r][k]-max(0, jitter[r][step]-others))
			out.Caused[r] += out.By[r][k]
		}
	}
	return out
}

// replicateSteps returns the number of consecutive steps that count as one replicate, by their
// correlation r: the sum of correlated steps has the variance of a sum of fewer independent steps,
// by the factor (1+r)/(1-r).
func replicateSteps(series []float64) int {
	n := len(series)
	mean, _ := stats.MeanSE(series)
	var square, neighbours float64
	for i, x := range series {
		square += (x - mean) * (x - mean)
		if i > 0 {
			neighbours += (x - mean) * (series[i-1] - mean)
		}
	}
	if n < 2*minReplicates || square == 0 || neighbours <= 0 {
		return 1
	}
	r := neighbours / square
	return max(1, min(n/minReplicates, int(math.Ceil((1+r)/(1-r)))-1))
}

// grouped returns the means of groups of consecutive values. The last group takes the remainder.
func grouped(series []float64, together int) []float64 {
	n := max(1, len(series)/together)
	out, counts := make([]float64, n), make([]float64, n)
	for i, x := range series {
		k := min(i/together, n-1)
		out[k] += x
		counts[k]++
	}
	for k := range out {
		out[k] /= max(1, counts[k])
	}
	return out
}

// binomialTail returns the probability of k or more successes in n trials.
func binomialTail(n, k int, p float64) float64 {
	if k <= 0 || n == 0 {
		return 1
	}
	var sum float64
	for i := k; i <= n; i++ {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(i + 1))
		c, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(a - b - c + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(1, sum)
}
