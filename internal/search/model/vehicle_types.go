package model

import (
	"cmp"
	"math"
	"slices"

	"haul/internal/vrp"
)

// Vehicle types in units. Types of one family differ in capacity, number and costs alone.

func (m *Compiled) readKinds(d *demands) {
	p := m.P
	types := p.Types()
	n := m.Nodes
	dist, dur := map[int]*Matrix{}, map[int]*Matrix{}
	void := false
	for _, t := range types {
		void = void || t.Start == vrp.None || t.End == vrp.None
	}
	for i := range types {
		t := &types[i]
		k := VehicleType{Start: int32(t.Start), End: int32(t.End), Count: t.Count, Capacity: t.Capacity, Initial: t.InitialLoad,
			Early: UpUnits(t.Shift.From, m.TimeUnit), Late: downUnits(t.Shift.To, m.TimeUnit),
			LastStart: downUnits(t.LatestStart, m.TimeUnit), MaxDur: downUnits(t.MaxDuration, m.TimeUnit),
			MaxDist: downUnits(t.MaxDistance, m.DistUnit), MaxStops: t.MaxStops,
			Fixed: t.FixedCost, PerDist: t.DistanceCost / m.DistUnit, PerDur: t.DurationCost / m.TimeUnit,
			Breaks: t.Breaks, MaxReloads: t.MaxReloads}
		if t.Start == vrp.None {
			k.Start = int32(n)
		}
		if t.End == vrp.None {
			k.End = int32(n)
		}
		if k.Count == 0 {
			k.Count = n
		}
		if k.MaxStops == 0 {
			k.MaxStops = n
		}
		k.Count = min(k.Count, n)
		for _, d := range t.Reloads {
			k.Reloads = append(k.Reloads, int32(d))
		}
		if k.MaxReloads == 0 && len(k.Reloads) > 0 {
			k.MaxReloads = n
		}
		// A dimension that a list does not reach has no limit, and no initial load.
		for k.Capacity = slices.Clip(k.Capacity); len(k.Capacity) < m.Dims; {
			k.Capacity = append(k.Capacity, math.MaxInt32)
		}
		for k.Initial = slices.Clip(k.Initial); k.Initial != nil && len(k.Initial) < m.Dims; {
			k.Initial = append(k.Initial, 0)
		}
		d.walks = d.walks || len(t.Breaks) > 0
		if len(k.Reloads) > 0 {
			m.Traits.Parts |= Reloads
		}
		if t.DurationCost > 0 {
			m.Traits.Parts |= PaidTime
		}
		if dist[t.Profile] == nil {
			dist[t.Profile] = m.NewGrid(void, m.Ruled(m.DistUnit, false, func(i, j int) int32 {
				return int32(min(math.Round(p.DistanceOf(t.Profile, i, j)*m.DistUnit), LongestLength))
			}))
			dur[t.Profile] = dist[t.Profile]
			if p.Speed != 0 && p.Speed != 1 || p.Profiles != nil && p.Profiles[t.Profile].Duration != nil || m.DistUnit != m.TimeUnit || !m.wholeTimes {
				dur[t.Profile] = m.NewGrid(void, m.Ruled(m.TimeUnit, true, func(i, j int) int32 {
					return int32(min(UpUnits(p.DurationOf(t.Profile, i, j), m.TimeUnit), LongestLength))
				}))
			}
		}
		k.Distances, k.Durations = dist[t.Profile], dur[t.Profile]
		k.Allowed = m.bits(t)
		m.Types = append(m.Types, k)
	}
	for i := range m.Types {
		m.Types[i].Family = i
		for j := range i {
			if m.sameFamily(&types[i], &types[j]) {
				m.Types[i].Family = m.Types[j].Family
				break
			}
		}
	}
}

// bits is the set of customers that a type may serve; nil: all.
func (m *Compiled) bits(t *vrp.VehicleType) []uint64 {
	if t.Allowed == nil && m.P.Needs == nil {
		return nil
	}
	set := make([]uint64, (m.Nodes+64)/64)
	for v := m.Depots; v < m.Nodes; v++ {
		ok := true
		if m.P.Needs != nil {
			for _, s := range m.P.Needs[v] {
				ok = ok && slices.Contains(t.Skills, s)
			}
		}
		if ok && t.Allowed == nil {
			set[v>>6] |= 1 << (v & 63)
		} else if ok {
			set[v>>6] |= 1 << (v & 63)
		}
	}
	if t.Allowed != nil {
		only := make([]uint64, len(set))
		for _, v := range t.Allowed {
			only[v>>6] |= 1 << (v & 63)
		}
		for i := range set {
			set[i] &= only[i]
		}
	}
	return set
}

func (m *Compiled) sameFamily(a, b *vrp.VehicleType) bool {
	return a.Start == b.Start && a.End == b.End && a.Shift == b.Shift && a.LatestStart == b.LatestStart && a.Profile == b.Profile &&
		slices.Equal(a.Reloads, b.Reloads) && a.MaxReloads == b.MaxReloads && slices.EqualFunc(a.Breaks, b.Breaks, sameBreak)
}

func sameBreak(a, b vrp.Break) bool {
	return slices.Equal(a.Windows, b.Windows) && a.Duration == b.Duration && slices.Equal(a.MaxLoad, b.MaxLoad)
}

// readSegments makes the segments of the depots, as each kind sees them.
func (m *Compiled) readSegments() {
	for i := range m.Types {
		k := &m.Types[i]
		s, e := &m.Locations[k.Start], &m.Locations[k.End]
		k.StartSeg = TimeSegment{Dur: s.Service, Early: max(k.Early, s.Early), Late: min(k.Late, k.LastStart, s.Late)}
		k.EndSeg = TimeSegment{Early: e.Early, Late: min(k.Late, e.Late)}
		if k.StartSeg.Early > k.StartSeg.Late || k.EndSeg.Early > k.EndSeg.Late {
			k.Count = 0 // its shift ends before its depot opens
		}
		for _, d := range k.Reloads {
			at := &m.Locations[d]
			k.reloadSegs = append(k.reloadSegs, TimeSegment{Dur: at.Service, Early: at.Early, Late: at.Late})
		}
	}
}

// FewestVehicles is a number of vehicles below which the required tasks exceed all capacities: to
// search for fewer would be in vain.
func (m *Compiled) FewestVehicles() int {
	least := 0
	if m.Traits.Parts.Has(Reloads | Shipments) {
		return 0 // a vehicle may carry more than its capacity, in turn
	}
	for d := range m.Dims {
		var del, pick int64
		for _, v := range m.Tasks {
			if m.Locations[v].Required && m.Members[v] == nil {
				a := m.AmountsOf(v)[d]
				del, pick = del+int64(a.Del), pick+int64(a.Pick)
			}
		}
		order := make([]int, len(m.Types))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(m.Types[j].Capacity[d], m.Types[i].Capacity[d]) })
		need, count := max(del, pick), int64(0)
		for _, i := range order {
			size := int64(m.Types[i].Capacity[d])
			if need <= 0 || size <= 0 {
				break
			}
			n := min(int64(m.Types[i].Count), (need+size-1)/size)
			need, count = need-n*size, count+n
		}
		least = max(least, int(count))
	}
	return least
}

func (k *VehicleType) Leaving(depot int32) TimeSegment {
	for i, d := range k.Reloads {
		if d == depot {
			return k.reloadSegs[i]
		}
	}
	return TimeSegment{Early: 1, Late: 0}
}
