package ppo

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"haul/internal/draw"
	"haul/internal/stats"
	"haul/internal/world/grid"
	"haul/internal/world/history"
)

// HistorySummary summarises the learners of a file of histories. A share is a return divided by the
// best possible one on the same goal.
type HistorySummary struct {
	Goals    int          `json:"goals"`
	Streams  int          `json:"streams"`
	Steps    int          `json:"steps_per_stream"`
	Episodes int          `json:"episodes"`
	Last     int          `json:"last_episodes"` // number of episodes that the final figures are a mean over
	Return   float64      `json:"final_return"`
	Optimal  float64      `json:"optimal_return"`
	Share    float64      `json:"final_share"` // mean over goals
	First    float64      `json:"first_share"` // of the first episode
	Third    float64      `json:"third_share"` // of the episode a third into the history
	Worst    []GoalResult `json:"worst"`       // by share, lowest first

	// share by episode: the mean, and the tenth and ninetieth percentile over goals
	Mean, Low, High []float64 `json:"-"`
}

// GoalResult is the final result of one learner.
type GoalResult struct {
	Goal    grid.Goal `json:"goal"`
	Return  float64   `json:"final_return"`
	Optimal float64   `json:"optimal_return"`
	Share   float64   `json:"final_share"`
}

// worstGoals is the number of goals that a summary names.
const worstGoals = 3

// SummarizeHistories summarises the learners of an open file.
func SummarizeHistories(h *history.Rooms) HistorySummary {
	n := float64(len(h.Goals))
	s := HistorySummary{Goals: len(h.Goals), Streams: h.Streams, Steps: h.Steps, Episodes: h.Steps / h.Room.Horizon, Last: finalEpisodes(&h.Header)}
	byEpisode := make([][]float64, s.Episodes)
	for g, goal := range h.Goals {
		best := h.Room.Optimal(goal)
		r := GoalResult{Goal: goal, Optimal: best}
		for e, v := range h.Curve(g) {
			byEpisode[e] = append(byEpisode[e], stats.ShareOf(v, best))
			if e >= s.Episodes-s.Last {
				r.Return += v / float64(s.Last)
			}
		}
		r.Share = stats.ShareOf(r.Return, best)
		s.Return += r.Return / n
		s.Optimal += best / n
		s.Share += r.Share / n
		s.Worst = append(s.Worst, r)
	}
	slices.SortStableFunc(s.Worst, func(a, b GoalResult) int { return cmp.Compare(a.Share, b.Share) })
	s.Worst = s.Worst[:min(worstGoals, len(s.Worst))]
	for _, shares := range byEpisode {
		slices.Sort(shares)
		mean := 0.0
		for _, v := range shares {
			mean += v / n
		}
		at := func(q float64) float64 { return shares[int(q*float64(len(shares)-1)+0.5)] }
		s.Mean, s.Low, s.High = append(s.Mean, mean), append(s.Low, at(0.1)), append(s.High, at(0.9))
	}
	s.First, s.Third = s.Mean[0], s.Mean[s.Episodes/3]
	return s
}

// Draw draws the learning curves: the mean, and the band that holds eight of ten goals.
func (s *HistorySummary) Draw(w io.Writer, f draw.Format, room grid.Room) error {
	mean, band := draw.Curve{Name: "mean"}, draw.Band{Name: "10 to 90 % of the goals"}
	for e := range s.Mean {
		mean.Add(float64(e+1), s.Mean[e])
		band.Add(float64(e+1), s.Low[e], s.High[e])
	}
	return draw.Panels(w, f, fmt.Sprintf("Learning histories · %.1f %% of the optimum", 100*s.Share),
		fmt.Sprintf("%v · %d goals · %d × %d episodes", room, s.Goals, s.Streams, s.Episodes),
		draw.Panel{Title: "Return by the best possible", X: "episode", Curves: []draw.Curve{mean}, Band: band, Level: 1, LevelName: "optimum", FromZero: true})
}
