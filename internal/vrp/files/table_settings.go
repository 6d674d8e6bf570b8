package files

import (
	"fmt"
	"math"
	"strings"

	"haul/internal/schema"
	"haul/internal/vrp"
)

// Settings of a spreadsheet: a sheet of two columns, name and value. A flag for the same setting
// overrides it.

// settingNames are the keys.
func settingNames() (names []string) {
	for _, c := range schema.ColumnsOf(schema.Settings) {
		names = append(names, c.Name)
	}
	return append(names, "times")
}

// readSettings reads the sheet into the options and the problem.
func (t *tables) readSettings() error {
	s := t.settings
	if s == nil {
		return nil
	}
	t.at(s)
	rows, lines := append([][]string{s.head}, s.rows...), append([]int{s.at}, s.lines...)
	if len(s.head) > 0 && strings.EqualFold(strings.TrimSpace(s.head[0]), "setting") {
		rows, lines = rows[1:], lines[1:]
	}
	for _, cells := range rows { // the unit of time counts for those above it, too
		if len(cells) > 1 && spelled(cells[0]) == "times" && t.o.Times == "" {
			if per, ok := timeUnits[strings.TrimSpace(cells[1])]; ok {
				t.minute = 1 / per
			}
		}
	}
	seen := map[string]bool{}
	for i, cells := range rows {
		if len(cells) < 2 {
			return s.errorf(lines[i], "expected a setting and its value")
		}
		key, text := spelled(cells[0]), strings.TrimSpace(cells[1])
		if seen[key] {
			return s.errorf(lines[i], "setting %s is given twice", quoteShort(printable(key)))
		}
		seen[key] = true
		if err := t.set(key, text); err != nil {
			return s.errorf(lines[i], "%s %s %v", printable(key), quoteShort(printable(text)), err)
		}
	}
	return nil
}

func (t *tables) set(key, text string) (err error) {
	p := t.p
	switch key {
	case "capacity":
		var c int
		if c, err = t.natural(text); err == nil && c == 0 {
			err = fmt.Errorf("is not above 0")
		}
		if err == nil && t.o.Capacity == 0 {
			t.o.Capacity = int32(c)
		}
	case "vehicles":
		p.Vehicles, err = t.natural(text)
	case "speed":
		var x float64
		if x, err = t.number(text); err == nil && !(x > 0) {
			err = fmt.Errorf("is not above 0")
		}
		if t.o.Speed == 0 {
			t.o.Speed = x
		}
	case "times":
		if err = KnownTimes(text); err == nil && t.o.Times == "" {
			t.o.Times = text
		}
	case "max_duration":
		p.MaxDuration, err = t.span(text)
	case "open":
		var n int
		n, err = yes(text)
		p.Open = n > 0
	case "lifo":
		var n int
		n, err = yes(text)
		p.LIFO = n > 0
	case "backhauls":
		var n int
		n, err = backhauls.of(key, text)
		p.Backhauls = vrp.BackhaulRule(n)
	case "objective":
		var n int
		n, err = objectives.of(key, text)
		p.Objective = vrp.Objective(n)
	default:
		err = fmt.Errorf("is not a setting that is read: use one of %s", strings.Join(settingNames(), ", "))
	}
	return err
}

// settingsOf are those of a problem.
func settingsOf(p *vrp.Problem) (rows [][]string) {
	set := func(key, value string, say bool) {
		if say {
			rows = append(rows, []string{key, value})
		}
	}
	set("capacity", number(p.Amount(0, int64(p.Capacity))), p.Fleet == nil)
	set("vehicles", itoa(p.Vehicles), p.Vehicles > 0)
	set("times", map[float64]string{60: "seconds", 1.0 / 60: "hours"}[p.Clock], p.Clock != 0 && p.Clock != 1)
	speed := p.Speed
	if p.Metric == vrp.GreatCircle {
		speed *= 60 / 1000.0 * perMinute(p)
	}
	set("speed", number(speed), p.Speed != 0)
	set("max_duration", number(p.MaxDuration), p.MaxDuration > 0)
	set("open", "yes", p.Open)
	set("lifo", "yes", p.LIFO)
	set("backhauls", backhauls[p.Backhauls], p.Backhauls != vrp.Mixed)
	set("objective", objectives[p.Objective], p.Objective != vrp.MinCost)
	return rows
}

// perMinute is the units of time of a minute: minutes where nothing is said.
func perMinute(p *vrp.Problem) float64 {
	if p.Clock == 0 || math.IsNaN(p.Clock) {
		return 1
	}
	return p.Clock
}
