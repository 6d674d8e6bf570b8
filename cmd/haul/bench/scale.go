package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/internal/config"
	"haul/internal/draw"
	"haul/internal/recipe"
	"haul/internal/run"
)

// What a reader could break: the model has three parts, so that each can be looked up. A step of
// B rows takes fixed + B·row on one device, which is measured here; n ranks run B/n rows each;
// an exchange of M bytes takes latency·(1 + log2 n) + 2·(n-1)/n·M/bandwidth, and none of it is
// overlapped. Links are assumptions, printed beside the table.

// link is a way between ranks: what a rank can send at a time, and what starting costs.
type link struct {
	Name      string  `json:"link"`
	Bandwidth float64 `json:"bytes_per_second"`
	Latency   float64 `json:"latency_seconds"`
}

var scaleLinks = []link{{"NVLink", 350e9, 10e-6}, {"InfiniBand 400", 45e9, 15e-6}, {"Ethernet 100", 11e9, 40e-6}, {"Ethernet 10", 1.1e9, 60e-6}}

var scaleRanks = []int{1, 2, 4, 8, 64}

// scaleModel is what was measured, and what follows.
type scaleModel struct {
	Bench  string    `json:"bench"`
	Config string    `json:"config"`
	Device string    `json:"device"`
	Batch  int       `json:"batch"`
	Bytes  float64   `json:"gradient_bytes"`
	Sizes  []int     `json:"measured_batches"`
	Times  []float64 `json:"measured_seconds"`
	Fixed  float64   `json:"fixed_seconds"`
	Row    float64   `json:"seconds_per_row"`
	Rows   []scaled  `json:"model"`
}

// scaled is one line: n ranks over one link.
type scaled struct {
	link
	Ranks  int       `json:"ranks"`
	Strong float64   `json:"strong_efficiency"` // the same batch, cut
	Weak   float64   `json:"weak_efficiency"`   // the batch for each
	Batch  rowsFor90 `json:"batch_for_90"`      // for each rank, that keeps efficiency at 0.9 against one with the same rows
}

func (m *scaleModel) step(rows float64) float64 { return m.Fixed + rows*m.Row }

func (m *scaleModel) exchange(l link, n int) float64 {
	if n == 1 {
		return 0
	}
	return l.Latency*(1+math.Log2(float64(n))) + 2*float64(n-1)/float64(n)*m.Bytes/l.Bandwidth
}

// fit is least squares of times against sizes, relative to the times: small steps count as much as
// long ones.
func (m *scaleModel) fit() {
	var s, sx, sxx, sy, sxy float64
	for i, n := range m.Sizes {
		w := 1 / (m.Times[i] * m.Times[i])
		x, y := float64(n), m.Times[i]
		s, sx, sxx, sy, sxy = s+w, sx+w*x, sxx+w*x*x, sy+w*y, sxy+w*x*y
	}
	m.Row = (s*sxy - sx*sy) / (s*sxx - sx*sx)
	m.Fixed = (sy - m.Row*sx) / s
}

// rowsFor90 is a batch: 0 any, +Inf none there is, which is null in JSON.
type rowsFor90 float64

func (b rowsFor90) String() string {
	switch {
	case math.IsInf(float64(b), 1):
		return "never"
	case b == 0:
		return "any"
	}
	return fmt.Sprintf("%.0f", math.Ceil(float64(b)))
}

func (b rowsFor90) MarshalJSON() ([]byte, error) {
	if math.IsInf(float64(b), 1) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(b))
}

func (m *scaleModel) predict() {
	one := m.step(float64(m.Batch))
	for _, l := range scaleLinks {
		for _, n := range scaleRanks {
			c := m.exchange(l, n)
			batch := rowsFor90(0)
			if more := 9*c - m.Fixed; more > 0 { // step(b)/(step(b)+c) = 0.9
				batch = rowsFor90(math.Inf(1)) // steps that do not grow with their rows never hide it
				if m.Row > 0 {
					batch = rowsFor90(more / m.Row)
				}
			}
			m.Rows = append(m.Rows, scaled{l, n, one / float64(n) / (m.step(float64(m.Batch)/float64(n)) + c), one / (one + c), batch})
		}
	}
}

