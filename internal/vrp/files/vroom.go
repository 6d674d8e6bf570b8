package files

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"haul/internal/limits"
	"haul/internal/vrp"
)

// VROOM's JSON (github.com/VROOM-Project/vroom, docs/API.md). What a reader could break: each
// task is a place of its own after the depots, jobs first, then the two halves of every
// shipment, and VROOM.tasks has them in that order. The types below have every key of the
// format; a key that is not honoured is refused by name, in check or where it would be used.

// VROOM is a problem that came in VROOM's JSON, with what its answer needs.
type VROOM struct {
	Problem *vrp.Problem
	Start   *vrp.Solution // what the vehicles' steps say; nil: nothing
	Plan    bool          // the steps are the plan: times and violations are asked for, nothing is solved
	Blind   bool          // coordinates are no map: they tell places apart and nothing else
	Seconds float64       // of options.l; 0: not said
	Threads int           // of options.t; 0: not said

	tasks    []vroomTask
	vehicles []vroomVehicle
	places   []vroomPlace // of the depots
	byType   [][]int      // vehicles of each type
	amounts  int          // dimensions
	limits   *limits.Set
	legs     func(profile string, factor float64, a, b vroomPlace) (duration, distance float64)
	measured bool // distances are known
}

type vroomInput struct {
	Jobs      []vroomJob             `json:"jobs"`
	Shipments []vroomShipment        `json:"shipments"`
	Vehicles  []vroomVehicle         `json:"vehicles"`
	Matrices  map[string]vroomMatrix `json:"matrices"`
	Matrix    [][]float64            `json:"matrix"` // of older versions: durations of every profile
	Options   vroomOptions           `json:"options"`
}

// vroomOptions are those that vroom-express takes beside a problem.
type vroomOptions struct {
	Geometry bool    `json:"g"` // left out of answers
	Plan     bool    `json:"c"`
	Explore  int     `json:"x"` // how thorough VROOM is; the time says it here
	Threads  int     `json:"t"`
	Limit    float64 `json:"l"` // seconds
}

type vroomMatrix struct {
	Durations [][]float64 `json:"durations"`
	Distances [][]float64 `json:"distances"`
	Costs     [][]float64 `json:"costs"`
}

// vroomPlace is where a task or a vehicle's end is.
type vroomPlace struct {
	Location []float64 `json:"location,omitempty"`
	Index    *int      `json:"location_index,omitempty"`
}

type vroomJob struct {
	vroomPlace
	ID             int64           `json:"id"`
	Description    string          `json:"description"`
	Setup          float64         `json:"setup"`
	Service        float64         `json:"service"`
	SetupPerType   json.RawMessage `json:"setup_per_type"`
	ServicePerType json.RawMessage `json:"service_per_type"`
	Delivery       []int32         `json:"delivery"`
	Amount         []int32         `json:"amount"` // of older versions: delivery
	Pickup         []int32         `json:"pickup"`
	Skills         []int32         `json:"skills"`
	Priority       int             `json:"priority"`
	Windows        []Span          `json:"time_windows"`
}

type vroomShipment struct {
	Pickup   vroomHalf `json:"pickup"`
	Delivery vroomHalf `json:"delivery"`
	Amount   []int32   `json:"amount"`
	Skills   []int32   `json:"skills"`
	Priority int       `json:"priority"`
}

type vroomHalf struct {
	vroomPlace
	ID             int64           `json:"id"`
	Description    string          `json:"description"`
	Setup          float64         `json:"setup"`
	Service        float64         `json:"service"`
	SetupPerType   json.RawMessage `json:"setup_per_type"`
	ServicePerType json.RawMessage `json:"service_per_type"`
	Windows        []Span          `json:"time_windows"`
}

type vroomVehicle struct {
	ID            int64        `json:"id"`
	Profile       string       `json:"profile"`
	Description   string       `json:"description"`
	Start         []float64    `json:"start"`
	StartIndex    *int         `json:"start_index"`
	End           []float64    `json:"end"`
	EndIndex      *int         `json:"end_index"`
	Capacity      []int32      `json:"capacity"`
	Costs         *vroomCosts  `json:"costs"`
	Skills        []int32      `json:"skills"`
	Type          string       `json:"type"`
	Window        Span         `json:"time_window"`
	Breaks        []vroomBreak `json:"breaks"`
	SpeedFactor   *float64     `json:"speed_factor"`
	MaxTasks      *int         `json:"max_tasks"`
	MaxTravelTime *float64     `json:"max_travel_time"`
	MaxDistance   *float64     `json:"max_distance"`
	Steps         []vroomStep  `json:"steps"`
}

type vroomCosts struct {
	Fixed       float64  `json:"fixed"`
	PerHour     *float64 `json:"per_hour"`
	PerKm       float64  `json:"per_km"`
	PerTaskHour float64  `json:"per_task_hour"`
}

