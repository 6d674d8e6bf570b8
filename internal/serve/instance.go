package serve

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"haul/internal/draw"
	"haul/internal/solve"
	"haul/internal/vrp"
	"haul/internal/vrp/files"
	"haul/internal/vrp/testset"
)

// instance is a problem in the API's form: Haul's own JSON.
type instance struct{ draft *files.Draft }

// problem checks what a client sent and gives it its type.
func (in *instance) problem(l *Limits) (*vrp.Problem, error) {
	if n, most := in.draft.Customers(), l.Customers; n > most {
		return nil, refuse(http.StatusUnprocessableEntity, "%d customers are more than the %d that are solved here: use haul solve", n, most)
	}
	p, err := in.draft.Problem()
	// A problem within the limits is checked in time that its lists bound.
	if err == nil {
		p.Name = or(line(p.Name), "instance")
		err = p.Within(l.Input)
	}
	if err == nil {
		err = p.Check()
	}
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	return p, nil
}

// known is a problem with what its file says of it.
type known struct {
	problem   *vrp.Problem
	Index     int      `json:"index"`
	Count     int      `json:"count"`                // instances in the file
	BestKnown float64  `json:"best_known,omitempty"` // that the file states
	Notes     []string `json:"notes,omitempty"`      // what of the file was not read
}

// MarshalJSON writes the keys of the problem and of its file as one object.
func (k *known) MarshalJSON() ([]byte, error) {
	type beside known
	more, err := json.Marshal((*beside)(k))
	if err != nil {
		return nil, err
	}
	text, err := files.AppendProblem([]byte{'{'}, k.problem)
	return append(append(text, ','), more[1:]...), err
}

var instanceRoutes = []route{
	{at: "POST /api/v1/instances", id: "readInstance", tag: "routes", text: "Reads a file of any format that haul solve reads, or one instance of a file of many",
		more: "`missing` of a refusal names what a table lacks, `notes` the columns that were not read.",
		params: []param{{"name", "query", "string", "The file's name; its ending tells what it is. Where it does not, its first bytes do."},
			{"capacity", "query", "integer min=0 max=2147483647", "Of a table that states none."},
			{"index", "query", "integer min=0 max=2147483647 default=0", "Of the instance in a file of many."},
			{"distance", "query", "string enum=rounded|exact|dimacs|ceil|trunc", "How Euclidean distances are rounded, whatever the file states."},
			{"speed", "query", "number above=0 max=2147483647", "Of the vehicles of a table: km/h where places have lat and lon, else distance per unit of time."},
			{"times", "query", "string enum=minutes|seconds|hours default=minutes", "What plain numbers of time in a table count."},
			{"ignore", "query", "string", "Columns of a table that are not read, with commas between; * for all that are not known."}},
		takes: []media{{kind: octets, of: aFile}}, do: answers((*Server).readInstance)},
	{at: "GET /api/v1/instances/random", id: "drawInstance", tag: "routes", text: "Draws an instance on the unit square",
		params: []param{{"customers", "query", "integer min=1 max=5000 default=20", "How many."}, {"capacity", "query", "integer min=1 max=2147483647 default=30", "Of a vehicle."},
			{"seed", "query", "integer int64 min=0 default=1", "Equal seeds draw equal instances."}},
		do: answers((*Server).randomInstance)},
	{at: "POST /api/v1/export/{format}", id: "exportRoutes", tag: "routes", text: "Writes routes as a file", more: "The routes are judged first. `routes` are needed for every format but vrp.",
		params: []param{{"format", "path", "string enum=" + strings.Join(sortedKeys(formats), "|"), "Of the file."}}, do: writes((*Server).export),
		takes: []media{{kind: "application/json", of: exportRequest{}, example: `{"coords":[[0,0],[10,0],[0,10],[-10,0],[0,-10]],"demands":[0,5,5,5,5],"capacity":10,"routes":[[1,2],[3,4]]}`}},
		gives: []reply{{status: 200, text: "The file.", content: []media{{kind: "text/plain"}, {kind: "text/csv"}, {kind: "application/geo+json", of: anything},
			{kind: "application/json", of: anything}, {kind: "image/svg+xml"}}}}},
}

