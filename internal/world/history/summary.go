package history

import (
	"fmt"
	"slices"
)

// Summary is what a file holds, and what would keep an agent from learning from it.
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
	Actions     int       `json:"actions"`
	Rewards     []float64 `json:"rewards"`
	First       float64   `json:"first_return"` // mean over tasks of the first tenth of their episodes
	Third       float64   `json:"third_return"` // of the tenth that begins a third on
	Last        float64   `json:"last_return"`  // of the last tenth
	Curve       []float64 `json:"curve"`        // mean over tasks, at 100 places of their histories or fewer
	Wrong       []string  `json:"wrong"`        // in words
}

// curvePlaces is how many points a summary's curve has at most.
const curvePlaces = 100

// Summarize measures an open file.
func Summarize(h History) *Summary {
	w := h.World()
	space := w.Space()
	train, test := h.Split()
	s := &Summary{World: w.Describe(), Env: w.Name(), Tasks: len(h.Tasks()), Train: len(train), Test: len(test), Fields: len(space.Fields), Actions: space.Actions, Rewards: space.Rewards, Wrong: []string{}}
	short := 0
	switch h := h.(type) {
	case *Rooms:
		s.Streams = len(h.Goals) * h.Streams
		s.Transitions = int64(s.Streams) * int64(h.Steps)
		s.Episodes = int64(s.Streams) * int64(h.Steps/h.Room.Horizon)
	case *Records:
		s.Streams = len(h.head.Streams)
		for _, x := range h.head.Streams {
			s.Transitions += int64(x.Records)
			s.Episodes += int64(x.Episodes)
			if x.Episodes < 10 {
				short++
			}
		}
	}
	places := curvePlaces
	for t := range h.Tasks() {
		places = min(places, max(1, len(h.Curve(t))))
	}
	s.Curve = make([]float64, places)
	still, differ := 0, false
	for t := range h.Tasks() {
		c := h.Curve(t)
		if len(c) == 0 {
			continue
		}
		differ = differ || slices.Min(c) != slices.Max(c)
		n := float64(s.Tasks)
		first, third, last := tenth(c, 0), tenth(c, len(c)/3), tenth(c, len(c)-max(1, len(c)/10))
		s.First, s.Third, s.Last = s.First+first/n, s.Third+third/n, s.Last+last/n
		if last <= first {
			still++
		}
		for i := range s.Curve {
			s.Curve[i] += c[i*len(c)/places] / n
		}
	}
	wrong := func(format string, args ...any) { s.Wrong = append(s.Wrong, fmt.Sprintf(format, args...)) }
	if s.Tasks == 1 {
		wrong("one task: an agent learns how learning goes from many, and is tested on others")
	} else if s.Train == 0 || s.Test == 0 {
		wrong("%d tasks to learn from and %d held out: both are needed", s.Train, s.Test)
	}
	if still > 0 {
		wrong("the learners of %d of %d tasks end no better than they began", still, s.Tasks)
	}
	if short > 0 {
		wrong("%d of %d streams have fewer than ten episodes: little is learned in them", short, s.Streams)
	}
	// Where every step pays the same, what an episode pays may still be learned: to live long.
	if len(space.Rewards) == 1 && !differ {
		wrong("every reward is %g: there is nothing to learn from", space.Rewards[0])
	}
	return s
}

// tenth is the mean of a tenth of a curve from a place on.
func tenth(c []float64, from int) float64 {
	part := c[from:min(len(c), from+max(1, len(c)/10))]
	sum := 0.0
	for _, v := range part {
		sum += v
	}
	return sum / float64(len(part))
}