type vroomBreak struct {
	ID          int64   `json:"id"`
	Windows     []Span  `json:"time_windows"`
	Service     float64 `json:"service"`
	Description string  `json:"description"`
	MaxLoad     []int32 `json:"max_load"`
}

type vroomStep struct {
	Type          string   `json:"type"`
	ID            int64    `json:"id"`
	ServiceAt     *float64 `json:"service_at"`
	ServiceAfter  *float64 `json:"service_after"`
	ServiceBefore *float64 `json:"service_before"`
}

// vroomTask is a job or a shipment's half, as an answer tells of it.
type vroomTask struct {
	kind     string // job, pickup, delivery
	half     vroomHalf
	priority int
	skills   []int32
	delivery []int32
	pickup   []int32
}

// vroomSpeed is how fast vehicles are where the input has no matrices: 50 km/h along great circles.
const vroomSpeed = 50 / 3.6

// LooksVROOM reports whether JSON is VROOM's.
func LooksVROOM(text []byte) bool {
	kind, _ := jsonKind(text)
	return kind == "vroom"
}

// ReadVROOM reads a problem in VROOM's JSON; errors name the place in it. most bounds the tasks; 0:
// any number.
func ReadVROOM(text []byte, most int, l *limits.Set) (*VROOM, error) {
	var in vroomInput
	if err := Decode(text, &in); err != nil {
		return nil, err
	}
	if n := len(in.Jobs) + 2*len(in.Shipments); most > 0 && n > most {
		return nil, fmt.Errorf("%d tasks are more than the %d that are solved here: use haul solve", n, most)
	}
	v := &VROOM{vehicles: in.Vehicles, Plan: in.Options.Plan, Seconds: in.Options.Limit, Threads: in.Options.Threads, limits: l}
	if err := v.gather(&in); err != nil {
		return nil, err
	}
	if err := v.measure(&in); err != nil {
		return nil, err
	}
	if err := v.build(&in); err != nil {
		return nil, err
	}
	if err := v.start(); err != nil {
		return nil, err
	}
	if err := v.Problem.Check(); err != nil {
		return nil, err
	}
	return v, nil
}

// gather lists the tasks and refuses what contradicts itself.
func (v *VROOM) gather(in *vroomInput) error {
	if len(in.Vehicles) == 0 {
		return fmt.Errorf("vehicles is empty: at least one is needed")
	}
	if len(in.Jobs)+len(in.Shipments) == 0 {
		return fmt.Errorf("there are no jobs and no shipments: at least one is needed")
	}
	seen := map[string]bool{}
	add := func(where string, t vroomTask, amounts ...[]int32) error {
		name := fmt.Sprintf("%s %d", t.kind, t.half.ID)
		switch {
		case seen[name]:
			return fmt.Errorf("%s: id %d is given twice", where, t.half.ID)
		case t.half.SetupPerType != nil || t.half.ServicePerType != nil:
			return fmt.Errorf("%s: times per type of vehicle (setup_per_type, service_per_type) are not honoured", where)
		case t.half.Setup < 0 || t.half.Service < 0:
			return fmt.Errorf("%s: setup %g and service %g must not be below 0", where, t.half.Setup, t.half.Service)
		case t.priority < 0 || t.priority > 100:
			return fmt.Errorf("%s: priority is %d: from 0 to 100 is possible", where, t.priority)
		}
		seen[name] = true
		for _, list := range amounts {
			if err := v.dimension(where, list); err != nil {
				return err
			}
		}
		v.tasks = append(v.tasks, t)
		return nil
	}
	for i, j := range in.Jobs {
		where := fmt.Sprintf("jobs[%d]", i)
		delivery := j.Delivery
		if j.Amount != nil {
			if delivery != nil {
				return fmt.Errorf("%s: amount and delivery both say what is delivered: use delivery", where)
			}
			delivery = j.Amount
		}
		half := vroomHalf{vroomPlace: j.vroomPlace, ID: j.ID, Description: j.Description, Setup: j.Setup, Service: j.Service,
			SetupPerType: j.SetupPerType, ServicePerType: j.ServicePerType, Windows: j.Windows}
		if err := add(where, vroomTask{kind: "job", half: half, priority: j.Priority, skills: j.Skills, delivery: delivery, pickup: j.Pickup}, delivery, j.Pickup); err != nil {
			return err
		}
	}
	for i, s := range in.Shipments {
		where := fmt.Sprintf("shipments[%d]", i)
		if err := add(where+".pickup", vroomTask{kind: "pickup", half: s.Pickup, priority: s.Priority, skills: s.Skills, pickup: s.Amount}, s.Amount); err != nil {
			return err
		}
		if err := add(where+".delivery", vroomTask{kind: "delivery", half: s.Delivery, priority: s.Priority, skills: s.Skills, delivery: s.Amount}, s.Amount); err != nil {
			return err
		}
	}
	ids := map[int64]bool{}
	for i, c := range in.Vehicles {
		where := fmt.Sprintf("vehicles[%d]", i)
		if ids[c.ID] {
			return fmt.Errorf("%s: id %d is given twice", where, c.ID)
		}
		ids[c.ID] = true
		if err := v.dimension(where+".capacity", c.Capacity); err != nil {
			return err
		}
	}
	return nil
}