var scale = benchmark{
	use:   "scale",
	short: "Estimate the speed of more ranks from measured steps and a model of links",
	long: `Training steps of several batch sizes are timed on this device, and a fixed part and a part per row are fitted. From these the table
estimates what 2 to 64 such devices would do that share a step, over NVLink, InfiniBand or Ethernet, with the same batch divided (strong
scaling) or a batch for each device (weak scaling). The last column is the batch per rank that keeps efficiency at 90 %. The estimate
assumes that communication overlaps with nothing; the assumed links are printed beside the table.

--steps takes times that haul bench step measured on another machine instead.`,
	example: "  haul bench scale --config large --device cuda:0 --plot scale.svg\n  haul bench scale --config ad_dr_compressed --device cuda:0 --json\n  haul bench scale --config large --steps 512=10.37ms,256=5.40ms,128=3.00ms",
	open:    openScale,
}

func openScale(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	var (
		configs cli.ConfigFlags
		devices cli.DeviceFlags
		plot    string
		steps   []string
	)
	configs.RegisterAs(cmd, "tiny_1")
	devices.Register(cmd)
	cmd.Flags().StringSliceVar(&steps, "steps", nil, "step times measured elsewhere, as batch=time, for two or more batches, the largest first: 512=10.4ms,256=5.4ms")
	cmd.Flags().StringVar(&plot, "plot", "", "draw efficiency against ranks to this .svg or .png file")
	return func(ctx context.Context, _ []string) (report, error) {
		if err := cli.FirstOf(knownPlot(plot), devices.Check(a.App)); err != nil {
			return nil, err
		}
		given, err := givenSteps(steps)
		if err != nil {
			return nil, err
		}
		if given != nil {
			if err := timesNothing(cmd, "steps", "device", "precision", "workers"); err != nil {
				return nil, err
			}
		}
		if err := cli.CheckReplaceable(plot); err != nil {
			return nil, err
		}
		m, err := a.benchScale(ctx, &configs, &devices, given)
		if err != nil || plot == "" {
			return m, err
		}
		return m, m.draw(plot)
	}
}

// knownPlot refuses a picture in a format that cannot be drawn; "" passes.
func knownPlot(path string) error {
	if path == "" {
		return nil
	}
	_, err := draw.FormatOf(path)
	return cli.AsUsage(err)
}

// scaleCuts are the batches that are timed: the settings' own, and parts of it.
var scaleCuts = []int{1, 2, 4, 8}

// givenStep is the time of a step that was measured elsewhere.
type givenStep struct {
	rows int
	time time.Duration
}

// givenSteps reads --steps.
func givenSteps(texts []string) (out []givenStep, err error) {
	for i, text := range texts {
		rows, took, ok := strings.Cut(text, "=")
		var s givenStep
		if s.rows, err = strconv.Atoi(rows); err == nil {
			s.time, err = time.ParseDuration(took)
		}
		if err != nil || !ok || s.rows < 1 || s.time <= 0 {
			return nil, cli.Usagef("--steps %s: write rows=time, as in 512=10.4ms", text)
		}
		if i > 0 && s.rows >= out[i-1].rows {
			return nil, cli.Usagef("--steps: batch %d follows batch %d, name the largest first", s.rows, out[i-1].rows)
		}
		out = append(out, s)
	}
	if len(out) == 1 {
		return nil, cli.Usagef("--steps: one batch does not show how a step grows: name two or more")
	}
	return out, nil
}

// take fits the model to steps that were measured elsewhere.
func (m *scaleModel) take(steps []givenStep, step *run.Step) {
	m.Device, m.Batch, m.Bytes = "steps measured elsewhere", steps[0].rows, 4*float64(step.Program.Layout.Len)
	for _, s := range steps {
		m.Sizes, m.Times = append(m.Sizes, s.rows), append(m.Times, s.time.Seconds())
	}
	m.fit()
	m.predict()
}

