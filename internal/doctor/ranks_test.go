package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"haul/internal/doctor/report"
	"haul/internal/doctor/rule"
)

// rankTrace is one of four ranks: three steps with an all-reduce each, which ends when the last
// rank has arrived. late is this rank's additional work before it.
func rankTrace(rank int, clock float64, late func(s *synth)) []byte {
	return rankSteps(3, rank, clock, late)
}

// rankSteps is rankTrace with the given number of steps.
func rankSteps(steps, rank int, clock float64, late func(s *synth)) []byte {
	const done = 13_000.0
	s := newSynth()
	s.base += clock
	for n := range steps {
		from := float64(n) * 15_000
		s.now, s.gpu = from, from
		s.step(n, func() {
			if late != nil {
				late(s)
			}
			s.dense(30, 100)
			s.exchange(s.gpu, from+done-s.gpu, 1<<20)
			s.gpu = from + done
		})
		if s.now > from+15_000 {
			panic("the step is too long")
		}
	}
	info := fmt.Sprintf(`{"distributedInfo":{"backend":"nccl","rank":%d,"world_size":4},"schemaVersion"`, rank)
	return []byte(strings.Replace(string(s.json()), `{"schemaVersion"`, info, 1))
}

func rankReports(t testing.TB, clock func(rank int) float64, late map[int]func(s *synth)) []*report.Report {
	t.Helper()
	return stepReports(t, 3, clock, late)
}

// stepReports is rankReports with the given number of steps.
func stepReports(t testing.TB, steps int, clock func(rank int) float64, late map[int]func(s *synth)) []*report.Report {
	t.Helper()
	var out []*report.Report
	for _, rank := range []int{2, 0, 3, 1} { // in any order
		r := diagnose(t, rankSteps(steps, rank, clock(rank), late[rank]))
		r.File = fmt.Sprintf("trace_%d.json", rank)
		out = append(out, r)
	}
	return out
}

func loaderFor(us float64) func(s *synth) {
	return func(s *synth) {
		s.emit("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", s.now, us, "")
		s.now += us
	}
}

func TestStraggler(t *testing.T) {
	skew := []float64{0, 7e6, -3e6, 123}
	for name, clock := range map[string]func(int) float64{"one clock": func(int) float64 { return 0 }, "a clock each": func(r int) float64 { return skew[r] }} {
		t.Run(name, func(t *testing.T) {
			j := report.JoinRanks(rankReports(t, clock, map[int]func(s *synth){2: loaderFor(6000)}))
			if j.Matched != 3 || len(j.Ranks) != 4 || *j.Ranks[1].Rank != 1 {
				t.Fatalf("%d matched, ranks %v", j.Matched, len(j.Ranks))
			}
			f := j.Findings[0]
			if f.ID != "straggler" || f.Rank == nil || *f.Rank != 2 || !near(f.SavesMS, 6) {
				t.Fatalf("%+v", j.Findings)
			}
			text := strings.Join(f.Evidence, "; ")
			for _, part := range []string{"rank 2 comes last at 3 of 3 collectives, at most 6.00 ms behind the first (all_reduce", "its data loader: 6.00 ms per step more"} {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in %s", part, text)
				}
			}
			for _, w := range j.Waits {
				if want := map[bool]float64{true: 0, false: 6}[w.Rank == 2]; math.Abs(w.WaitMS-want) > 0.1 {
					t.Errorf("rank %d waits %v ms, want %v", w.Rank, w.WaitMS, want)
				}
			}
			var b bytes.Buffer
			if err := j.WriteText(&b, report.Text{Breakdown: true}); err != nil || !strings.Contains(b.String(), "1. straggler rank 2: critical") {
				t.Errorf("%v\n%s", err, b.String())
			}
			d := dataOf(t, pageOfRanks(t, j))
			for rank := range 4 {
				if len(d.lane(fmt.Sprintf("%d  GPU", rank))) == 0 || len(d.lane(fmt.Sprintf("%d  GPU communication", rank))) == 0 {
					t.Errorf("rank %d has no lanes", rank)
				}
			}
		})
	}
}

func pageOfRanks(t testing.TB, j *report.Ranks) string {
	t.Helper()
	var b bytes.Buffer
	if err := j.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if found := outside.FindString(b.String()); found != "" {
		t.Errorf("the page reaches out: %s", found)
	}
	return b.String()
}

