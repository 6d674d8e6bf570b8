package vrp

import (
	"encoding/json"
	"fmt"
	"io"

	"haul/internal/vrp/files"
)

// Model is a problem with every part that Haul knows. The zero value of a part asks for nothing.
// Lists by place have one entry per place, depots first; customers are named by their number there.
// It is Haul's own JSON (docs/formats.md), field by field: json.Marshal writes what haul solve, the
// server and Python read.
type Model struct {
	Name        string      `json:"name,omitempty"`
	Coords      [][]float64 `json:"coords,omitempty"`    // x and y by place
	Distance    string      `json:"distance,omitempty"`  // exact (""), rounded, ceil, floor, metres, dimacs, thousandths, geo, att
	Distances   [][]float64 `json:"distances,omitempty"` // in place of Distance: from each place to each
	Durations   [][]float64 `json:"durations,omitempty"` // with Distances: how long each takes
	IDs         []string    `json:"ids,omitempty"`       // by place
	Names       []string    `json:"names,omitempty"`     // by place: what people call it
	Fractions   []int32     `json:"fractions,omitempty"` // per dimension: into how many parts a unit of the amounts is cut
	Clock       float64     `json:"clock,omitempty"`     // units of time per minute, where times are those of a day
	Depots      int         `json:"depots,omitempty"`    // how many of the first places; 0: 1
	Speed       float64     `json:"speed,omitempty"`     // distance per unit of time; 0: 1
	Demands     []int32     `json:"demands"`             // by place: what is delivered; 0 at depots
	Pickups     []int32     `json:"pickups,omitempty"`
	Dimensions  []Dimension `json:"dimensions,omitempty"` // of load beyond the first
	Capacity    int32       `json:"capacity,omitempty"`   // where Fleet is nil, as are the next three
	Vehicles    int         `json:"vehicles,omitempty"`   // routes at most; 0: any number
	MaxDuration float64     `json:"max_duration,omitempty"`
	Open        bool        `json:"open,omitempty"` // routes end at their last customer
	Fleet       []Vehicle   `json:"fleet,omitempty"`
	Profiles    []Profile   `json:"profiles,omitempty"`
	Windows     [][]Span    `json:"windows,omitempty"` // by place: when service may begin
	Service     []float64   `json:"service,omitempty"`
	Setup       []float64   `json:"setup,omitempty"`
	Release     []float64   `json:"release,omitempty"`
	Optional    []bool      `json:"optional,omitempty"`
	Prizes      []float64   `json:"prizes,omitempty"`
	Groups      []Group     `json:"groups,omitempty"`
	Shipments   []Shipment  `json:"shipments,omitempty"`
	LIFO        bool        `json:"lifo,omitempty"`
	Skills      [][]int32   `json:"skills,omitempty"` // by place: those that its vehicle must have
	Priority    []int       `json:"priority,omitempty"`
	Backhauls   string      `json:"backhauls,omitempty"` // mixed (""), last, after_linehaul
	Late        []float64   `json:"late,omitempty"`
	Objective   string      `json:"objective,omitempty"` // cost (""), vehicles, longest_route
}

// Span is a span of time, [from, to], or [from] where it has no end.
type Span []float64

// Vehicle is a vehicle type.
type Vehicle struct {
	Name         string   `json:"name,omitempty"`
	Count        int      `json:"count,omitempty"`    // 0: any number
	Capacity     []int32  `json:"capacity,omitempty"` // per dimension; nil: no limit
	Start        int      `json:"start,omitempty"`    // a depot; -1: at its first customer
	End          int      `json:"end,omitempty"`      // a depot; -1: at its last customer
	Shift        Span     `json:"shift,omitempty"`
	LatestStart  *float64 `json:"latest_start,omitempty"`
	MaxDuration  *float64 `json:"max_duration,omitempty"`
	MaxDistance  *float64 `json:"max_distance,omitempty"`
	MaxStops     int      `json:"max_stops,omitempty"`
	FixedCost    float64  `json:"fixed_cost,omitempty"`
	DistanceCost *float64 `json:"distance_cost,omitempty"` // nil: 1
	DurationCost float64  `json:"duration_cost,omitempty"`
	Profile      int      `json:"profile,omitempty"`
	Skills       []int32  `json:"skills,omitempty"`
	Allowed      []int32  `json:"allowed,omitempty"` // customers; nil: all
	Reloads      []int    `json:"reloads,omitempty"` // depots
	MaxReloads   int      `json:"max_reloads,omitempty"`
	Breaks       []Break  `json:"breaks,omitempty"`
	InitialLoad  []int32  `json:"initial_load,omitempty"`
}

// Break is a rest of a vehicle, taken at a stop.
type Break struct {
	Windows  []Span  `json:"windows"`
	Duration float64 `json:"duration,omitempty"`
	MaxLoad  []int32 `json:"max_load,omitempty"`
}

// Profile has the matrices of a kind of vehicle.
type Profile struct {
	Name      string      `json:"name,omitempty"`
	Distances [][]float64 `json:"distances"`
	Durations [][]float64 `json:"durations,omitempty"`
}

// Dimension is one more kind of load, by place.
type Dimension struct {
	Name    string  `json:"name,omitempty"`
	Demands []int32 `json:"demands,omitempty"`
	Pickups []int32 `json:"pickups,omitempty"`
}

// Group is customers of which one is visited, or where it is not Required at most one.
type Group struct {
	Name     string  `json:"name,omitempty"`
	Members  []int32 `json:"members"`
	Required bool    `json:"required,omitempty"`
}

// Shipment is an amount that one vehicle picks up at one customer and delivers at another.
type Shipment struct {
	Pickup   int32   `json:"pickup"`
	Delivery int32   `json:"delivery"`
	Amount   []int32 `json:"amount,omitempty"`
}

// NewProblem makes a problem of a model; the model may be changed or thrown away afterwards.
func NewProblem(m Model) (*Problem, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("vrp: %w", err) // a number that JSON does not have: NaN, or one without end
	}
	var d files.Document
	if err := files.Decode(text, &d); err != nil {
		return nil, fmt.Errorf("vrp: %w", err)
	}
	p, err := d.Problem()
	if err != nil {
		return nil, fmt.Errorf("vrp: %w", err)
	}
	return wrap(p)
}

// Model is the problem part by part: NewProblem gives it back as it was.
func (p *Problem) Model() (Model, error) {
	var m Model
	text, err := json.Marshal(files.FromProblem(p.inner))
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(text, &m)
	return m, err
}

// ReadJSON reads a problem in Haul's own JSON; name stands in errors.
func ReadJSON(r io.Reader, name string) (*Problem, error) {
	p, err := files.ReadJSON(r, name)
	if err != nil {
		return nil, err
	}
	return wrap(p)
}

// WriteJSON writes the problem in Haul's own JSON.
func (p *Problem) WriteJSON(w io.Writer) error { return files.WriteJSON(w, p.inner) }