func (a *app) benchScale(ctx context.Context, f *cli.ConfigFlags, d *cli.DeviceFlags, given []givenStep) (*scaleModel, error) {
	cfg, err := config.LoadAny("", f.Config, f.Sets)
	if err != nil {
		return nil, err
	}
	r, err := recipe.Find(cfg.Recipe())
	if err != nil {
		return nil, cli.Usagef("--config %s: %s", f.Config, err)
	}
	key := r.About().Batch
	if key == "" {
		return nil, cli.Usagef("--config %s: ranks cannot share steps of %s", f.Config, cfg.Recipe())
	}
	replaced := map[string]string{}
	if given != nil {
		replaced[key] = "steps"
	}
	a.NoteUnused(cfg, f.Sets, replaced)
	if given != nil { // a step of any size on any device tells how long the gradient is
		d.Name = "cpu"
		if cfg, err = config.LoadAny("", f.Config, append(f.Sets, key+"=8")); err != nil {
			return nil, err
		}
	}
	dev, err := a.OpenFor(ctx, d, r, cfg)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	m := &scaleModel{Bench: "scale", Config: cfg.Title(), Device: dev.Name()}
	if given != nil {
		step, err := r.Step(dev, cfg)
		if err != nil {
			return nil, err
		}
		m.take(given, step)
		return m, step.Close()
	}
	for _, cut := range scaleCuts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		size := m.Batch / cut
		if cut > 1 {
			if size < 1 {
				break
			}
			if cfg, err = config.LoadAny("", f.Config, append(f.Sets, fmt.Sprintf("%s=%d", key, size))); err != nil {
				return nil, err
			}
		}
		step, err := r.Step(dev, cfg)
		if err != nil {
			return nil, err
		}
		if cut == 1 {
			size = step.Program.Batch
			m.Batch, m.Bytes = size, 4*float64(step.Program.Layout.Len)
		}
		took, err := step.Trial(ctx)
		if err != nil {
			return nil, err
		}
		m.Sizes, m.Times = append(m.Sizes, size), append(m.Times, took)
	}
	if len(m.Sizes) < 2 {
		return nil, errors.New("a batch of 1 does not show how a step grows: use a larger one")
	}
	m.fit()
	m.predict()
	return m, nil
}

func (m *scaleModel) print(w io.Writer, _ *app) {
	fmt.Fprintf(w, "%s, %s\nstep\t%.3f ms + %.3f µs per row, gradient %.2f MB\n", m.Config, m.Device, 1e3*m.Fixed, 1e6*m.Row, m.Bytes/1e6)
	for i, n := range m.Sizes {
		fmt.Fprintf(w, "\tbatch %d: %.3f ms measured, %.3f ms by the fit\n", n, 1e3*m.Times[i], 1e3*m.step(float64(n)))
	}
	var links []string
	for _, l := range scaleLinks {
		links = append(links, fmt.Sprintf("%s: %.3g GB/s, %.0f µs", l.Name, l.Bandwidth/1e9, 1e6*l.Latency))
	}
	fmt.Fprintf(w, "links\t%s\n", strings.Join(links, "; "))
	fmt.Fprintf(w, "table\tefficiency with batch %d cut among ranks, with batch %d each, and the batch each that keeps 90 %%\n", m.Batch, m.Batch)
	fmt.Fprint(w, "\nlink\tranks\tcut\teach\t90 % from\n")
	for _, r := range m.Rows {
		if r.Ranks > 1 {
			fmt.Fprintf(w, "%s\t%d\t%.1f %%\t%.1f %%\t%s\n", r.Name, r.Ranks, 100*r.Strong, 100*r.Weak, r.Batch)
		}
	}
}

// draw shows efficiency against ranks, a line per link.
func (m *scaleModel) draw(path string) error {
	f, err := draw.FormatOf(path)
	if err != nil {
		return cli.AsUsage(err)
	}
	panel := func(title string) draw.Panel {
		return draw.Panel{Title: title, X: "ranks", FromZero: true, Level: 90, LevelName: "90 %",
			XFigure: func(x float64) string { return fmt.Sprintf("%.0f", math.Exp2(x)) }, YFigure: func(y float64) string { return fmt.Sprintf("%.0f %%", y) }}
	}
	strong, weak := panel(fmt.Sprintf("batch %d cut", m.Batch)), panel(fmt.Sprintf("batch %d each", m.Batch))
	for i := len(scaleLinks) - 1; i >= 0; i-- {
		s, k := draw.Curve{Name: scaleLinks[i].Name}, draw.Curve{Name: scaleLinks[i].Name}
		for _, r := range m.Rows {
			if r.Name == scaleLinks[i].Name {
				s.Add(math.Log2(float64(r.Ranks)), 100*r.Strong)
				k.Add(math.Log2(float64(r.Ranks)), 100*r.Weak)
			}
		}
		strong.Curves, weak.Curves = append(strong.Curves, s), append(weak.Curves, k)
	}
	return cli.WriteFile(path, func(w io.Writer) error {
		return draw.Panels(w, f, "Efficiency against ranks, by the model", m.Config+", "+m.Device, strong, weak)
	})
}
