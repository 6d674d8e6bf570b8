package agent

import (
	"fmt"
	"slices"

	"haul/internal/config"
	"haul/internal/report"
	"haul/internal/world"
	"haul/internal/world/history"
)

// smallRoom is the largest side of the rooms that ad_dr_small is for.
const smallRoom = 5

// settingsOf returns the name of the shipped settings for histories of a world of this kind.
func settingsOf(w world.World) string {
	switch w.Name() {
	case config.EnvDarkRoom:
		if w.Space().Fields[0].Size <= smallRoom {
			return "ad_dr_small"
		}
		return "ad_dr_compressed"
	case config.EnvKeyDoor:
		return "ad_keydoor"
	case "episodic":
		return "ad_tabular"
	case "xland":
		return "ad_xland"
	}
	return "ad_any"
}

// lengthenRegions returns settings that let a region hold three episodes, or none if c already
// does.
func lengthenRegions(horizon int, c *config.AD) (sets []string) {
	longest := 3 * horizon
	if longest <= c.CompressInterval {
		return nil
	}
	sets = append(sets, fmt.Sprintf("compress_interval=%d", longest), fmt.Sprintf("compress_min=%d", horizon))
	if need := 2*longest + 4; need > c.NTransit {
		sets = append(sets, fmt.Sprintf("n_transit=%d", need))
	}
	return sets
}

// shorten returns settings with which nine of ten streams of varying length can hold a sequence, or
// none if c already allows it.
func shorten(h history.History, tasks []int, c *config.AD) []string {
	data, err := h.Pack(tasks, 0, 0)
	if err != nil {
		return nil
	}
	room := make([]int, len(data.Spans))
	for i := range room {
		room[i] = roomOf(data, &data.Spans[i], c.UseCompressedContext)
	}
	slices.Sort(room)
	switch most := room[len(room)/10]; {
	case !c.UseCompressedContext && most < c.NTransit:
		return []string{fmt.Sprintf("n_transit=%d", most)}
	case c.UseCompressedContext && most < c.CompressInterval:
		sets := []string{fmt.Sprintf("compress_interval=%d", most)}
		if c.CompressMin > most/2 {
			sets = append(sets, fmt.Sprintf("compress_min=%d", max(1, most/2)))
		}
		return sets
	}
	return nil
}

// Command returns the command line that trains an agent on histories: the shipped settings of their
// world, with changes if the file holds less or has longer episodes than they need. It returns ""
// if no such change is enough.
func Command(h history.History, path string) string {
	name := settingsOf(h.World())
	s, err := config.LoadAny(config.RecipeAD, name, nil)
	if err != nil {
		return ""
	}
	c := s.(*config.AD)
	var sets []string
	lower := func(key string, asked, have int) {
		if have < asked {
			sets = append(sets, fmt.Sprintf("%s=%d", key, have))
		}
	}
	train, test := h.Split()
	if c.ValidationGoals > len(train)/2 { // most goals must be left to learn from
		lower("validation_goals", c.ValidationGoals, len(train)/4)
	}
	if rooms, ok := h.(*history.Rooms); ok {
		lower("train_n_stream", c.TrainNStream, rooms.Streams)
		lower("train_source_timesteps", c.TrainSourceTimesteps, rooms.Steps)
		sets = append(sets, lengthenRegions(rooms.World().Limit(), c)...)
	} else {
		sets = append(sets, shorten(h, append(train, test...), c)...)
	}
	if s, err = config.LoadAny(config.RecipeAD, name, sets); err != nil || Check(h, s.(*config.AD)) != nil {
		return ""
	}
	out := fmt.Sprintf("haul train --config %s --history %s", name, report.ShellWord(path))
	for _, s := range sets {
		out += " --set " + s
	}
	return out
}
