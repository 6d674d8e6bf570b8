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

// A schedule with repeat= writes several recordings per process. Only simultaneous recordings are
// compared, since early steps of one rank cannot be compared with late steps of another.

// stamped matches a name of tensorboard_trace_handler: a worker, and the time of writing.
var stamped = regexp.MustCompile(`^(.+)\.\d{10,}\.pt\.trace\.json`)

// process identifies a trace's process: by its rank, or by its worker's name, or "".
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

// overlap returns the time in ns for which two recordings ran at once; 0 or negative if they did
// not.
func overlap(x, y *Report) int64 { return min(x.ends(), y.ends()) - max(x.begins(), y.begins()) }

// oneEach keeps one recording per process. If all processes have equally many, it keeps the last of
// each, otherwise the recordings that overlap the last one of the process with the fewest. alone is
// true if all recordings are of one process, so that there is no other rank to compare. Overlapping
// recordings of one rank are copies or misnumbered, and are all kept.
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

// shownFiles is the number of files that a remark names.
const shownFiles = 4

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more", n)
}
