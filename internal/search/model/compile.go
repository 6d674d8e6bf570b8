package model

import (
	"math"

	"haul/internal/vrp"
)

// Building the search's model of a problem. Every field of vrp.Problem is read here; the constraint
// of a field that is overlooked would not be kept.

// Compile compiles a problem that has been checked. The model has no neighbour lists, and no scale:
// scale sets that from the lists.
func Compile(p *vrp.Problem) *Compiled {
	m := &Compiled{P: p, Nodes: len(p.Demand), Depots: p.DepotCount(), Dims: 1 + len(p.Dimensions),
		Ordered: p.Backhauls}
	if p.LIFO {
		m.Traits.Parts |= LIFO
	}
	if p.Shipments != nil {
		m.Traits.Parts |= Shipments
	}
	var d demands
	m.units()
	m.readPlaces(&d)
	m.readTasks(&d)
	m.readKinds(&d)
	m.readTraits(d)
	m.readSegments()
	return m
}

func value(list []float64, i int) float64 {
	if list == nil {
		return 0
	}
	return list[i]
}

// amount is 0 in dimensions that a list does not reach.
func amount(list []int32, i int) int32 {
	if i >= len(list) {
		return 0
	}
	return list[i]
}

func (m *Compiled) readPlaces(d *demands) {
	p := m.P
	m.Locations = make([]Location, m.Nodes+1)
	m.Amounts = make([]LoadSegment, (m.Nodes+1)*m.Dims)
	m.Side = make([]uint8, m.Nodes+1)
	for v := range m.Locations {
		at := &m.Locations[v]
		at.Late, at.Representative = Endless, int32(v)
		if v == m.Nodes {
			continue // nowhere
		}
		at.Service = UpUnits(value(p.Service, v), m.TimeUnit)
		if p.Windows != nil && len(p.Windows[v]) > 0 {
			ws := p.Windows[v]
			at.Early, at.Late = UpUnits(ws[0].From, m.TimeUnit), downUnits(ws[len(ws)-1].To, m.TimeUnit)
			d.timed = true
			d.walks = d.walks || len(ws) > 1
		}
		if v < m.Depots {
			continue
		}
		at.Required = p.Optional == nil || !p.Optional[v]
		at.Release = UpUnits(value(p.Release, v), m.TimeUnit)
		at.Price = value(p.Prize, v)
		for k := range m.Dims {
			d, q := p.Demand, p.Pickup
			if k > 0 {
				d, q = p.Dimensions[k-1].Delivery, p.Dimensions[k-1].Pickup
			}
			a := single(amount(d, v), amount(q, v))
			m.Amounts[v*m.Dims+k] = a
			if a.Pick > 0 {
				m.Side[v] |= 1
			}
			if a.Del > 0 {
				m.Side[v] |= 2
			}
		}
		at.Delivery, at.Pickup = m.Amounts[v*m.Dims].Del, m.Amounts[v*m.Dims].Pick
	}
}

// readTasks joins shipments and groups.
func (m *Compiled) readTasks(d *demands) {
	p := m.P
	m.Members, m.Shipment = make([][]int32, m.Nodes), make([][]int32, m.Nodes)
	m.Loss = make([]float64, m.Nodes)
	for _, s := range p.Shipments {
		a, b := &m.Locations[s.Pickup], &m.Locations[s.Delivery]
		a.Partner, b.Partner, b.Representative, b.IsDelivery = s.Delivery, s.Pickup, s.Pickup, true
		m.Shipment[s.Pickup], m.Shipment[s.Delivery] = s.Amount, s.Amount
		a.Price += b.Price
		a.Required = a.Required || b.Required
		for k := range m.Dims {
			q := amount(s.Amount, k)
			// on board from the one to the other, beside what the place gets or gives itself
			from, to := &m.AmountsOf(s.Pickup)[k], &m.AmountsOf(s.Delivery)[k]
			*from = from.Join(LoadSegment{Pick: q, Peak: q})
			*to = LoadSegment{Pick: -q}.Join(*to)
		}
		d.order = true
	}
	for _, g := range p.Groups {
		if len(g.Members) == 0 {
			continue
		}
		lead := g.Members[0]
		m.Members[lead] = g.Members
		all := 0.0
		for _, v := range g.Members {
			all += m.Locations[v].Price
		}
		for _, v := range g.Members {
			m.Locations[v].Representative, m.Locations[v].Required = lead, g.Required
			m.Loss[v] = all - m.Locations[v].Price
		}
		m.Locations[lead].Price = all
	}
	m.Row = make([]int32, m.Nodes)
	for v := m.Depots; v < m.Nodes; v++ {
		if m.Locations[v].Representative == int32(v) {
			m.Tasks = append(m.Tasks, int32(v))
			m.Row[v] = int32(len(m.Tasks))
		}
	}
}

// Scale sets the unit of temperature, and the price of leaving out a required customer.
func (m *Compiled) Scale() {
	k := &m.Types[0]
	var sum float64
	count := 0
	for v := int32(m.Depots); int(v) < m.Nodes; v++ {
		if list := m.NearOf(v); len(list) > 0 {
			sum += float64(k.Distances.At(v, list[0])+k.Distances.At(v, list[len(list)/8])) / 2 * max(k.PerDist, k.PerDur*m.TimeUnit/m.DistUnit)
			count++
		}
	}
	m.Leg = max(1e-9, sum/float64(max(count, 1)))
	for i := range m.Types {
		k := &m.Types[i]
		for _, v := range m.Tasks {
			far := float64(k.Distances.At(k.Start, v))*k.PerDist + float64(k.Distances.At(v, k.End))*k.PerDist
			if m.Traits.Time.Timed() {
				far += float64(int64(k.Durations.At(k.Start, v)+k.Durations.At(v, k.End))+m.Locations[v].Service) * k.PerDur
			}
			m.Upper = max(m.Upper, k.Fixed+far)
		}
	}
	if m.P.Windows != nil {
		m.Spans = make([][]Span, m.Nodes)
		for v := range m.Spans {
			m.Spans[v], _ = m.SpansOf(m.P.Windows[v], 0, Endless)
		}
	}
	m.setOverloadWeights()
	m.LeastPerDist = math.Inf(1)
	for i := range m.Types {
		m.LeastPerDist = min(m.LeastPerDist, m.Types[i].PerDist)
	}
	if m.P.Objective == vrp.FewestVehicles {
		// Each vehicle costs more than any detour that saves it.
		extra := m.Upper*float64(len(m.Tasks)) + 1
		for i := range m.Types {
			m.Types[i].Own = m.Types[i].Fixed
			m.Types[i].Fixed += extra
		}
		m.Upper += extra
	}
	m.Upper = 4*m.Upper + 100*m.Leg
	for v := m.Depots; v < m.Nodes; v++ {
		at := &m.Locations[v]
		if at.Required {
			at.Price = m.Upper + at.Price
			if m.P.Priority != nil {
				at.Price *= 1 + float64(max(0, m.P.Priority[v]))
			}
		}
	}
}
