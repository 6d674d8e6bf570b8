package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"haul/cmd/haul/cli"
	"haul/cmd/haul/seeds"
	"haul/internal/config"
	"haul/internal/device"
	told "haul/internal/report"
	"haul/internal/world/episodic"
	"haul/internal/world/history"
	"haul/internal/world/xland"
)

// printed is a line of the published table (Tarasov et al. 2025): the return of the 100th episode,
// in XLand-MiniGrid of the 500th, of algorithm distillation and of the best of its methods, the
// areas of both where they are stated, the tokens of a context and the iterations that agents are
// trained here, 0 for the settings' own.
type printed struct {
	name             string
	ad, best         float64
	adArea, bestArea float64
	context          int
	iterations       int
}

var publishedSets = []printed{
	{"DR9-70-5", 0.86, 0.95, 0.68, 0.79, 120, 0},
	{"DR19-300-5", 0.82, 0.96, 0.63, 0.82, 400, 0},
	{"K2D9-250-1", 0.67, 1.44, 0.33, 0.67, 200, 0},
	{"K2D13-250-1", 0.36, 1.20, 0.17, 0.55, 400, 0},
	{"K2D13-250-5", 1.17, 1.89, 0.52, 0.85, 400, 0},
	{"K2D13-1000-5", 1.92, 1.99, 0.89, 0.93, 400, 5000},
	{"XLand-trivial", 0.40, 0.45, 0, 0, 0, 0},
}

// worldSet is histories that agents are trained on and judged by.
type worldSet struct {
	name   string
	config string // settings of the agents, where none are named
	last   int    // the episode that is published
	make   func(ctx context.Context, seed uint64, path string) error
}

// worldSetOf knows a set by its name.
func worldSetOf(name string) (worldSet, error) {
	if strings.HasPrefix(name, "XLand-") {
		return xlandSetOf(name)
	}
	s, err := episodic.ParseSet(name, 0)
	return worldSet{s.Name, "ad_tabular", 100, func(ctx context.Context, seed uint64, path string) error {
		return history.MakeEpisodic(ctx, history.EpisodicOptions{Set: s, Schedule: episodic.Published(), Seed: seed, Path: path, Workers: runtime.GOMAXPROCS(0)})
	}}, err
}

var xlandName = regexp.MustCompile(`^XLand-trivial(?:-([1-9][0-9]{0,5})-([1-9][0-9]{0,5}))?$`)

// xlandSetOf is XLand-trivial, or XLand-trivial-LEARN-HELD with other numbers of tasks to learn
// from and held out.
func xlandSetOf(name string) (worldSet, error) {
	m := xlandName.FindStringSubmatch(name)
	if m == nil {
		return worldSet{}, fmt.Errorf("%q is no set: write XLand-trivial, or XLand-trivial-8000-1024 for tasks to learn from and tasks held out", name)
	}
	pick := xland.Choose{Learn: 8000, Held: 1024}
	if m[1] != "" {
		pick.Learn, _ = strconv.Atoi(m[1]) // digits alone, and few
		pick.Held, _ = strconv.Atoi(m[2])
	}
	return worldSet{name, "ad_xland", 500, func(ctx context.Context, seed uint64, path string) error {
		w, err := xland.New("XLand-MiniGrid-R1-9x9", xland.Tasks{Name: "trivial", Seed: xland.PublicSeed})
		if err != nil {
			return err
		}
		own, search := pick, xland.DefaultSearching()
		if w, err = own.From(w, nil, "trivial"); err != nil {
			return err
		}
		return history.MakeXLand(ctx, history.XLandOptions{World: w, Learn: own.Learned, Held: own.HeldOut, Histories: 1, Search: &search, Seed: seed, Path: path,
			Workers: runtime.GOMAXPROCS(0)})
	}}, nil
}

// worldsFlags are those of haul bench worlds.
type worldsFlags struct {
	cli.DeviceFlags
	config     string
	sets       []string
	seeds      string
	iterations int
	context    int
	atOnce     int
	out        string
	force      bool
}

// worldRow is a line of the table.
type worldRow struct {
	Set       string      `json:"set"`
	AD        *float64    `json:"published_ad,omitempty"`
	Best      *float64    `json:"published_best,omitempty"`
	ADArea    *float64    `json:"published_ad_nauc,omitempty"`
	BestArea  *float64    `json:"published_best_nauc,omitempty"`
	Final     float64     `json:"final"`
	FinalSE   float64     `json:"final_se"` // over seeds
	NAUC      float64     `json:"nauc"`
	NAUCSE    float64     `json:"nauc_se"`
	Seconds   float64     `json:"seconds"` // of a seed
	published int         // episode
	Seeds     []seeds.Row `json:"seeds"`
}

// worldsReport is the table of all sets.
type worldsReport struct {
	Table []worldRow `json:"table"`
	Page  string     `json:"page"`

	made string // the command that made it
}

