package report

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"haul/internal/train"
)

// column is a column of a history whose rows are T: its name, and the field of a row that it holds.
type column[T any] struct {
	name  string
	field func(*T) any // a pointer to the field
}

// table is a history's columns; its first counts what the rows are in order of.
type table[T any] []column[T]

// epochs is the history of a routing run: the first ten columns as the original PyTorch program names them, then Haul's own. Costs are per
// customer by the mean that mean_type names; time_per_epoch is generation and steps, without validation and baseline.
var epochs = table[train.EpochReport]{
	{"epoch", func(r *train.EpochReport) any { return &r.Epoch }},
	{"train_loss", func(r *train.EpochReport) any { return &r.TrainLoss }},
	{"train_cost_arithmetic", func(r *train.EpochReport) any { return &r.TrainCPC }},
	{"val_cost_arithmetic", func(r *train.EpochReport) any { return &r.ValCPC }},
	{"learning_rate", func(r *train.EpochReport) any { return &r.LR }},
	{"temperature", func(r *train.EpochReport) any { return &r.Temperature }},
	{"time_per_epoch", func(r *train.EpochReport) any { return &r.Seconds }},
	{"baseline_type", func(r *train.EpochReport) any { return &r.BaselineType }},
	{"baseline_value", func(r *train.EpochReport) any { return &r.BaselineCPC }},
	{"mean_type", func(r *train.EpochReport) any { return &r.MeanType }},

	{"val_se", func(r *train.EpochReport) any { return &r.ValSE }},
	{"val_gap", func(r *train.EpochReport) any { return &r.ValGap }},
	{"val_gap_se", func(r *train.EpochReport) any { return &r.ValGapSE }},
	{"gap_to", func(r *train.EpochReport) any { return &r.GapTo }},
	{"gap_to_cpc", func(r *train.EpochReport) any { return &r.GapToCPC }},
	{"best", func(r *train.EpochReport) any { return &r.Best }},
	{"entropy", func(r *train.EpochReport) any { return &r.Entropy }},
	{"entropy_coef", func(r *train.EpochReport) any { return &r.EntropyCoef }},
	{"grad_norm", func(r *train.EpochReport) any { return &r.GradNorm }},
	{"baseline_updated", func(r *train.EpochReport) any { return &r.BaselineUpdated }},
	{"p_value", func(r *train.EpochReport) any { return &r.PValue }},
	{"instances", func(r *train.EpochReport) any { return &r.Instances }},
	{"val_seconds", func(r *train.EpochReport) any { return &r.ValSeconds }},
	{"baseline_seconds", func(r *train.EpochReport) any { return &r.BaselineSeconds }},
	{"instances_per_second", func(r *train.EpochReport) any { return &r.InstancesPerSecond }},
	{"flops_per_second", func(r *train.EpochReport) any { return &r.FLOPsPerSecond }},
	{"launches", func(r *train.EpochReport) any { return &r.Launches }},
	{"waits", func(r *train.EpochReport) any { return &r.Waits }},
	{"copies_in", func(r *train.EpochReport) any { return &r.CopiesIn }},
	{"copies_out", func(r *train.EpochReport) any { return &r.CopiesOut }},
	{"allocations", func(r *train.EpochReport) any { return &r.Allocations }},
}

func (c table[T]) header() []string {
	names := make([]string, len(c))
	for i := range c {
		names[i] = c[i].name
	}
	return names
}

// cells writes a row with as many digits as bring every number back.
func (c table[T]) cells(r *T) []string {
	out := make([]string, len(c))
	for i := range c {
		switch v := c[i].field(r).(type) {
		case *int:
			out[i] = strconv.Itoa(*v)
		case *int64:
			out[i] = strconv.FormatInt(*v, 10)
		case *float64:
			out[i] = strconv.FormatFloat(*v, 'g', -1, 64)
		case **float64:
			if *v != nil {
				out[i] = strconv.FormatFloat(**v, 'g', -1, 64)
			}
		case *bool:
			out[i] = strconv.FormatBool(*v)
		case *string:
			out[i] = *v
		}
	}
	return out
}

// parse reads what cells wrote.
func (c table[T]) parse(text []string) (r T, err error) {
	if len(text) != len(c) {
		return r, fmt.Errorf("%d cells, want %d", len(text), len(c))
	}
	for i, s := range text {
		switch v := c[i].field(&r).(type) {
		case *int:
			*v, err = strconv.Atoi(s)
		case *int64:
			*v, err = strconv.ParseInt(s, 10, 64)
		case *float64:
			*v, err = strconv.ParseFloat(s, 64)
		case **float64:
			if s != "" {
				*v = new(float64)
				**v, err = strconv.ParseFloat(s, 64)
			}
		case *bool:
			*v, err = strconv.ParseBool(s)
		case *string:
			*v = s
		}
		if err != nil {
			return r, fmt.Errorf("%s: %w", c[i].name, err)
		}
	}
	return r, nil
}

func encode(rows ...[]string) []byte {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.WriteAll(rows) // a strings.Builder takes everything
	return []byte(b.String())
}

// open opens the CSV file and returns the rows it keeps: of a run that is not resumed none, of a resumed one those
// whose first column is at most `done`. Rows past that belong to a history that did not happen, and a torn row ends what is believed.
func (c table[T]) open(path string, done int) (*appendFile, []T, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, nil, err
	}
	var rows []T
	if done > 0 {
		var err error
		if rows, err = c.read(path, done); err != nil {
			return nil, nil, err
		}
	}
	text := [][]string{c.header()}
	for i := range rows {
		text = append(text, c.cells(&rows[i]))
	}
	// Through another file: a full disk must not cost the rows that were there.
	temp := path + ".tmp"
	if err := os.WriteFile(temp, encode(text...), 0o644); err != nil {
		return nil, nil, errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, nil, err
	}
	f, err := openAppend(path, 0)
	return f, rows, err
}

func (c table[T]) read(path string, done int) ([]T, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	if names, err := r.Read(); err != nil || !slices.Equal(names, c.header()) {
		return nil, fmt.Errorf("%s is no history of this version: its columns differ; move it away", path)
	}
	var rows []T
	for {
		text, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		row, bad := c.parse(text)
		if err != nil || bad != nil || *c[0].field(&row).(*int) > done {
			return rows, nil
		}
		rows = append(rows, row)
	}
}
