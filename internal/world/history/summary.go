package history

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"haul/internal/world"
)

// Summary describes a file's contents, and problems for an agent that learns from it.
type Summary struct {
	World       string    `json:"world"`
	Env         string    `json:"env"`
	Tasks       int       `json:"tasks"`
	Train       int       `json:"train_tasks"`
	Test        int       `json:"test_tasks"`
	Streams     int       `json:"streams"`
	Transitions int64     `json:"transitions"`
	Episodes    int64     `json:"episodes"`
	Fields      int       `json:"fields"`
	Constant    []string  `json:"constant_fields"` // names of fields with a single value
	Actions     int       `json:"actions"`
	Labels      bool      `json:"labels"` // the best action of each transition is known
	Rewards     []float64 `json:"rewards"`
	First       float64   `json:"first_return"` // mean over tasks of the first tenth of their episodes
	Third       float64   `json:"third_return"` // of the tenth that begins after a third
	Last        float64   `json:"last_return"`  // of the last tenth
	Curve       []float64 `json:"curve"`        // mean over tasks, at up to 100 positions in their histories
	Wrong       []string  `json:"wrong"`        // problems, as text
}

// curvePlaces is the largest number of points of a summary's curve.
const curvePlaces = 100

// fewEpisodes is the number of episodes that a stream needs to show progress.
const fewEpisodes = 10

// Summarize summarises an open file.
func Summarize(h History) *Summary {
	w := h.World()
	space := w.Space()
	train, test := h.Split()
	s := &Summary{World: w.Describe(), Env: w.Name(), Tasks: len(h.Tasks()), Train: len(train), Test: len(test), Fields: len(space.Fields), Actions: space.Actions,
		Rewards: space.Rewards, Constant: []string{}, Wrong: []string{}}
	short, cut, only := 0, 0, -1
	rest := "what that episode has paid so far counts as its return"
	switch h := h.(type) {
	case *Rooms:
		s.Streams = len(h.Goals) * h.Streams
		s.Transitions = int64(s.Streams) * int64(h.Steps)
		s.Episodes = int64(s.Streams) * int64(h.Steps/h.Room.Horizon)
		s.Labels = true // computed from the transitions
		if h.Steps/h.Room.Horizon < fewEpisodes {
			short = s.Streams
		}
		if h.Steps%h.Room.Horizon > 0 {
			cut, rest = s.Streams, "that episode is left out of the returns"
		}
	case *Records:
		s.Streams, s.Labels = len(h.head.Streams), h.head.Labels
		for _, x := range h.head.Streams {
			s.Transitions += int64(x.Records)
			s.Episodes += int64(x.Episodes)
			if x.Episodes < fewEpisodes {
				short++
			}
			if x.Open {
				cut++
			}
		}
		s.Constant, only = h.constant()
	}
	progress := s.follow(h)
	wrong := func(format string, args ...any) { s.Wrong = append(s.Wrong, fmt.Sprintf(format, args...)) }
	if lack := Unsplit(h); lack != "" {
		wrong("%s", lack)
	} else if s.Train == 1 {
		wrong("one task to learn from: an agent learns how learning goes from many")
	}
	switch {
	case len(space.Rewards) == 1 && !progress.differ:
		// If every step has the same reward, the length of episodes may still be learned.
		wrong("every reward is %g: there is nothing to learn from", space.Rewards[0])
	case progress.unpaid > 0:
		wrong("in %s the learners are never paid: nothing shows what is good there", some(progress.unpaid, s.Tasks, "task"))
	}
	if progress.still > 0 {
		wrong("in %s the learners end no better than they began", some(progress.still, s.Tasks, "task"))
	}
	if only >= 0 {
		wrong("every action is %d: there is no choice to learn", only)
	}
	if short > 0 {
		wrong("%s fewer than %d episodes: little is learned in them", verb(short, s.Streams, "stream", "has", "have"), fewEpisodes)
	}
	if cut > 0 {
		wrong("%s within an episode: %s", verb(cut, s.Streams, "stream", "ends", "end"), rest)
	}
	return s
}

