package files

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"haul/internal/vrp"
)

// Reading cells: times, spans, amounts, words. What a reader could break: a plain number of time
// counts in its column's unit, and is taken unchanged if the column names none; times of day
// such as 08:30 and spans such as "20 min" are converted to the unit of the whole table.

// Units of time that a table may count in, in minutes.
var timeUnits = map[string]float64{"": 1, "minutes": 1, "seconds": 1.0 / 60, "hours": 60}

// KnownTimes refuses what is no unit of time for tables.
func KnownTimes(unit string) error {
	if _, ok := timeUnits[unit]; !ok {
		return fmt.Errorf("unknown unit of time %s: use minutes, seconds or hours", quoteShort(unit))
	}
	return nil
}

// unitWords are what people write behind a number of time, or behind a column's name.
var unitWords = map[string]float64{"s": 1.0 / 60, "sec": 1.0 / 60, "secs": 1.0 / 60, "second": 1.0 / 60, "seconds": 1.0 / 60,
	"m": 1, "min": 1, "mins": 1, "minute": 1, "minutes": 1, "h": 60, "hr": 60, "hrs": 60, "hour": 60, "hours": 60}

// reader reads the cells of one table after another.
type reader struct {
	minute  float64             // units of time per minute
	decimal func(string) string // a cell's number with a decimal point
	unit    float64             // minutes per unit of the column at hand; 0: as it stands

	clock  bool           // a time of day was read
	dated  bool           // a time with its date was read
	days   bool           // a time of day without a date was read
	words  map[string]int // skills that are words
	skills []string       // the same, in order
}

var (
	clockForm = regexp.MustCompile(`^(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*([AaPp]\.?[Mm]\.?)?$`)
	plainForm = regexp.MustCompile(`^0\d{3}$`) // 0800, which has no other use for its first digit
	hourForm  = regexp.MustCompile(`^(\d{1,2})\s*[hH](\d{2})$`)
	apForm    = regexp.MustCompile(`^(\d{1,2})\s*([AaPp])\.?[Mm]\.?$`)
	partForm  = regexp.MustCompile(`^(\d+(?:[.,]\d+)?)\s*([A-Za-z]+)\.?\s*`)
	dateForms = []string{dateForm, "2006-01-02 15:04", "2006-01-02", "02.01.2006 15:04", "2006/01/02 15:04", "2006-01-02 15:04:05Z07:00"}
)

var errTime = errors.New("is not a time: expected a number, or hours and minutes as 08:30")

// time reads a point in time: a number, a clock's 08:30, 8:30 PM or 8h30, or a date with a time.
func (r *reader) time(s string) (float64, error) {
	if minutes, ok, err := clockMinutes(s); ok {
		r.clock, r.days = true, true
		return minutes * r.minute, err
	}
	if plainForm.MatchString(s) {
		return 0, fmt.Errorf("is a time of day or a number: write %s:%s, or %s", s[:2], s[2:], strings.TrimLeft(s[:3], "0")+s[3:])
	}
	for _, form := range dateForms {
		if t, err := time.Parse(form, strings.Replace(s, "T", " ", 1)); err == nil {
			r.clock, r.dated = true, true
			return float64(t.Unix()) / 60 * r.minute, nil
		}
	}
	return r.span(s)
}

// clockMinutes is a time of day in minutes.
func clockMinutes(s string) (minutes float64, ok bool, err error) {
	if m := apForm.FindStringSubmatch(s); m != nil {
		s = m[1] + ":00 " + m[2] + "m"
	}
	if m := hourForm.FindStringSubmatch(s); m != nil {
		s = m[1] + ":" + m[2]
	}
	if !strings.Contains(s, ":") || strings.ContainsAny(s, "-/") {
		return 0, false, nil
	}
	m := clockForm.FindStringSubmatch(s)
	if m == nil {
		return 0, !strings.ContainsAny(s, ". "), errTime
	}
	part := func(i int) float64 { n, _ := strconv.Atoi(m[i]); return float64(n) } // digits
	h := part(1)
	if part(2) > 59 || m[3] != "" && part(3) > 59 {
		return 0, true, errTime
	}
	if m[4] != "" {
		if h < 1 || h > 12 {
			return 0, true, errTime
		}
		if h = math.Mod(h, 12); m[4][0]|0x20 == 'p' {
			h += 12
		}
	}
	return 60*h + part(2) + part(3)/60, true, nil
}

// span reads a length of time: a number, 0:20, 20 min or 1h 30min.
func (r *reader) span(s string) (float64, error) {
	if minutes, ok, err := clockMinutes(s); ok {
		return minutes * r.minute, err
	}
	if m := partForm.FindStringSubmatch(s); m != nil && unitWords[strings.ToLower(m[2])] > 0 {
		total := 0.0
		for rest := s; rest != ""; {
			m := partForm.FindStringSubmatch(rest)
			if m == nil {
				return 0, errTime
			}
			per, ok := unitWords[strings.ToLower(m[2])]
			x, err := strconv.ParseFloat(strings.Replace(m[1], ",", ".", 1), 64)
			if !ok || err != nil {
				return 0, errTime
			}
			total += x * per
			rest = rest[len(m[0]):]
		}
		return total * r.minute, nil
	}
	x, err := r.number(s)
	if err == nil && x < 0 {
		err = errors.New("is negative")
	}
	if r.unit > 0 {
		x *= r.unit * r.minute
	}
	return x, err
}

