package vrp

import (
	"encoding/json"
	"fmt"
	"io"

	"haul/internal/vrp/files"
)

// NewProblem makes a problem of a model; the model may be changed or thrown away afterwards.
func NewProblem(m Model) (*Problem, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("vrp: %w", err) // a number that JSON does not have: NaN, or one without end
	}
	d, err := files.ReadDraft(text, nil)
	if err != nil {
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
	text, err := files.AppendProblem([]byte{'{'}, p.inner)
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(append(text, '}'), &m)
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