// dimension holds every list of amounts to one length.
func (v *VROOM) dimension(where string, list []int32) error {
	if len(list) == 0 {
		return nil
	}
	if v.amounts == 0 {
		v.amounts = len(list)
	}
	if len(list) != v.amounts {
		return fmt.Errorf("%s has amounts in %d dimensions, others in %d", where, len(list), v.amounts)
	}
	for _, a := range list {
		if a < 0 {
			return fmt.Errorf("%s has the amount %d: it must not be below 0", where, a)
		}
	}
	return nil
}

// measure says how far and how long the ways are: by matrices, else along great circles.
func (v *VROOM) measure(in *vroomInput) error {
	if in.Matrix != nil {
		if in.Matrices != nil {
			return fmt.Errorf("matrix and matrices both give durations: use matrices")
		}
		in.Matrices = map[string]vroomMatrix{}
		for i := range in.Vehicles { // it has no profiles: all vehicles drive by it
			in.Matrices[in.Vehicles[i].profile()] = vroomMatrix{Durations: in.Matrix}
		}
	}
	for name, m := range in.Matrices {
		where := "matrices." + name
		if m.Durations == nil {
			return fmt.Errorf("%s.durations is missing", where)
		}
		n := len(m.Durations)
		for key, rows := range map[string][][]float64{"durations": m.Durations, "distances": m.Distances, "costs": m.Costs} {
			lengths := make([]int, len(rows))
			for i, row := range rows {
				lengths[i] = len(row)
			}
			if err := fitsSquare(where+"."+key, lengths, n); rows != nil && err != nil {
				return err
			}
			for i, row := range rows {
				for j, x := range row {
					if !(x >= 0 && x <= math.MaxUint32) {
						return fmt.Errorf("%s.%s[%d][%d] is %g: from 0 to %d is possible", where, key, i, j, x, uint32(math.MaxUint32))
					}
				}
			}
		}
	}
	for i, c := range in.Vehicles {
		if _, ok := in.Matrices[c.profile()]; in.Matrices != nil && !ok {
			return fmt.Errorf("vehicles[%d] has the profile %q, of which matrices has nothing", i, c.profile())
		}
	}
	v.legs = func(profile string, factor float64, a, b vroomPlace) (float64, float64) {
		if m, ok := in.Matrices[profile]; ok {
			distance := 0.0
			if m.Distances != nil {
				distance = m.Distances[*a.Index][*b.Index]
			}
			return math.Round(m.Durations[*a.Index][*b.Index] / factor), distance
		}
		globe := vrp.Problem{Metric: vrp.GreatCircle, X: []float64{a.Location[0], b.Location[0]}, Y: []float64{a.Location[1], b.Location[1]}}
		d := globe.Dist(0, 1)
		return math.Round(d / vroomSpeed / factor), math.Round(d)
	}
	v.measured = in.Matrices == nil
	for _, m := range in.Matrices {
		v.measured = v.measured || m.Distances != nil
	}
	return nil
}

func (c *vroomVehicle) profile() string {
	if c.Profile == "" {
		return "car"
	}
	return c.Profile
}

func (c *vroomVehicle) factor() float64 {
	if c.SpeedFactor == nil {
		return 1
	}
	return *c.SpeedFactor
}

// known says whether a place can be measured from, and why not.
func (in *vroomInput) known(where string, at vroomPlace) error {
	if at.Location != nil && (len(at.Location) != 2 || math.Abs(at.Location[0]) > 180 || math.Abs(at.Location[1]) > 90) {
		return fmt.Errorf("%s: location is %v: longitude and latitude are needed, within ±180 and ±90", where, at.Location)
	}
	if in.Matrices == nil {
		if at.Location == nil {
			return fmt.Errorf("%s has no location, and there are no matrices", where)
		}
		return nil
	}
	if at.Index == nil {
		return fmt.Errorf("%s has no location_index, and there are matrices", where)
	}
	for name, m := range in.Matrices {
		if *at.Index < 0 || *at.Index >= len(m.Durations) {
			return fmt.Errorf("%s: location_index is %d, matrices.%s has %d rows", where, *at.Index, name, len(m.Durations))
		}
	}
	return nil
}

// key tells places apart.
func (at vroomPlace) key() string {
	if at.Index != nil {
		return strconv.Itoa(*at.Index)
	}
	return fmt.Sprint(at.Location)
}
