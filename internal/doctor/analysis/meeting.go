package analysis

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"haul/internal/doctor/trace"
	"haul/internal/stats"
)

// Over ranks the collectives are the common clock: the k-th collective of a kind and group is the
// same event on every rank that has it, and it cannot end anywhere before all have arrived. Clocks
// are aligned so that the ends meet; who arrives last is who the others waited for. Arrivals that
// lie closer together than the clocks can be told apart count as one moment.

// Arrival is one collective on one rank, its group by name: names are numbered by trace.
type Arrival struct {
	Kind, Group string
	Start, End  int64 // Start is when the rank has come, not when it announced itself
	Step        int
}

// Meeting is a collective matched over ranks: entry i of the lists belongs to Ranks[i].
type Meeting struct {
	Kind, Group string
	Number      int   // of its kind and group, counted from 1
	Ranks       []int // positions in the list of ranks
	Items       []Arrival
	Starts      []int64 // on the common clock
}

// Arrivals are the collectives of one trace.
func (a *Analysis) Arrivals() []Arrival {
	var out []Arrival
	for _, c := range a.Comm.List {
		out = append(out, Arrival{c.Kind, a.Names.List[c.Group].Text, max(c.Start, c.Arrived), c.End, c.Step})
	}
	return out
}

// MatchRanks pairs the collectives of each kind and group that are one event.
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

// sameEvents numbers the collectives of one kind and group on each rank: what has one number is one
// event. The k-th of all ranks is, or the k-th of a step where the counts differ. But a rank whose
// CPU runs ahead of its GPU has other steps than one whose CPU waits, and its recording holds
// collectives that the other's does not. So where one rank's list fits the longest one far better a
// few places on, by the ends that must meet, it is moved.
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
	fewestPairs = 6  // from which on ends tell whether two lists fit
	mostShift   = 16 // places
	mostPairs   = 256
)

// fit is how many places on in the reference a list belongs, where its ends fit so much better
// there than those that are paired by number.
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

// betterFit is how many times less the ends of so many pairs must spread in another place: of equal
// steps each place fits as well as the right one but for chance, which does more with few pairs.
func betterFit(pairs int) float64 { return max(2, 1+50/float64(pairs)) }

// spread is how far from the median three of four lie: of two collectives per step that are paired
// wrongly, half are as far off as each other. The list is left in another order.
func spread(list []int64) int64 {
	middle := Median(list)
	away := make([]int64, len(list))
	for i, v := range list {
		away[i] = max(v-middle, middle-v)
	}
	slices.Sort(away)
	return away[(3*len(away)-1)/4]
}

// Clock is how far a rank's clock stands off the others', and how far that estimate spreads over
// the collectives.
type Clock struct{ Offset, Spread int64 }

// alignments is how often the clocks are estimated, each time from the estimate before: which ranks
// stand in the middle of a meeting depends on how the clocks stood, and hardly does from then on.
const alignments = 3

// AlignRanks moves each rank's clock so that collectives end together, and returns by how much.
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

// Last is the position in a meeting of who came last, and the first arrival.
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

// Blame is how long ranks waited, and for whom.
type Blame struct {
	Waits  []float64   // ns, by the rank that waits
	Caused []float64   // ns, by the rank that is waited for, mean over the others
	Last   []int       // collectives at which a rank came last
	By     [][]float64 // of Caused, each replicate's part: by rank, then by step or collective
	Late   [][]float64 // how late a rank comes behind the middle of the others, likewise; negative is early
	ByStep bool        // the replicates are steps
	Steps  []int       // which, where they are
}

// surer is how many times as sure Student's test must be where it pools the ranks' noise: it takes
// the noise for normal, and what a machine does has longer tails.
const surer = 3

// minReplicates is from how many steps on steps are what a rank is compared over; with fewer the
// collectives are.
const minReplicates = 3

// Blamed books every wait on the rank that came last. Collectives overlap, and a moment of waiting
// for two of them is one moment: unions, not sums. Lateness within the clocks' spread is no wait.
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

// middles is, for each rank of a meeting, when the others came in the middle.
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

// StandsOut is the probability that chance alone makes a rank as late as this one is: by Student's
// test of how far it comes behind the middle of the others, step by step, or by how often it is
// the latest where every rank is equally likely to be. The middle does not move when another rank
// has a bad step. Steps are few, so how much lateness varies is taken from all ranks together,
// unless this one's varies more. Both tests are corrected for having picked one of all ranks.
// Chance alone makes some rank last in two of four steps most of the time, and this tells. What
// slows a machine down lasts for more than one step: such steps are no replicates of their own, and
// count together.
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

// middleOfOthers is the median of a step's figures on all ranks but one.
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

// variance of a sample; 0 for fewer than two.
func variance(series []float64) float64 {
	_, se := stats.MeanSE(series)
	if len(series) < 2 {
		return 0
	}
	return se * se * float64(len(series))
}

// Exceeds is the probability that chance alone makes the ranks wait as they do where they wait no
// longer than this per step, ns: by Student's test over the steps, of all ranks together. Where the
// replicates are collectives it is not told and 0.
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

// Without is the blame without what the machine did: in each step, what a rank lost in its
// operators beyond the others' loss is taken off the waits that it caused. It is the blame itself
// where that loss is not known.
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

// replicateSteps is how many steps in a row count as one, by how alike neighbours are: with a
// correlation of r as many as make the sum's variance that of so many fewer draws, (1+r)/(1-r).
func replicateSteps(series []float64) int {
	n := len(series)
	mean, _ := stats.MeanSE(series)
	var square, beside float64
	for i, x := range series {
		square += (x - mean) * (x - mean)
		if i > 0 {
			beside += (x - mean) * (series[i-1] - mean)
		}
	}
	if n < 2*minReplicates || square == 0 || beside <= 0 {
		return 1
	}
	r := beside / square
	return max(1, min(n/minReplicates, int(math.Ceil((1+r)/(1-r)))-1))
}

// grouped is the mean of each so many neighbours; what is left over joins the last.
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

// binomialTail is the chance of k or more successes in n trials.
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