func (r worldsReport) print(w io.Writer, _ *app) {
	fmt.Fprint(w, worldsPage(r.Table, r.made))
}

// publishedNames are the names of the sets with published figures.
func publishedNames() (names []string) {
	for _, p := range publishedSets {
		names = append(names, p.name)
	}
	return names
}

var worlds = benchmark{
	use:   "worlds [SET ...]",
	short: "Train agents on the published sets of histories and compare them with published figures",
	long: `The sets and figures are those of Tarasov et al. ("Yes, Q-Learning Helps Offline In-Context RL"). The table has the mean return of the
100th episode on held-out goals, and the area under the curve of returns divided by an expert's. For every set and seed this runs haul
data tabular SET --seed S, then haul train --config ad_tabular --seed S with the context length that is published for the set
(K2D13-1000-5, which has the most histories, with twice the iterations). Agents are tested on all other goals of Dark Room, and on 100
goals of Key-to-Door. ± is the standard error over seeds; the result.json of each run has the error over goals.

XLand-trivial runs haul data xland --learner search --learn 8000 --held 1024 --seed S, then haul train --config ad_xland --seed S, and
tests on the 1,024 held-out tasks. Its histories are those of a learner that knows which goals exist; the published ones are those
of recurrent PPO. XLand-trivial-LEARN-HELD has other numbers of tasks.

SET is ` + strings.Join(publishedNames(), ", ") + ` (default: all of them), or another name of
haul data tabular. Runs in --out that have ended are not trained again, and interrupted ones continue, so a table can be made in
parts; runs with other settings are refused. The table is also written to worlds.md there. Small networks do not fill a GPU: --at-once 6
trains six runs at the same time, with the same results.`,
	example: "  haul bench worlds DR9-70-5 --seeds 1..3 --at-once 3 --device cuda:0\n  haul bench worlds DR5-18-5 --device cpu --iterations 300 --context 60",
	names:   -1,
	open:    openWorlds,
}

func openWorlds(a *app, cmd *cobra.Command) func(context.Context, []string) (report, error) {
	var f worldsFlags
	f.DeviceFlags.Register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.config, "config", "", "settings of the agents (default: ad_tabular; for XLand-trivial ad_xland)")
	fs.StringArrayVar(&f.sets, "set", nil, "change one setting of the agents (repeatable)")
	fs.StringVar(&f.seeds, "seeds", "1..3", "random seeds of goals, learners and agents: 1..3 or 1,5,9")
	fs.IntVar(&f.iterations, "iterations", 0, "iterations per run, instead of train_timesteps")
	fs.IntVar(&f.context, "context", 0, "tokens per context (default: as published for the set, else the settings')")
	fs.IntVar(&f.atOnce, "at-once", 1, "number of runs at the same time")
	fs.StringVar(&f.out, "out", "runs/worlds", "folder for histories, runs and the table")
	fs.BoolVar(&f.force, "force", false, "train again the runs of --out that have ended")
	return func(ctx context.Context, names []string) (report, error) { return a.benchWorlds(ctx, cmd, names, &f) }
}

