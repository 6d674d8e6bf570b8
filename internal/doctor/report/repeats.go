package report

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"haul/internal/doctor/phrase"
)

// A schedule with repeat= leaves several recordings of one process, one after the other. Only
// recordings of the same moments are compared: what one rank did first is nothing to what another
// did later.

// stamped is a name as tensorboard_trace_handler writes it: a worker, and when it was written.
var stamped = regexp.MustCompile(`^(.+)\.\d{10,}\.pt\.trace\.json`)

// process is what tells a trace's process from others: its rank, else its worker's name, else "".
func process(r *Report) string {
	if r.Rank != nil && r.a.Job.World > 1 {
		return fmt.Sprintf("rank %d of %d", *r.Rank, r.a.Job.World)
	}
	if m := stamped.FindStringSubmatch(filepath.Base(r.File)); m != nil {
		return m[1]
	}
	return ""
}

func (r *Report) begins() int64 { return r.a.Steps[0].Start }
func (r *Report) ends() int64   { return r.a.Steps[len(r.a.Steps)-1].End }

// overlap is how long two recordings ran at the same time, ns; 0 or less where they did not.
func overlap(x, y *Report) int64 { return min(x.ends(), y.ends()) - max(x.begins(), y.begins()) }

// oneEach keeps one recording of each process: the last of each where all were recorded equally
// often, else those that ran beside the last of the one that was recorded least. alone is set where
// all are of one process, so that there is nobody to compare it with. Recordings of one rank that
// overlap are copies or misnumbered, and are left as they are.
func oneEach(reports []*Report) (kept []*Report, remark string, alone bool) {
	by := map[string][]*Report{}
	var names []string // in the order of the reports
	for _, r := range reports {
		name := process(r)
		if name == "" {
			return reports, "", false
		}
		if by[name] == nil {
			names = append(names, name)
		}
		by[name] = append(by[name], r)
	}
	if len(names) == len(reports) {
		return reports, "", false
	}
	least, equal := by[names[0]], true
	for _, name := range names {
		list := by[name]
		slices.SortStableFunc(list, func(x, y *Report) int { return cmp.Compare(x.begins(), y.begins()) })
		for i := range list[1:] {
			if overlap(list[i], list[i+1]) > 0 {
				return reports, "", false
			}
		}
		equal = equal && len(list) == len(least)
		if len(list) < len(least) {
			least = list
		}
	}
	if len(names) == 1 {
		return reports, "these are recordings of one process, one after the other: they are judged one by one", true
	}
	last := least[len(least)-1]
	var files []string
	for _, name := range names {
		list := by[name]
		one := list[len(list)-1]
		if !equal {
			best := slices.MaxFunc(list, func(x, y *Report) int { return cmp.Compare(overlap(x, last), overlap(y, last)) })
			if overlap(best, last) > 0 {
				one = best
			}
		}
		kept = append(kept, one)
		files = append(files, nameOf(one))
	}
	slices.Sort(files)
	which := "the last of each is"
	if !equal {
		which = "one of each is"
	}
	return kept, fmt.Sprintf("%s of %s, as schedule(repeat=) leaves them: %s judged, %s; name others to judge those",
		phrase.Count1(len(reports), "recording"), phrase.Count1(len(names), "rank"), which, strings.Join(files[:min(len(files), shownFiles)], ", ")+more(len(files)-shownFiles)), false
}

func nameOf(r *Report) string {
	if r.File != "" {
		return filepath.Base(r.File)
	}
	return fmt.Sprintf("rank %d", *r.Rank)
}

// shownFiles is how many files a remark names.
const shownFiles = 4

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
