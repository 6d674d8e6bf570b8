package files

import (
	"fmt"
	"math"
	"time"

	"haul/internal/vrp"
)

// undate counts times with dates from the midnight before the first of them.
func (t *tables) undate() error {
	if !t.dated {
		return nil
	}
	if t.days {
		return fmt.Errorf("%s: some times have a date and others have none: give all of them one, or none", t.name)
	}
	all := t.times()
	day := 1440 * t.minute
	first := math.Inf(1)
	for _, x := range all {
		if *x > 1e5*day/1440 { // no date is that soon after 1970
			first = min(first, *x)
		}
	}
	base := math.Floor(first/day) * day
	for _, x := range all {
		if !math.IsInf(*x, 0) && *x > 0 {
			*x -= base
		}
	}
	t.p.Notes = append(t.p.Notes, "times count from "+time.Unix(int64(base/t.minute*60), 0).UTC().Format("2006-01-02 15:04"))
	return nil
}

// times are all points in time that tables gave.
func (t *tables) times() (all []*float64) {
	windows := func(list []vrp.Window) {
		for i := range list {
			all = append(all, &list[i].From, &list[i].To)
		}
	}
	for i := range t.places {
		x := &t.places[i]
		windows(x.windows)
		for _, at := range []*float64{x.ready, x.due} {
			if at != nil {
				all = append(all, at)
			}
		}
		if x.release > 0 {
			all = append(all, &x.release)
		}
	}
	for i := range t.fleet {
		v := &t.fleet[i]
		all = append(all, &v.Shift.From, &v.Shift.To, &v.LatestStart)
		for k := range v.Breaks {
			windows(v.Breaks[k].Windows)
		}
	}
	return all
}