func (a *app) benchWorlds(ctx context.Context, cmd *cobra.Command, names []string, f *worldsFlags) (report, error) {
	list, err := seeds.Parse(f.seeds)
	if err != nil {
		return nil, err
	}
	if cmd.Flags().Changed("context") && f.context < 12 {
		return nil, cli.Usagef("--context is %d: two regions with their marks need at least 12 tokens", f.context)
	}
	for _, set := range f.sets {
		if key := settingKey(set); f.context > 0 && slices.Contains([]string{"n_transit", "compress_interval", "compress_min"}, key) {
			return nil, cli.Usagef("--context gives %s too: leave it or --set %s out", key, set)
		}
	}
	if f.atOnce < 1 {
		return nil, cli.Usagef("--at-once is %d: at least 1 is needed", f.atOnce)
	}
	if len(names) == 0 {
		names = publishedNames()
	}
	var sets []worldSet
	for i, n := range names {
		if slices.Contains(names[:i], n) {
			return nil, cli.Usagef("%s is named twice", n)
		}
		s, err := worldSetOf(n)
		if err != nil {
			return nil, cli.AsUsage(err)
		}
		sets = append(sets, s)
	}
	if err := f.Check(a.App); err != nil {
		return nil, err
	}
	var pending []*worldRun
	for _, s := range sets {
		more, err := a.worldRuns(cmd, s, list, f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		pending = append(pending, more...)
	}
	made := strings.Join(append(append([]string{"haul bench worlds"}, names...), seeds.Given(cmd, "device", "workers", "out", "force", "json", "at-once")...), " ")
	page := filepath.Join(f.out, "worlds.md")
	var table []worldRow
	err = a.runAll(ctx, pending, f, func(done []*worldRun) error { // whole rows, as they come
		row := worldRowOf(done)
		table = append(table, row)
		if len(row.Seeds) == 1 { // one seed has no spread
			fmt.Fprintf(a.Stderr, "%s: return %.3f, area %.3f, one seed\n", row.Set, row.Final, row.NAUC)
		} else {
			fmt.Fprintf(a.Stderr, "%s: return %.3f ± %.3f, area %.3f ± %.3f over %d seeds\n", row.Set, row.Final, row.FinalSE, row.NAUC, row.NAUCSE, len(row.Seeds))
		}
		return cli.WriteFile(page, func(w io.Writer) error {
			_, err := io.WriteString(w, worldsPage(table, made))
			return err
		})
	})
	return worldsReport{table, page, made}, err
}

// worldRun is one seed of one set.
type worldRun struct {
	set  worldSet
	seed uint64
	dir  string
	c    *config.AD
	args []string
	row  seeds.Row
	err  error
	done chan struct{}
}

// settingKey is the key of key=value.
func settingKey(set string) string {
	key, _, _ := strings.Cut(set, "=")
	return strings.TrimSpace(key)
}

// worldRuns are the seeds of a set.
func (a *app) worldRuns(cmd *cobra.Command, s worldSet, list []uint64, f *worldsFlags) (out []*worldRun, err error) {
	context, iterations, settings := f.context, f.iterations, cmp.Or(f.config, s.config)
	if p := s.printed(); p != nil {
		context, iterations = cmp.Or(context, p.context), cmp.Or(iterations, p.iterations)
	}
	base := append([]string{"train", "--model=AD", "--config=" + settings}, seeds.Given(cmd, "config", "set", "seeds", "context", "iterations", "out", "force", "json", "at-once")...)
	var changes []string
	if context > 0 {
		// Regions of three quarters of the longest, all of one length: who ends them earlier forgets
		// sooner where it has searched.
		region := context/2 - 2
		changes = append(changes, fmt.Sprintf("n_transit=%d", context), fmt.Sprintf("compress_interval=%d", region), fmt.Sprintf("compress_min=%d", 3*region/4))
	}
	if iterations > 0 && f.iterations == 0 { // agents live at the end alone
		changes = append(changes, fmt.Sprintf("train_timesteps=%d", iterations), fmt.Sprintf("gen_interval=%d", iterations))
	}
	changes = slices.DeleteFunc(changes, func(c string) bool { // what is as published, unless the user says otherwise
		return slices.ContainsFunc(f.sets, func(s string) bool { return settingKey(s) == settingKey(c) })
	})
	changes = append(changes, f.sets...)
	if f.iterations > 0 {
		changes = append(changes, fmt.Sprintf("train_timesteps=%d", f.iterations))
	}
	for _, set := range changes {
		base = append(base, "--set="+set)
	}
	for _, seed := range list {
		r := &worldRun{set: s, seed: seed, dir: filepath.Join(f.out, fmt.Sprintf("%s-seed-%d", s.name, seed)), done: make(chan struct{})}
		if r.c, err = config.LoadAD(settings, append(slices.Clone(changes), fmt.Sprintf("seed=%d", seed))); err != nil {
			return nil, cli.InFlags(cmd, err, map[string]string{"iterations": "train_timesteps"})
		}
		r.args = append(slices.Clone(base), "--history", r.dir+".hist", "--seed", fmt.Sprint(seed))
		out = append(out, r)
	}
	return out, nil
}

// runAll trains, some runs at once and begun in order, and hands over the seeds of a set when all
// of them and of those before it have ended. Where one has failed, those after it are interrupted,
// and may go on later.
func (a *app) runAll(ctx context.Context, pending []*worldRun, f *worldsFlags, whole func([]*worldRun) error) error {
	// Agents wait for a GPU thousands of times a second, and who comes back from that must not queue
	// behind those who make rows of other runs: with threads for all the system picks whoever waited.
	if at, err := device.ParseName(f.Name); err == nil && !at.CPU && !at.Auto && f.atOnce > 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4 * max(f.atOnce, runtime.GOMAXPROCS(0)/4)))
	}
	ctx, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	queue := make(chan *worldRun, len(pending))
	for _, r := range pending {
		queue <- r
	}
	close(queue)
	var lock sync.Mutex
	for range min(f.atOnce, len(pending)) {
		group.Go(func() {
			for r := range queue {
				own := a
				if f.atOnce > 1 {
					own = &app{a.With(&markedLines{to: a.Stderr, lock: &lock, mark: fmt.Sprintf("%s %d: ", r.set.name, r.seed)})}
				}
				if r.err = own.runWorld(ctx, r, f.force); r.err != nil {
					r.err = fmt.Errorf("%s, seed %d: %w", r.set.name, r.seed, r.err)
				}
				close(r.done)
			}
		})
	}
	from := 0
	for i, r := range pending {
		if <-r.done; r.err != nil {
			return r.err
		}
		if i+1 == len(pending) || pending[i+1].set.name != r.set.name {
			lock.Lock()
			err := whole(pending[from : i+1])
			lock.Unlock()
			if from = i + 1; err != nil {
				return err
			}
		}
	}
	return nil
}