// readInstance reads a file of any format that haul solve reads, or one instance of a file of many.
// Its name is looked at for its ending and is no path.
func (s *Server) readInstance(w http.ResponseWriter, r *http.Request) (*known, error) {
	// What comes in slowly keeps a place among the files, which bound the memory that they take,
	// and none among those who compute.
	leaveFiles, err := s.files.enter(r.Context())
	if err != nil {
		return nil, err
	}
	defer leaveFiles()
	body, _, err := s.body(w, r, s.limits.File, s.limits.JSONTime)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	leave, err := s.quick.enter(r.Context())
	if err != nil {
		return nil, err
	}
	defer leave()
	q := r.URL.Query()
	if err := onlyKnown(q, "name", "capacity", "index", "distance", "speed", "times", "ignore"); err != nil {
		return nil, err
	}
	name := line(path.Base(strings.ReplaceAll(or(q.Get("name"), "file"), `\`, "/")))
	number := func(key string, d, most int) (int, error) {
		if !q.Has(key) {
			return d, nil
		}
		v := q.Get(key)
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > most {
			return 0, refuse(http.StatusBadRequest, "%s is %q: a whole number from 0 to %d is needed", key, line(v), most)
		}
		return n, nil
	}
	index, err := number("index", 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	o := files.Options{Times: q.Get("times"), Limits: s.limits.Input, Context: r.Context()}
	if o.Times == "minutes" {
		o.Times = ""
	}
	if err := files.KnownTimes(q.Get("times")); err != nil || q.Has("times") && q.Get("times") == "" {
		return nil, refuse(http.StatusBadRequest, "times is %q: use minutes, seconds or hours", line(q.Get("times")))
	}
	if q.Has("ignore") {
		o.Ignore = strings.Split(q.Get("ignore"), ",")
	}
	capacity, err := number("capacity", 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	o.Capacity = int32(capacity)
	if o.Speed, err = strconv.ParseFloat(or(q.Get("speed"), "0"), 64); err != nil || !(o.Speed >= 0 && o.Speed <= math.MaxInt32) || q.Has("speed") && o.Speed == 0 {
		return nil, refuse(http.StatusBadRequest, "speed is %q: a number above 0 is needed", line(q.Get("speed")))
	}
	if o.Distance, err = files.ParseDistance(q.Get("distance")); err != nil || q.Has("distance") && o.Distance == files.AsStated {
		return nil, refuse(http.StatusBadRequest, "distance is %q: use exact, rounded, dimacs, ceil or trunc", line(q.Get("distance")))
	}
	found := &known{Count: 1}
	var p *vrp.Problem
	if ext := strings.ToLower(path.Ext(name)); slices.Contains(setEndings, ext) {
		if p, err = found.testSet(text, ext, index); err != nil {
			return nil, err
		}
	} else if index > 0 {
		return nil, refuse(http.StatusUnprocessableEntity, "index is %d: %s is no file of many instances (%s)", index, name, strings.Join(setEndings, ", "))
	} else if p, err = files.ReadProblem(bytes.NewReader(text), name, o); err != nil {
		return nil, unread(name, err)
	}
	p.Name = or(p.Name, strings.TrimSuffix(name, path.Ext(name)))
	if p.N() > s.limits.Customers {
		return nil, refuse(http.StatusUnprocessableEntity, "%s has %d customers, more than the %d that are shown here: use haul solve", p.Name, p.N(), s.limits.Customers)
	}
	found.problem, found.Notes = p, p.Notes
	return found, nil
}

// unread says why a file is no instance, and which parameter would make it one.
func unread(name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	p := &problem{Status: http.StatusUnprocessableEntity, Detail: err.Error()}
	switch {
	case errors.Is(err, files.ErrCapacity):
		p.Missing, p.Detail = "capacity", name+" does not say what a vehicle carries: give capacity"
	case errors.Is(err, files.ErrSpeed):
		p.Missing, p.Detail = "speed", name+" has times, and does not say how long a way takes: give speed, in km/h"
	}
	return p
}

// setEndings are those of files that hold many instances.
var setEndings = []string{".npz", ".pkl", ".pickle", ".pt", ".pth"}

// maxArrays bounds what such a file may unpack to.
const maxArrays = 128 << 20

// testSet takes one instance out of a file of many.
func (k *known) testSet(text []byte, ext string, index int) (*vrp.Problem, error) {
	if z, err := zip.NewReader(bytes.NewReader(text), int64(len(text))); err == nil {
		total := uint64(0)
		for _, f := range z.File { // archive/zip ends a file that holds more than it states
			if total += f.UncompressedSize64; f.UncompressedSize64 > maxArrays || total > maxArrays {
				return nil, refuse(http.StatusRequestEntityTooLarge, "the arrays unpack to more than %s", size(maxArrays))
			}
		}
	}
	set, err := testset.Read(bytes.NewReader(text), int64(len(text)), ext)
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	if index >= len(set.Problems) {
		return nil, refuse(http.StatusUnprocessableEntity, "index is %d: the file has the instances 0 to %d", index, len(set.Problems)-1)
	}
	k.Index, k.Count = index, len(set.Problems)
	if set.Reference != nil {
		k.BestKnown = set.Reference[index]
	}
	return set.Problems[index], nil
}

// onlyKnown refuses parameters that a request does not have, which would be ignored silently:
// the page's own address, for example, has n where the API has customers.
func onlyKnown(q url.Values, names ...string) error {
	for _, key := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(names, key) {
			return refuse(http.StatusBadRequest, "there is no parameter %q: they are %s", line(key), strings.Join(names, ", "))
		}
		if len(q[key]) > 1 {
			return refuse(http.StatusBadRequest, "the parameter %s is given %d times", key, len(q[key]))
		}
	}
	return nil
}

// randomInstance draws one as haul gen does.
func (s *Server) randomInstance(_ http.ResponseWriter, r *http.Request) (*known, error) {
	q := r.URL.Query()
	if err := onlyKnown(q, "customers", "capacity", "seed"); err != nil {
		return nil, err
	}
	ask := struct{ customers, capacity, seed int }{20, 30, 1}
	for key, v := range map[string]*int{"customers": &ask.customers, "capacity": &ask.capacity, "seed": &ask.seed} {
		if text := q.Get(key); q.Has(key) {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return nil, refuse(http.StatusBadRequest, "%s is %q: a whole number is needed", key, line(text))
			}
			*v = n
		}
	}
	if ask.capacity > math.MaxInt32 {
		return nil, refuse(http.StatusUnprocessableEntity, "capacity is %d: up to %d can be asked for", ask.capacity, math.MaxInt32)
	}
	if ask.customers > s.limits.Customers {
		return nil, refuse(http.StatusUnprocessableEntity, "%d customers are more than the %d that are solved here", ask.customers, s.limits.Customers)
	}
	src := vrp.Source{Seed: uint64(ask.seed), Distribution: vrp.Uniform, N: ask.customers, Capacity: int32(ask.capacity), DemandMin: 1, DemandMax: int32(min(9, ask.capacity))}
	if err := src.Check(); err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	batch := vrp.NewBatch(1, src.N, src.Capacity)
	src.Fill(batch, 0)
	p := batch.Problem(0)
	p.Name = fmt.Sprintf("random-%d-seed-%d", src.N, ask.seed)
	return &known{problem: p, Count: 1}, nil
}

// exportRequest is an instance and its routes: what this server drew, and what it answered, side by
// side, are one.
type exportRequest struct {
	instance
	solved
	Title string `json:"title,omitempty"` // under the picture
}

// judge checks the routes by the validator. As many required customers as the answer stated may be
// on none: the file lists them, as the answer did.
func (ask *exportRequest) judge(p *vrp.Problem) error {
	left := 0
	for _, bad := range vrp.Violations(p, vrp.Solution{Routes: ask.Routes, Types: ask.Types}) {
		if bad.Rule != vrp.VisitedAtAll || ask.Missing == 0 {
			return bad
		}
		left++
	}
	if left != ask.Missing {
		return fmt.Errorf("%d required customers are on no route, and unserved_required is %d", left, ask.Missing)
	}
	return nil
}

// formats are the files that routes leave as.
var formats = map[string]struct {
	kind  string
	write func(w io.Writer, p *vrp.Problem, s vrp.Solution, title string) error
}{
	"sol": {"text/plain; charset=utf-8", func(w io.Writer, p *vrp.Problem, s vrp.Solution, _ string) error {
		return files.WriteSolution(w, p, s, p.Cost(s))
	}},
	"csv": {"text/csv; charset=utf-8", func(w io.Writer, p *vrp.Problem, s vrp.Solution, _ string) error {
		why := solve.Reasons(p, s)
		if !files.Timed(p) && why == nil {
			return files.WriteSolutionCSV(w, p, s)
		}
		plan, err := files.NewPlan(p, s, why)
		if err != nil {
			return err
		}
		return files.WritePlanCSV(w, p, plan)
	}},
	"geojson": {"application/geo+json", func(w io.Writer, p *vrp.Problem, s vrp.Solution, _ string) error {
		why := solve.Reasons(p, s)
		if !files.Timed(p) && why == nil {
			return files.WriteSolutionGeoJSON(w, p, s)
		}
		plan, err := files.NewPlan(p, s, why)
		if err != nil {
			return err
		}
		return files.WritePlanGeoJSON(w, p, plan)
	}},
	"json": {"application/json", func(w io.Writer, p *vrp.Problem, s vrp.Solution, _ string) error {
		plan, err := files.NewPlan(p, s, solve.Reasons(p, s))
		if err != nil {
			return err
		}
		return files.WriteSolutionJSON(w, p, s, plan)
	}},
	"svg": {"image/svg+xml", func(w io.Writer, p *vrp.Problem, s vrp.Solution, t string) error {
		return draw.Routes(w, draw.SVG, p, s, t)
	}},
	"vrp": {"text/plain; charset=utf-8", func(w io.Writer, p *vrp.Problem, _ vrp.Solution, _ string) error { return files.WriteProblem(w, p) }},
}

// export writes routes as the file that haul solve --out would write. The validator judges them
// first.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("format")
	format, ok := formats[name]
	if !ok {
		s.fail(w, refuse(http.StatusNotFound, "there is no format %q: use %s", line(name), strings.Join(sortedKeys(formats), ", ")))
		return
	}
	var ask exportRequest
	err := s.decodeProblem(w, r, &ask.instance, &ask)
	var p *vrp.Problem
	if err == nil {
		p, err = ask.problem(&s.limits)
	}
	if err == nil {
		// Routes of a problem that no method knows cannot be judged.
		if _, bad := solve.Choose(p, solve.Search, nil); bad != nil {
			err = asRefused(bad)
		}
	}
	if err == nil && name != "vrp" {
		if bad := ask.judge(p); bad != nil {
			err = refuse(http.StatusUnprocessableEntity, "these are no routes of the instance: %s", bad)
		}
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	var out bytes.Buffer
	if err := format.write(&out, p, vrp.Solution{Routes: ask.Routes, Types: ask.Types}, line(ask.Title)); err != nil {
		s.fail(w, refuse(http.StatusUnprocessableEntity, "%s", err))
		return
	}
	w.Header().Set("Content-Type", format.kind)
	w.Header().Set("Content-Disposition", "attachment; filename=\"routes."+name+"\"")
	_, _ = w.Write(out.Bytes())
}