// A rank that computes longer differs from a rank whose host is late.
func TestStragglerByCompute(t *testing.T) {
	j := report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, map[int]func(s *synth){1: func(s *synth) { s.dense(50, 100) }}))
	if f := j.Findings[0]; f.ID != "straggler" || *f.Rank != 1 || !strings.Contains(strings.Join(f.Evidence, ";"), "its GPU computes longer: 5.00 ms") {
		t.Errorf("%+v", j.Findings)
	}
}

// A rank whose operators all take longer has slower cores; a rank with a slow loader does not. A
// few steps cannot distinguish a slow machine from a busy one, but they show a slow loader.
func TestStragglerOnSlowerCores(t *testing.T) {
	work := func(times, loader float64) func(s *synth) {
		return func(s *synth) {
			loaderFor(loader)(s)
			for kind := range 14 {
				for range 3 {
					s.op(fmt.Sprintf("aten::kind_%d", kind), "", 100*times-5, func() { s.launch("tiny", 2, 1) })
				}
			}
		}
	}
	for _, x := range []struct {
		name          string
		steps         int
		times, loader float64
		slow, note    bool
	}{
		{"slower cores", 3, 1.6, 1, true, true},
		{"slower cores, a step too few", 49, 1.6, 1, true, true},
		{"slower cores, many steps", 50, 1.6, 1, true, false},
		{"slightly slower cores", 3, 1.2, 1, true, true},
		{"a slow loader", 3, 1, 3000, false, false},
		{"both", 3, 1.6, 3000, true, false},
	} {
		late := map[int]func(s *synth){}
		for rank := range 4 {
			late[rank] = work(1, 1)
		}
		late[3] = work(x.times, x.loader)
		reports := stepReports(t, x.steps, func(int) float64 { return 0 }, late)
		for _, r := range reports {
			r.Release() // as those of many ranks are before they are joined
		}
		j := report.JoinRanks(reports)
		i := slices.IndexFunc(j.Findings, func(f rule.Finding) bool { return f.ID == "straggler" })
		if i < 0 || *j.Findings[i].Rank != 3 {
			t.Fatalf("%s: %+v", x.name, j.Findings)
		}
		text := strings.Join(j.Findings[i].Evidence, ";")
		if strings.Contains(text, "its operators take") != x.slow || x.slow && !strings.Contains(text, fmt.Sprintf("take %.2f times as long as on the other ranks, whatever they do (1", x.times)) {
			t.Errorf("%s: %+v", x.name, j.Findings[i])
		}
		if (j.Findings[i].Severity == rule.Note) != x.note || strings.Contains(text, "record 50 or more to know") != x.note {
			t.Errorf("%s: %+v", x.name, j.Findings[i])
		}
	}
}

// If a kernel sometimes takes many times as long, other programs use the GPU: the machine is the
// cause. A kernel that only this rank has, or that always takes longer, is the rank's.
func TestKernelsOnASharedGPU(t *testing.T) {
	const usual = "nvjet_sm90_tst_256x128_64x4" // as in the other ranks
	longer := func(kernel string, runs int, us float64) func(s *synth) {
		return func(s *synth) {
			for range runs {
				s.op("aten::linear", "", 15, func() { s.launch(kernel, us, 8) })
			}
		}
	}
	for _, x := range []struct {
		name string
		late func(s *synth)
		want string
		note bool
	}{
		{"a kernel in between", longer(usual, 1, 2500), "imbalance", true},
		{"a kernel of its own", longer("another", 1, 2500), "straggler", false},
		{"many of the same", longer(usual, 25, 100), "straggler", false},
		{"all take longer", longer(usual, 31, 80), "straggler", false},
	} {
		reports := stepReports(t, 6, func(int) float64 { return 0 }, map[int]func(s *synth){2: x.late})
		for _, r := range reports {
			r.Release()
		}
		j := report.JoinRanks(reports)
		i := slices.IndexFunc(j.Findings, func(f rule.Finding) bool { return f.ID == "straggler" || f.ID == "imbalance" })
		if i < 0 || j.Findings[i].ID != x.want || (j.Findings[i].Severity == rule.Note) != x.note {
			t.Errorf("%s: %+v", x.name, j.Findings)
		}
		if x.note && (!strings.Contains(strings.Join(j.Findings[i].Evidence, ";"), "is for operators or kernels that take longer than they otherwise do") || !strings.Contains(j.Findings[i].Remedy, "a card of its own")) {
			t.Errorf("%s: %+v", x.name, j.Findings[i])
		}
	}
}

