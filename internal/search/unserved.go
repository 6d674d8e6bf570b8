package search

import "slices"

// Required customers that are on no route. What a reader could break: one visit serves a whole
// group, and both halves of a shipment are listed.

// without is those of the customers that are required: not optional, and of a required group none
// visited, in which case its first member stands for it.
func (m *model) without(unserved []int32) []int32 {
	out := []int32{}
	missing := map[int32]int{}
	for _, v := range unserved {
		lead := m.places[v].lead
		if list := m.members[lead]; list != nil {
			if missing[lead]++; missing[lead] == len(list) && m.places[lead].required {
				out = append(out, lead)
			}
			continue
		}
		if m.places[v].required {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}