func (r *reader) number(s string) (float64, error) { return parseFloat(r.decimal(s)) }

// price reads a number that is not negative.
func (r *reader) price(s string) (float64, error) {
	x, err := r.number(s)
	if err == nil && x < 0 {
		err = errors.New("is negative")
	}
	return x, err
}

// natural reads a whole number that is not negative.
func (r *reader) natural(s string) (int, error) {
	n, err := parseInt(r.decimal(s))
	if err == nil && n < 0 {
		err = errors.New("is negative")
	}
	return n, err
}

var (
	dashForm = regexp.MustCompile(`\s*(?:-|–|—|\bto\b|\buntil\b)\s*`)
	pmForm   = regexp.MustCompile(`\s+([AaPp]\.?[Mm])`)
)

// spans reads windows as 08:00-10:00 14:00-16:00.
func (r *reader) spans(s string) ([]vrp.Window, error) {
	bad := errors.New("is not a list of windows: expected 08:00-10:00 14:00-16:00")
	s = pmForm.ReplaceAllString(s, "$1")
	s = dashForm.ReplaceAllString(s, "-")
	var list []vrp.Window
	for _, f := range strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune(" |+,;/&", c) }) {
		if f == "and" {
			continue
		}
		from, to, ok := strings.Cut(f, "-")
		if !ok {
			return nil, bad
		}
		a, err := r.time(from)
		if err != nil {
			return nil, err
		}
		b, err := r.time(to)
		if err != nil {
			return nil, err
		}
		if b < a {
			return nil, fmt.Errorf("ends before it begins%s", r.midnight())
		}
		list = append(list, vrp.Window{From: a, To: b})
	}
	if list == nil {
		return nil, bad
	}
	return list, nil
}

// joined are windows in order, those that touch made one: 08:00-10:00 10:00-12:00.
func joined(list []vrp.Window) (out []vrp.Window) {
	slices.SortFunc(list, func(a, b vrp.Window) int { return cmp.Compare(a.From, b.From) })
	for _, w := range list {
		if n := len(out); n > 0 && w.From <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, w.To)
		} else {
			out = append(out, w)
		}
	}
	return out
}

// midnight says how a span past midnight is written, where times are those of a day.
func (r *reader) midnight() string {
	if !r.days {
		return ""
	}
	return ": past midnight, 22:00-30:00 ends at six"
}

// yes reads a word for yes (1) or no (-1).
func yes(s string) (int, error) {
	switch strings.ToLower(s) {
	case "yes", "y", "true", "1", "x":
		return 1, nil
	case "no", "n", "false", "0":
		return -1, nil
	}
	return 0, errors.New("is neither yes nor no")
}

// listed are the words of a list: separated by blanks, commas, bars or plus signs.
func listed(s string) []string {
	return strings.FieldsFunc(s, func(c rune) bool { return strings.ContainsRune(" ,;|+", c) })
}

// needs reads skills: numbers, or words that the table's vehicles have as well. A word gets a
// number when all are read.
func (r *reader) needs(s string) ([]string, error) {
	list := listed(s)
	for i, f := range list {
		list[i] = strings.ToLower(printable(f))
		if n, err := strconv.ParseFloat(f, 64); err == nil && (n < 0 || n != math.Trunc(n) || n > math.MaxInt32) {
			return nil, errors.New("is not a list of skills: expected numbers such as 1 3, or words")
		} else if err == nil {
			list[i] = itoa(int(n)) // a column with empty cells may have 3.0 for 3
		}
		if r.words == nil {
			r.words = map[string]int{}
		}
		if _, ok := r.words[list[i]]; !ok {
			r.words[list[i]] = len(r.skills)
			r.skills = append(r.skills, list[i])
		}
	}
	return list, nil
}

// worded says that skills are words, not all of them numbers.
func (r *reader) worded() bool {
	return slices.ContainsFunc(r.skills, func(s string) bool { _, err := strconv.ParseUint(s, 10, 31); return err != nil })
}

// numbered gives skills their numbers: their own where all are numbers, else by their order.
func (r *reader) numbered(list []string) (out []int32) {
	own, seen := !r.worded(), map[int]bool{}
	for _, s := range list {
		n := r.words[s] + 1
		if own {
			n, _ = strconv.Atoi(s)
		}
		if !seen[n] {
			seen[n] = true
			out = append(out, int32(n))
		}
	}
	slices.Sort(out)
	return out
}

// mostDecimals is how fine amounts are counted at most.
const mostDecimals = 4

// decimals is how many decimals a number has; what binary fractions add does not count.
func decimals(x float64) (int, error) {
	for k := range mostDecimals + 1 {
		y := x * math.Pow10(k)
		if math.Abs(y-math.Round(y)) <= 1e-12*max(1, math.Abs(y)) {
			return k, nil
		}
	}
	return 0, fmt.Errorf("has more than %d decimals", mostDecimals)
}

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