// Ranks that take turns in being late are out of balance, and none is to blame.
func TestImbalance(t *testing.T) {
	turns := map[int]func(s *synth){}
	for rank := range 4 {
		n := 0
		turns[rank] = func(s *synth) {
			if n%4 == rank {
				s.dense(50, 100)
			}
			n++
		}
	}
	j := report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, turns))
	if f := j.Findings[0]; f.ID != "imbalance" || f.Rank != nil {
		t.Errorf("%+v", j.Findings)
	}
}

// Equal ranks have no straggler; traces without collectives are judged one by one.
func TestEqualRanks(t *testing.T) {
	j := report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, nil))
	for _, f := range j.Findings {
		if f.ID == "straggler" || f.ID == "imbalance" {
			t.Errorf("%+v", f)
		}
	}
	var list []*report.Report
	for range 2 {
		s := newSynth()
		s.step(1, func() { s.dense(40, 100) })
		list = append(list, diagnose(t, s.json()))
	}
	if j := report.JoinRanks(list); j.Matched != 0 || len(j.Remarks) != 1 || *j.Ranks[1].Rank != 1 {
		t.Errorf("%+v", j)
	}
}

// Traces of several jobs in one folder are no ranks: no step is averaged over them, and each line
// names its file.
func TestTracesOfSeveralJobs(t *testing.T) {
	for _, c := range []struct {
		worlds [2]int // 0: not said
		apart  bool
		remark string
	}{
		{[2]int{2, 4}, true, "jobs of different sizes"},
		{[2]int{0, 0}, true, "no collective is common to these traces"},
		{[2]int{2, 2}, false, "job0.json and job1.json both say that they are rank 0: ranks are numbered by the files' names, else by their order"},
	} {
		var list []*report.Report
		for i, world := range c.worlds {
			s := newSynth()
			s.step(1, func() { s.dense(40, 100) })
			info := fmt.Sprintf(`{"distributedInfo":{"rank":0,"world_size":%d},"schemaVersion"`, world)
			data := s.json()
			if world > 0 {
				data = bytes.Replace(data, []byte(`{"schemaVersion"`), []byte(info), 1)
			}
			r := diagnose(t, data)
			r.File = fmt.Sprintf("runs/job%d.json", i)
			list = append(list, r)
		}
		var page strings.Builder
		if err := report.JoinRanks(list).WriteText(&page, report.Text{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"2 traces that are no ranks of one job.\nNo common verdict: they are judged one by one.\n", "none (job0.json)\n", "none (job1.json)\n"} {
			if strings.Contains(page.String(), want) != c.apart {
				t.Errorf("%v: %q in\n%s", c.worlds, want, page.String())
			}
		}
		if !strings.Contains(page.String(), c.remark) {
			t.Errorf("%v: no %q in\n%s", c.worlds, c.remark, page.String())
		}
	}
}

func TestJSONOverRanks(t *testing.T) {
	data, err := json.Marshal(report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, map[int]func(s *synth){2: loaderFor(6000)})))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Ranks []struct {
			Rank     *int
			Busy     *float64 `json:"gpu_busy_share"`
			Findings []rule.Finding
			Recorded []string
		}
		Findings []struct {
			ID   string
			Rank *int
		}
		Recorded []string
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Ranks) != 4 || v.Ranks[3].Rank == nil || *v.Ranks[3].Rank != 3 || v.Ranks[0].Busy == nil || v.Recorded == nil || v.Findings[0].ID != "straggler" || *v.Findings[0].Rank != 2 {
		t.Errorf("%s", data)
	}
}

// The parts of a difference sum to it.
func TestDiff(t *testing.T) {
	build := func(loader float64, reads int) *report.Report {
		s := newSynth()
		for n := range 3 {
			s.gpu = s.now
			s.step(n, func() {
				loaderFor(loader)(s)
				s.dense(40, 100)
				for range reads {
					s.kernelOp("aten::sum", "", 2, 0.01)
					s.item()
				}
			})
		}
		return diagnose(t, s.json())
	}
	d := report.Compare(build(5000, 40), build(20, 0))
	var sum float64
	for _, p := range d.Parts {
		sum += p.Delta
	}
	if math.Abs(sum-d.DeltaMS) > 1e-9 || d.DeltaMS > -5 {
		t.Errorf("parts sum to %v of %v ms", sum, d.DeltaMS)
	}
	if d.Parts[0].What != "idle in the data loader" || !near(-d.Parts[0].Delta, 4.98) {
		t.Errorf("%+v", d.Parts)
	}
	if !slices.Equal(d.Gone, []string{"loader-starved", "sync-storm"}) || len(d.Come) > 0 {
		t.Errorf("gone %v, come %v", d.Gone, d.Come)
	}
	if i := slices.IndexFunc(d.Counts, func(c report.Change) bool { return c.What == "waits" }); d.Counts[i].Before != 40 || d.Counts[i].After != 0 {
		t.Errorf("%+v", d.Counts)
	}
	var b bytes.Buffer
	if err := d.WriteText(&b); err != nil || !strings.Contains(b.String(), "Most of it: idle in the data loader, 4.98 ms less.") || !strings.Contains(b.String(), "Findings that went: loader-starved, sync-storm") {
		t.Errorf("%v\n%s", err, b.String())
	}
	b.Reset()
	if err := d.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if len(dataOf(t, b.String()).lane("before GPU")) == 0 || !strings.Contains(b.String(), "What changed") {
		t.Error("the page has no lanes of before, or no table")
	}
	if same := report.Compare(build(20, 0), build(20, 0)); !strings.Contains(same.Verdict(), "as long as before") {
		t.Errorf("%s", same.Verdict())
	}
}

