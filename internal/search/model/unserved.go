package model

import "slices"

// Required customers that are on no route. One visit serves a whole group, and both halves of a
// shipment are listed.

// Without is those of the customers that are required: not optional, and of a required group none
// visited, in which case its first member stands for it.
func (m *Compiled) Without(unserved []int32) []int32 {
	out := []int32{}
	missing := map[int32]int{}
	for _, v := range unserved {
		lead := m.Locations[v].Representative
		if list := m.Members[lead]; list != nil {
			if missing[lead]++; missing[lead] == len(list) && m.Locations[lead].Required {
				out = append(out, lead)
			}
			continue
		}
		if m.Locations[v].Required {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