// progress counts tasks by the progress of their learners.
type progress struct {
	still  int  // the last return is not above the first
	unpaid int  // no episode has a positive return, with rewards that are gains
	differ bool // some episodes differ in their return
}

// follow computes the curves.
func (s *Summary) follow(h History) (p progress) {
	places := curvePlaces
	for t := range h.Tasks() {
		places = min(places, max(1, len(h.Curve(t))))
	}
	s.Curve = make([]float64, places)
	for t := range h.Tasks() {
		c := h.Curve(t)
		if len(c) == 0 {
			continue
		}
		least, most := slices.Min(c), slices.Max(c)
		p.differ = p.differ || least != most
		n := float64(s.Tasks)
		first, third, last := tenth(c, 0), tenth(c, len(c)/3), tenth(c, len(c)-max(1, len(c)/10))
		s.First, s.Third, s.Last = s.First+first/n, s.Third+third/n, s.Last+last/n
		switch {
		case most == 0 && s.Rewards[0] >= 0:
			p.unpaid++
		case last <= first && len(c) > 1:
			p.still++
		}
		for i := range s.Curve {
			s.Curve[i] += c[i*len(c)/places] / n
		}
	}
	return p
}

// constant returns the names of fields that are equal in all records, and the action if it is, or
// -1.
func (h *Records) constant() (fields []string, action int) {
	space := h.world.Space()
	n, stride := len(space.Fields)+1, h.head.recordBytes(space)
	payload := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(h.words))), 4*len(h.words))
	first := payload[:n]
	same := make([]int, n) // bytes that have not changed so far
	for i := range same {
		same[i] = i
	}
	for at := stride; at < len(payload) && len(same) > 0; at += stride {
		same = slices.DeleteFunc(same, func(i int) bool { return payload[at+i] != first[i] })
	}
	fields, action = []string{}, -1
	for _, i := range same {
		if i == n-1 {
			action = int(first[i])
		} else {
			fields = append(fields, space.Fields[i].Name)
		}
	}
	return fields, action
}

// Unsplit returns a problem and its remedy if a file leaves no task to train on or none to test on;
// otherwise "".
func Unsplit(h History) string {
	train, test := h.Split()
	n := len(train) + len(test)
	switch {
	case len(train) > 0 && len(test) > 0:
		return ""
	case n == 1:
		return "one task: an agent learns how learning goes from many, and is tested on others"
	}
	remedy := "make the file again with another train_env_ratio"
	if h.World().Name() == world.EnvRecorded {
		// with this ratio, round(ratio·n) is n−1
		remedy = fmt.Sprintf("make the file again with --train-ratio %.2g", math.Floor(100*float64(n-1)/float64(n))/100)
	}
	return fmt.Sprintf("%d tasks to learn from and %d held out, and both are needed: %s", len(train), len(test), remedy)
}

// some returns a number of things as text: "3 of 8 tasks", "all 8 tasks".
func some(part, of int, noun string) string {
	if of != 1 {
		noun += "s"
	}
	switch {
	case of == 1:
		return "the one " + noun
	case part == of:
		return fmt.Sprintf("all %d %s", of, noun)
	}
	return fmt.Sprintf("%d of %d %s", part, of, noun)
}

// verb returns the same text with its verb, in the singular or plural.
func verb(part, of int, noun, one, more string) string {
	if part == 1 {
		more = one
	}
	return some(part, of, noun) + " " + more
}

// tenth returns the mean of a tenth of a curve, starting at an index.
func tenth(c []float64, from int) float64 {
	part := c[from:min(len(c), from+max(1, len(c)/10))]
	sum := 0.0
	for _, v := range part {
		sum += v
	}
	return sum / float64(len(part))
}