// A rank whose GPU is busy with something outside its recording is late for an unknown reason:
// ranks that share a GPU wait for each other.
func TestAStragglerBehindUnrecordedWorkIsANote(t *testing.T) {
	behind := func(s *synth) { s.gpu = s.now + 6000 } // queued, and started only then
	j := report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, map[int]func(s *synth){2: behind}))
	i := slices.IndexFunc(j.Findings, func(f rule.Finding) bool { return f.ID == "straggler" })
	if i < 0 || j.Findings[i].Severity != rule.Note || *j.Findings[i].Rank != 2 {
		t.Fatalf("%+v", j.Findings)
	}
	text := strings.Join(j.Findings[i].Evidence, "; ")
	if !strings.Contains(text, "work that was not recorded: 5.99 ms") || !strings.Contains(text, "a note: the GPU of the one that is late most waits for work") {
		t.Errorf("%s", text)
	}
}

// Next to launches that take longer, such work is left out of the cost.
func TestAStragglerByLaunchesAndUnrecordedWork(t *testing.T) {
	work := func(us, behind float64) func(s *synth) {
		return func(s *synth) {
			s.op("aten::kind", "", us, func() { s.launch("tiny", 2, 1) })
			s.gpu = max(s.gpu, s.now+behind)
		}
	}
	for _, c := range []struct {
		us, behind float64
		severity   rule.Severity
		saves      float64
		noted      bool
	}{{2000, 0, rule.Warning, 2, false}, {2000, 1300, rule.Warning, 2, true}, {6000, 1300, rule.Critical, 7.3, false}} {
		late := map[int]func(s *synth){}
		for rank := range 4 {
			late[rank] = work(100, 0)
		}
		late[1] = work(100+c.us, c.behind)
		j := report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, late))
		i := slices.IndexFunc(j.Findings, func(f rule.Finding) bool { return f.ID == "straggler" })
		if i < 0 {
			t.Fatalf("%+v: %+v", c, j.Findings)
		}
		f := j.Findings[i]
		noted := strings.Contains(strings.Join(f.Evidence, "; "), "left out of the cost: its GPU waits for work that is not in its recording")
		if f.Severity != c.severity || *f.Rank != 1 || math.Abs(f.SavesMS-c.saves) > 0.02 || noted != c.noted {
			t.Errorf("%+v: %+v", c, f)
		}
	}
}

// Of a rank that is late by its own loader and behind unrecorded work, the loader's part is certain
// where it counts by itself.
func TestAStragglerPartlyBehindUnrecordedWork(t *testing.T) {
	for _, c := range []struct {
		us       float64
		severity rule.Severity
		saves    float64
	}{{0, rule.Note, 6}, {600, rule.Note, 6.6}, {700, rule.Warning, 0.7}, {3000, rule.Warning, 3}} {
		both := func(s *synth) {
			if c.us > 0 {
				loaderFor(c.us)(s)
			}
			s.gpu = s.now + 6000
		}
		j := report.JoinRanks(rankReports(t, func(int) float64 { return 0 }, map[int]func(s *synth){2: both}))
		i := slices.IndexFunc(j.Findings, func(f rule.Finding) bool { return f.ID == "straggler" })
		if i < 0 {
			t.Fatalf("%v µs: %+v", c.us, j.Findings)
		}
		f := j.Findings[i]
		noted := strings.Contains(strings.Join(f.Evidence, "; "), "left out of the cost: its GPU waits for work that is not in its recording")
		if f.Severity != c.severity || *f.Rank != 2 || math.Abs(f.SavesMS-c.saves) > 0.1 || noted != (c.severity != rule.Note) {
			t.Errorf("%v µs: %+v of a step of %v ms", c.us, f, j.StepMS)
		}
	}
}

