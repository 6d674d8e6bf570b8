package agent

import (
	"encoding/json"
)

// lived is the combined result of a rank's agents.
type lived struct {
	Runs, Tokens int64
	Count        int64
	Forced       int64
	Sum, Squares int64
	Shortest     int
	Longest      int
}

// gather combines the results of all ranks' agents, as if one process had run them.
func (e *evaluator) gather(stopped bool) error {
	own, all := e.batch, e.all
	seen := len(own.first[0].seen)
	each := own.episodes + 2*(1+seen) + 2
	row := make([]float64, 0, len(own.agents)*each)
	for i := range own.agents {
		row = append(row, own.returns[i*own.episodes:][:own.episodes]...)
		for _, kept := range [...]*walk{&own.first[i], &own.last[i]} {
			row = append(row, float64(kept.n))
			for _, v := range kept.seen {
				row = append(row, float64(v))
			}
		}
		row = append(row, float64(own.agents[i].steps), float64(own.agents[i].context.prunes))
	}
	rows := make([]float64, len(all.agents)*each)
	if err := e.world.Collect(rows, row, stopped); err != nil {
		return err
	}
	for i := range all.agents {
		row := rows[i*each:][:each]
		row = row[copy(all.returns[i*all.episodes:][:all.episodes], row):]
		for _, kept := range [...]*walk{&all.first[i], &all.last[i]} {
			kept.n = int(row[0])
			for k := range kept.seen {
				kept.seen[k] = int32(row[1+k])
			}
			row = row[1+seen:]
		}
		all.agents[i].steps, all.agents[i].context.prunes = int(row[0]), int(row[1])
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
