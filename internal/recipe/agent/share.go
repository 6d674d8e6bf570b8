package agent

import (
	"encoding/json"

	"haul/internal/world"
)

// lived is what a rank's agents came to together.
type lived struct {
	Runs, Tokens int64
	Count        int64
	Forced       int64
	Sum, Squares int64
	Shortest     int
	Longest      int
}

// gather puts the lives of all ranks' agents together, as if one process had run them.
func (e *evaluator) gather(stopped bool) error {
	own, all := e.batch, e.all
	h := own.room.Horizon
	each := own.episodes + 2*h + 1
	row := make([]float64, 0, len(own.agents)*each)
	for i := range own.agents {
		for _, v := range own.returns[i*own.episodes:][:own.episodes] {
			row = append(row, float64(v))
		}
		for _, kept := range [][]world.Step{own.first, own.last} {
			for _, s := range kept[i*h:][:h] {
				row = append(row, float64(s))
			}
		}
		row = append(row, float64(own.agents[i].context.prunes))
	}
	rows := make([]float64, len(all.agents)*each)
	if err := e.world.Collect(rows, row, stopped); err != nil {
		return err
	}
	for i := range all.agents {
		row := rows[i*each:][:each]
		for k := range all.episodes {
			all.returns[i*all.episodes+k] = int32(row[k])
		}
		for k := range h {
			all.first[i*h+k], all.last[i*h+k] = world.Step(row[all.episodes+k]), world.Step(row[all.episodes+h+k])
		}
		all.agents[i].context.prunes = int(row[each-1])
	}
	s := &own.regions
	text, err := json.Marshal(lived{own.runs, own.tokens, s.count, s.forced, s.sum, s.squares, s.shortest, s.longest})
	if err != nil {
		return err
	}
	texts, err := e.world.Gather(text)
	if err != nil {
		return err
	}
	all.runs, all.tokens, all.regions = 0, 0, regionSums{}
	for _, t := range texts {
		var l lived
		if err := json.Unmarshal(t, &l); err != nil {
			return err
		}
		r := &all.regions
		if l.Count > 0 && (r.count == 0 || l.Shortest < r.shortest) {
			r.shortest = l.Shortest
		}
		r.longest = max(r.longest, l.Longest)
		r.count, r.forced, r.sum, r.squares = r.count+l.Count, r.forced+l.Forced, r.sum+l.Sum, r.squares+l.Squares
		all.runs, all.tokens = max(all.runs, l.Runs), all.tokens+l.Tokens
	}
	return nil
}