// A schedule with repeat= writes several recordings per rank. Simultaneous recordings of different
// ranks are compared.
func TestRecordingsOneAfterTheOther(t *testing.T) {
	const cycle = 1e6 // µs
	stamp := func(rank, n int) string { return fmt.Sprintf("host_%d.17950323%08d.pt.trace.json", 40+rank, n) }
	trace := func(rank, n int, noted bool) *report.Report {
		var late func(s *synth)
		if rank == n { // another rank in each cycle
			late = loaderFor(6000)
		}
		data := rankTrace(rank, float64(n)*cycle, late)
		if !noted {
			data = bytes.Replace(data, []byte(`"distributedInfo"`), []byte(`"other"`), 1)
		}
		r := diagnose(t, data)
		r.File = stamp(rank, n)
		return r
	}
	type recording struct{ rank, n int }
	all := func(ranks, cycles int) (list []recording) {
		for n := range cycles {
			for rank := range ranks {
				list = append(list, recording{rank, n})
			}
		}
		return list
	}
	for _, c := range []struct {
		name   string
		list   []recording
		noted  bool // the trace says its rank; else its name tells the process
		ranks  int
		late   int // the rank that is late, or -1
		remark string
	}{
		{"once", all(4, 1), true, 4, 0, ""},
		{"twice", all(4, 2), true, 4, 1, "8 recordings of 4 ranks, as schedule(repeat=) leaves them: the last of each is judged, " + stamp(0, 1)},
		{"three times, by names", all(4, 3), false, 4, 2, "12 recordings of 4 ranks"},
		{"five ranks", all(5, 2), true, 5, 1, stamp(3, 1) + " and 1 more; name others to judge those"},
		{"one rank twice", append(all(4, 1), recording{2, 1}), true, 4, 0, "one of each is judged, " + stamp(0, 0)},
		{"one rank once", append(all(3, 2), recording{3, 0}), true, 4, 0, "one of each is judged, " + stamp(0, 0)},
		{"one process", []recording{{1, 0}, {1, 1}}, true, 2, -1, "these are recordings of one process, one after the other: they are judged one by one"},
		{"one process by name", []recording{{1, 0}, {1, 1}}, false, 2, -1, "recordings of one process"},
	} {
		var list []*report.Report
		for _, one := range c.list {
			list = append(list, trace(one.rank, one.n, c.noted))
		}
		slices.Reverse(list)
		j := report.JoinRanks(list)
		late := -1
		for _, f := range j.Findings {
			if f.ID == "straggler" {
				late = slices.IndexFunc(j.Ranks, func(r *report.Report) bool { return *r.Rank == *f.Rank })
				fmt.Sscanf(j.Ranks[late].File, "host_%d", &late)
				late -= 40
			}
		}
		if remarks := strings.Join(j.Remarks, "; "); len(j.Ranks) != c.ranks || late != c.late || !strings.Contains(remarks, c.remark) || c.remark == "" && remarks != "" || strings.Contains(remarks, "both say") {
			t.Errorf("%s: %d ranks, late %d: %s", c.name, len(j.Ranks), late, remarks)
		}
	}
	// What overlaps is a copy under another name, and stays.
	if j := report.JoinRanks([]*report.Report{trace(0, 0, true), trace(0, 0, true), trace(1, 0, true)}); len(j.Ranks) != 3 || !strings.Contains(j.Remarks[0], "both say that they are rank 0") {
		t.Errorf("copies: %d ranks, %q", len(j.Ranks), j.Remarks)
	}
}

// What only the late rank does is why the others wait for it: its cost is the straggler's, once.
func TestALateRanksOwnFindingIsChargedOnce(t *testing.T) {
	for _, ranks := range []int{2, 4} {
		var list []*report.Report
		for rank := range ranks {
			var late func(s *synth)
			if rank == 1 {
				late = loaderFor(6000)
			}
			list = append(list, diagnose(t, rankTrace(rank, 0, late)))
		}
		j := report.JoinRanks(list)
		of := func(id string) bool {
			return slices.ContainsFunc(j.Findings, func(f rule.Finding) bool { return f.ID == id })
		}
		if !of("straggler") || of("loader-starved") {
			t.Errorf("%d ranks: %+v", ranks, j.Findings)
		}
	}
}