// runWorld makes the histories of one seed where they are not yet, and trains on them.
func (a *app) runWorld(ctx context.Context, r *worldRun, force bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.set.histories(ctx, r.seed, r.dir+".hist"); err != nil {
		return err
	}
	result, err := seeds.Train(ctx, a.App, seeds.Run{Dir: r.dir, Force: force, Config: r.c, Args: r.args, Histories: r.dir + ".hist"})
	if err == nil {
		r.row = seeds.RowOf(r.seed, r.dir, result)
	}
	return err
}

// markedLines says of every line whose it is: several runs write to one screen.
type markedLines struct {
	to   io.Writer
	lock *sync.Mutex // of all that write there
	mark string
	line []byte
}

func (m *markedLines) Write(p []byte) (int, error) {
	m.line = append(m.line, p...)
	for {
		i := bytes.IndexByte(m.line, '\n')
		if i < 0 {
			return len(p), nil
		}
		m.lock.Lock()
		_, err := fmt.Fprintf(m.to, "%s%s\n", m.mark, m.line[:i])
		m.lock.Unlock()
		if m.line = m.line[i+1:]; err != nil {
			return len(p), err
		}
	}
}

// printed is what is published of a set; nil where nothing is.
func (s *worldSet) printed() *printed {
	if i := slices.IndexFunc(publishedSets, func(p printed) bool { return p.name == s.name }); i >= 0 {
		return &publishedSets[i]
	}
	return nil
}

// worldRowOf sums the seeds of a set up.
func worldRowOf(runs []*worldRun) worldRow {
	s := &runs[0].set
	row := worldRow{Set: s.name, published: s.last}
	if p := s.printed(); p != nil {
		if row.AD, row.Best = &p.ad, &p.best; p.adArea > 0 {
			row.ADArea, row.BestArea = &p.adArea, &p.bestArea
		}
	}
	for _, r := range runs {
		row.Seeds = append(row.Seeds, r.row)
	}
	row.Final, row.FinalSE, _ = seeds.Over(row.Seeds, func(r *seeds.Row) float64 { return r.Final })
	row.NAUC, row.NAUCSE, _ = seeds.Over(row.Seeds, func(r *seeds.Row) float64 { return r.NAUC })
	row.Seconds, _, _ = seeds.Over(row.Seeds, func(r *seeds.Row) float64 { return r.Seconds })
	return row
}

// histories makes a set's where they are not yet.
func (s worldSet) histories(ctx context.Context, seed uint64, path string) error {
	if h, err := history.Open(path); err == nil {
		return h.Close()
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("cannot write: %w", err)
	}
	return s.make(ctx, seed, path)
}

// worldsPage is the table as a page has it, with the command that makes it.
func worldsPage(table []worldRow, made string) string {
	b := new(strings.Builder)
	seeds := 0
	for _, r := range table {
		seeds = max(seeds, len(r.Seeds))
	}
	fmt.Fprintf(b, "| histories | AD, published | best, published | this program, %s | area: AD, best | area | seconds |\n| --- | --- | --- | --- | --- | --- | --- |\n", told.Plural(int64(seeds), "seed"))
	figure := func(v *float64) string {
		if v == nil {
			return "–"
		}
		return fmt.Sprintf("%.2f", *v)
	}
	spread := func(v, se float64) string {
		if seeds < 2 {
			return fmt.Sprintf("%.3f", v)
		}
		return fmt.Sprintf("%.3f ± %.3f", v, se)
	}
	for _, r := range table {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s, %s | %s | %.0f |\n", r.Set, figure(r.AD), figure(r.Best), spread(r.Final, r.FinalSE), figure(r.ADArea), figure(r.BestArea), spread(r.NAUC, r.NAUCSE), r.Seconds)
	}
	var last []string
	for _, r := range table {
		text := fmt.Sprintf("the %dth episode", r.published)
		if n := r.Seeds[0].Episodes; n != r.published {
			text = fmt.Sprintf("episode %d (published: the %dth)", n, r.published)
		}
		if !slices.Contains(last, text) {
			last = append(last, text)
		}
	}
	over := "; ± is the standard error over seeds"
	if seeds < 2 {
		over = ""
	}
	fmt.Fprintf(b, "\nReturn of %s on goals never learned from, and the area under the curve of returns over an expert's%s.\nMade by `%s`.\n", strings.Join(last, " and "), over, made)
	return b.String()
}
