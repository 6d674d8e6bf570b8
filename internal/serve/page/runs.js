// Runs: every run of the folder as it learns. The list and the rows come once; what is new comes as events.
import { $, el, getJSON, api, post, say, figure, percent, duration, later, download, Failure } from './util.js';
import { Chart, bar } from './chart.js';
import { walk } from './walk.js';

// What is drawn of the tables, where they have it.
const panels = [
  { title: 'Gap to the reference', unit: ' %', scale: 100, columns: ['val_gap'] },
  { title: 'Cost per customer, validation', columns: ['val_cost_arithmetic'] },
  { title: 'Share of the optimum', unit: ' %', scale: 100, columns: ['share_of_optimum'] },
  { title: 'Return', columns: ['expected_return', 'last_ten_episodes'] },
  { title: 'Loss', columns: ['train_loss', 'loss_action', 'policy_loss'] },
  { title: 'Actions predicted', unit: ' %', scale: 100, columns: ['acc_action'] },
  { title: 'Speed, per second', columns: ['instances_per_second', 'tokens_per_second', 'steps_per_second'] },
  { title: 'Device busy', unit: ' %', scale: 100, columns: ['busy_share'] },
];

const list = new Map();   // name -> summary
const runs = new Map();   // name -> run, of those that are chosen
const charts = new Map(); // title -> Chart
const ledgers = new Map();
let chosen = [];          // names, in the order of their colours
let extra = [];           // columns that were asked for
let folder = '';
let source = null;

// Events come in order; answers may come late. What an event told after a question was asked is newer than the answer to it.
let events = 0;              // how many there were
let looks = 0;               // how often the list was asked for: the last one counts
const heard = new Map();     // name -> number of the last event about it
const loading = new Map();   // name -> the last question about it that has no answer: what was told meanwhile

export function enter(query) {
  const asked = query.getAll('run');
  if (asked.length) chosen = asked;
  extra = query.getAll('column');
  if (query.get('x')) $('runs-x').value = query.get('x');
  if (query.get('smooth')) $('runs-smooth').value = query.get('smooth');
  if (!source) listen();
  refresh();
}

function listen() {
  source = new EventSource('/api/v1/events');
  source.addEventListener('hello', () => { $('live').textContent = 'live'; refresh(); });
  source.addEventListener('error', () => { $('live').textContent = 'the server does not answer: trying again'; });
  source.addEventListener('gone', e => {
    const { name } = JSON.parse(e.data);
    heard.set(name, ++events);
    loading.delete(name);
    list.delete(name);
    runs.delete(name);
    chosen = chosen.filter(n => n !== name);
    paint();
  });
  source.addEventListener('run', e => {
    const news = JSON.parse(e.data);
    heard.set(news.run.name, ++events);
    list.set(news.run.name, news.run);
    mind();
    if (!chosen.some(n => list.has(n))) chosen = [...chosen, news.run.name];
    loading.get(news.run.name)?.push(news);
    const run = runs.get(news.run.name), whole = run && take(run, news);
    if (chosen.includes(news.run.name) && !whole) load(news.run.name).then(paint);
    paint();
  });
}

// take adds what an event tells of a run, and says whether the run is whole with it.
function take(run, news) {
  Object.assign(run, news.run);
  let whole = !news.reload;
  for (const [name, added] of Object.entries(news.tables || {})) {
    const table = run.tables[name];
    if (!table || added.from > table.rows.length) whole = false;
    else table.rows.splice(added.from, Infinity, ...added.rows);
  }
  return whole;
}

async function refresh() {
  const look = ++looks, since = events;
  const late = name => (heard.get(name) ?? 0) > since;
  try {
    const got = await getJSON('/runs');
    if (look !== looks) return; // who asked later paints
    folder = got.folder;
    const names = new Set(got.runs.map(r => r.name));
    for (const name of [...list.keys()]) if (!names.has(name) && !late(name)) list.delete(name);
    for (const r of got.runs) if (!late(r.name)) list.set(r.name, r);
    offer(got.train);
    // A bookmarked run that is not there yet stays chosen; meanwhile the newest is shown.
    if (!chosen.some(n => list.has(n)) && got.runs.length) chosen = [...chosen, got.runs[0].name];
    await Promise.all(chosen.filter(n => list.has(n)).map(load));
    const absent = chosen.filter(n => !list.has(n));
    say($('runs-error'), absent.length ? `There is no run ${absent.join(', ')} in ${folder}.` : '');
  } catch (e) {
    if (look === looks) say($('runs-error'), e.message);
  }
  paint();
}

// load reads a run whole, and adds what was told while the answer was on its way.
async function load(name) {
  const meanwhile = [];
  loading.set(name, meanwhile);
  let run = null;
  try {
    run = await getJSON('/runs/' + encodeURIComponent(name));
  } catch (e) {
    if (!(e instanceof Failure)) throw e;
  }
  if (loading.get(name) !== meanwhile) return; // it is gone, or was asked for again
  loading.delete(name);
  if (!run) { runs.delete(name); return; } // it went away between two looks
  runs.set(name, run);
  if (!meanwhile.map(news => take(run, news)).every(Boolean)) await load(name);
}

// offer shows what runs can be started with, where the server starts any, and the one that goes on.
function offer(train) {
  $('runs-start').hidden = !train;
  if (!train) return;
  const options = (select, names) => select.options.length !== names.length && select.replaceChildren(...names.map(n => el('option', {}, n)));
  options($('start-config'), train.configs);
  options($('start-device'), train.devices);
  going = train.running || '';
  mind();
}

let going = ''; // the run that was started here and has not ended
function mind() {
  const r = list.get(going);
  if (r && r.state !== 'running' && going !== starting) going = '';
  $('start-go').disabled = !!going || starting !== null;
  $('start-stop').hidden = !going;
}

let starting = null; // a name, or '' while the server has not told it
$('runs-start').addEventListener('submit', async e => {
  e.preventDefault();
  starting = '';
  mind();
  say($('runs-error'), '');
  $('start-words').textContent = 'It begins…';
  try {
    const ask = { config: $('start-config').value, device: $('start-device').value, time: 60 * Number($('start-time').value || 0) };
    going = (await (await post('/runs', ask)).json()).name;
    $('start-words').textContent = `${going} has begun.`;
    chosen = [going];
    remember();
  } catch (err) {
    $('start-words').textContent = '';
    say($('runs-error'), err.message);
  }
  starting = null;
  await refresh();
});
$('start-stop').addEventListener('click', async () => {
  const name = going;
  try {
    await api(`/runs/${encodeURIComponent(name)}/stop`, { method: 'POST' });
    $('start-words').textContent = `${name} saves and ends.`;
  } catch (err) {
    say($('runs-error'), err.message);
  }
});

function choose(name, on) {
  chosen = on ? [...chosen, name] : chosen.filter(n => n !== name);
  remember();
  (on ? load(name) : Promise.resolve()).then(paint);
}

function remember() {
  const q = new URLSearchParams();
  for (const n of chosen) q.append('run', n);
  for (const c of extra) q.append('column', c);
  if ($('runs-x').value) q.set('x', $('runs-x').value);
  if (Number($('runs-smooth').value)) q.set('smooth', $('runs-smooth').value);
  if (location.pathname === '/runs') history.replaceState(null, '', '/runs' + (q.size ? '?' + q : ''));
}

const paint = later(20, () => {
  $('runs-folder').textContent = list.size ? `${list.size} in ${folder}` : '';
  paintList();
  $('runs-empty').hidden = list.size > 0;
  const shown = chosen.map(n => runs.get(n)).filter(Boolean);
  paintCards(shown);
  paintCharts(shown);
  paintTimes(shown);
  paintNotes(shown);
  paintSettings(shown);
  paintPictures(shown);
  paintEpisodes(shown);
});


function paintList() {
  const words = $('runs-filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  const order = [...list.values()].filter(r => words.every(w => `${r.name} ${r.model} ${r.state} ${noteOf(r.name)}`.toLowerCase().includes(w))).sort((a, b) => b.updated.localeCompare(a.updated) || a.name.localeCompare(b.name));
  const box = $('runs-list');
  const focused = document.activeElement?.dataset?.run;
  box.replaceChildren(...order.map(r => {
    const at = chosen.indexOf(r.name);
    const gap = r.last?.val_gap;
    return el('li', {}, el('label', {},
      el('input', { type: 'checkbox', checked: at >= 0, 'data-run': r.name, onchange: e => choose(r.name, e.target.checked) }),
      el('b', {}, at >= 0 ? el('i', { class: 'swatch b' + at % 8 }) : null, r.name),
      el('span', { class: 'state ' + r.state }, r.state),
      el('small', {}, `${r.model || 'a run'}, ${r.unit} ${figure(r.at)}${r.of ? ' of ' + figure(r.of) : ''}${gap != null ? ', gap ' + percent(gap) : ''}`),
      r.of ? el('progress', { max: r.of, value: r.at, 'aria-label': `how far ${r.name} is` }) : null));
  }));
  if (focused) [...box.querySelectorAll('input')].find(i => i.dataset.run === focused)?.focus();
}

const history_ = run => Object.entries(run.tables || {}).find(([name]) => name.startsWith('history'))?.[1];

function column(table, name) {
  const at = table.columns?.indexOf(name) ?? -1;
  return at < 0 ? null : (table.rows || []).map(row => row[at]);
}

const sum = values => (values || []).reduce((a, v) => a + (v || 0), 0);

function paintCards(shown) {
  $('runs-cards').replaceChildren(...shown.map(run => {
    const l = run.last || {}, res = run.result || {};
    const rows = [];
    const add = (name, value) => value !== null && value !== undefined && rows.push(el('dt', {}, name), el('dd', {}, value));
    add(run.unit, `${figure(run.at)}${run.of ? ' of ' + figure(run.of) : ''}`);
    if (l.val_gap != null) add(`gap to ${l.gap_to || 'reference'}`, percent(l.val_gap));
    if (l.val_cost_arithmetic != null) add('cost per customer', figure(l.val_cost_arithmetic));
    if (res.test_gap != null) add('gap on the test set', percent(res.test_gap));
    if (l.share_of_optimum != null) add('share of the optimum', percent(l.share_of_optimum));
    if (res.evaluation?.share_of_optimum != null) add('share of the optimum', percent(res.evaluation.share_of_optimum));
    if (l.loss_action != null) add('loss of the next action', figure(l.loss_action));
    for (const [name, words] of [['instances_per_second', 'instances'], ['tokens_per_second', 'tokens'], ['steps_per_second', 'steps']]) {
      if (l[name] != null) add('speed', `${figure(l[name])} ${words}/s`);
    }
    if (l.flops_per_second != null) add('arithmetic', figure(l.flops_per_second / 1e9) + ' GFLOP/s');
    if (l.busy_share != null) add('device busy', percent(l.busy_share));
    if (l.launches != null) add('asked of the device', `${figure(l.launches)} launches, ${figure(l.waits)} waits, ${figure(l.copies_in + l.copies_out)} copies`);
    const spent = timesOf(run).reduce((a, p) => a + p.share, 0);
    if (spent > 0) add('time so far', duration(spent));
    if (run.state === 'running' && run.of > run.at && run.at > 0 && spent > 0) add('time left', duration(spent / run.at * (run.of - run.at)));
    if (run.state === 'stopped') add('go on with', el('code', {}, `haul train --resume ${folder}/${run.name}`));
    return el('article', { class: 'card' }, el('h2', {}, el('i', { class: 'swatch b' + chosen.indexOf(run.name) % 8 }), run.name + ' ', el('span', { class: 'state ' + run.state }, run.state)), el('dl', {}, rows));
  }));
}

function curvesOf(shown, columns, scale) {
  const out = [];
  for (const run of shown) {
    for (const [name, table] of Object.entries(run.tables || {})) {
      for (const c of columns) {
        const ys = column(table, c);
        if (!ys) continue;
        const points = [], xs = across(run, table);
        ys.forEach((y, i) => typeof y === 'number' && Number.isFinite(xs[i]) && points.push([xs[i], y * scale]));
        smoothed(points);
        const held = name.startsWith('test');
        if (points.length) out.push({ name: run.name + (held ? ', held out' : ''), color: chosen.indexOf(run.name), dash: held, points });
      }
    }
  }
  return out;
}

// across is where each row of a table stands: by its own count, by the time that was spent, or by the instances that were seen.
function across(run, table) {
  const own = (table.rows || []).map(row => row[0]), kind = $('runs-x').value;
  if (!kind) return own;
  const main = history_(run), seconds = main && (column(main, 'time_per_epoch') || column(main, 'seconds')), rate = main && column(main, 'instances_per_second');
  if (!seconds || kind === 'instances' && !rate) return own.map(() => NaN);
  let total = 0;
  const at = new Map(seconds.map((s, i) => [main.rows[i][0], total += (s || 0) * (kind === 'time' ? 1 : rate[i] || 0)]));
  return own.map(x => at.get(x) ?? NaN);
}

// smoothed takes the running mean of points, in place.
function smoothed(points) {
  const keep = Number($('runs-smooth').value);
  let mean = 0, weight = 0;
  if (keep) for (const p of points) { mean = keep * mean + (1 - keep) * p[1]; weight = keep * weight + 1 - keep; p[1] = mean / weight; }
}

function axis(unit) { return { '': unit, time: 'seconds', instances: 'instances' }[$('runs-x').value]; }

for (const id of ['runs-x', 'runs-smooth']) $(id).addEventListener('input', () => { remember(); paint(); });
$('runs-filter').addEventListener('input', () => paint());
$('runs-csv').addEventListener('click', () => {
  const rows = [['run', 'panel', 'x', 'x_unit', 'y']];
  for (const [title, chart] of charts) for (const c of chart.curves) for (const [x, y] of c.points) rows.push([c.name, title, x, chart.x, y]);
  const cell = v => /[",\n]/.test(v) ? `"${String(v).replaceAll('"', '""')}"` : v;
  download('curves.csv', new Blob([rows.map(r => r.map(cell).join(',')).join('\n') + '\n'], { type: 'text/csv' }));
});

function paintCharts(shown) {
  const wanted = [...panels, ...extra.map(c => ({ title: c, columns: [c] }))];
  const used = new Set();
  for (const p of wanted) {
    const curves = curvesOf(shown, p.columns, p.scale || 1);
    if (!curves.length) continue;
    used.add(p.title);
    let chart = charts.get(p.title);
    if (!chart) charts.set(p.title, chart = new Chart(p.title, p.unit));
    if (!chart.node.isConnected) $('runs-charts').append(chart.node);
    chart.set(curves, axis(shown[0].unit));
  }
  for (const [title, chart] of charts) {
    if (!used.has(title)) { chart.node.remove(); charts.delete(title); }
  }
  $('runs-controls').hidden = !shown.length;
  const drawn = new Set(wanted.filter(p => used.has(p.title)).flatMap(p => p.columns));
  const others = new Set();
  for (const run of shown) {
    for (const table of Object.values(run.tables || {})) {
      (table.columns || []).forEach((c, i) => i > 0 && !drawn.has(c) && table.rows?.some(r => typeof r[i] === 'number') && others.add(c));
    }
  }
  $('runs-more').hidden = !others.size;
  const select = $('runs-column');
  if (document.activeElement !== select) select.replaceChildren(el('option', { value: '' }, 'choose one'), ...[...others].sort().map(c => el('option', { value: c }, c)));
}

$('runs-column').addEventListener('change', e => {
  if (!e.target.value) return;
  extra = [...extra, e.target.value];
  e.target.value = '';
  e.target.blur();
  remember();
  paint();
});

// timesOf is what a run spent its time on, from its history.
function timesOf(run) {
  const table = history_(run);
  if (!table) return [];
  const parts = [['steps', sum(column(table, 'time_per_epoch')) || sum(column(table, 'seconds'))], ['validation', sum(column(table, 'val_seconds'))], ['baseline', sum(column(table, 'baseline_seconds'))]];
  const tests = Object.entries(run.tables).filter(([name]) => name !== 'history' && !name.startsWith('history'));
  parts.push(['tests and evaluation', tests.reduce((a, [, t]) => a + sum(column(t, 'seconds')), 0)]);
  return parts.filter(([, s]) => s > 0).map(([name, s]) => ({ name, share: s, words: duration(s) }));
}

// A run's box stays when an epoch comes in: a button that is replaced while somebody presses it does
// nothing, and takes the keyboard's place with it.
const boxes = new Map();
function boxOf(name) {
  if (!boxes.has(name)) {
    const error = el('p', { class: 'notice', role: 'alert', hidden: true });
    const button = el('button', { type: 'button', onclick: () => measure(name, button, error) }, 'Take a training step apart');
    const times = el('div'), step = el('div', {}, el('p', { class: 'row' }, button), error);
    boxes.set(name, { box: el('div', {}, el('h3', {}, name), times, step), times, step });
  }
  return boxes.get(name);
}

function paintTimes(shown) {
  const with_ = shown.filter(r => timesOf(r).length);
  $('runs-time').hidden = !with_.length;
  const all = with_.map(run => {
    const of = boxOf(run.name), got = ledgers.get(run.name);
    of.times.replaceChildren(bar(timesOf(run), 'time of ' + run.name));
    if (got?.stages && of.drawn !== got) {
      const parts = got.stages.filter(s => s.share > 0.002).map(s => ({ name: s.stage, share: s.share, words: percent(s.share) }));
      of.step.replaceChildren(el('p', { class: 'small soft' }, `One training step, ${figure(1e3 * got.step_seconds)} ms on ${got.device}: ${got.note}.`), bar(parts, 'one step of ' + run.name));
      of.drawn = got;
    }
    return of.box;
  });
  const bars = $('runs-bars');
  if (all.length !== bars.children.length || all.some((box, i) => box !== bars.children[i])) bars.replaceChildren(...all);
}

async function measure(name, button, error) {
  ledgers.set(name, 'asked');
  button.disabled = true;
  button.textContent = 'measuring…';
  say(error, '');
  try {
    ledgers.set(name, await (await api(`/runs/${encodeURIComponent(name)}/ledger`, { method: 'POST' })).json());
    paint();
  } catch (e) {
    ledgers.delete(name);
    button.disabled = false;
    button.textContent = 'Take a training step apart';
    say(error, e.message);
  }
}

// Notes stay in this browser, by folder and run: the server reads runs and writes nothing into them.
const noteKey = name => `haul note ${folder}/${name}`;
function noteOf(name) {
  try { return localStorage.getItem(noteKey(name)) ?? ''; } catch { return ''; } // a browser that keeps nothing
}
function keepNote(name, words) {
  try {
    if (words.trim()) localStorage.setItem(noteKey(name), words);
    else localStorage.removeItem(noteKey(name));
    say($('notes-error'), '');
  } catch {
    say($('notes-error'), 'this browser keeps no notes: its storage is full or turned off');
  }
}

let annotated = '';
function paintNotes(shown) {
  $('runs-notes').hidden = !shown.length;
  const key = JSON.stringify([folder, shown.map(r => r.name)]);
  if (key === annotated) return; // who types is not disturbed by the next epoch
  annotated = key;
  $('notes-list').replaceChildren(...shown.map(run => el('label', {}, run.name,
    el('textarea', { rows: 2, maxlength: 10000, placeholder: 'What was tried, and what came of it', value: noteOf(run.name), oninput: e => keepNote(run.name, e.target.value) }))));
}

function paintSettings(shown) {
  const keys = [...new Set(shown.flatMap(r => Object.keys(r.settings || {})))].sort();
  $('runs-settings').hidden = !keys.length;
  if (!keys.length) return;
  const value = (r, k) => r.settings?.[k] ?? '–';
  const differ = keys.filter(k => shown.some(r => value(r, k) !== value(shown[0], k)));
  const table = list_ => el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'key'), shown.map(r => el('th', { scope: 'col' }, r.name)))),
    el('tbody', {}, list_.map(k => el('tr', {}, el('th', { scope: 'row' }, k), shown.map(r => el('td', {}, value(r, k)))))));
  const open = $('runs-table').querySelector('details')?.open ?? false;
  const parts = [];
  if (shown.length > 1) {
    parts.push(el('p', { class: 'small soft' }, differ.length ? 'What differs:' : 'These runs have the same settings.'));
    if (differ.length) parts.push(table(differ));
  }
  const same = keys.filter(k => !differ.includes(k));
  const more = el('details', {}, el('summary', {}, shown.length > 1 ? `${same.length} that are equal` : `All ${keys.length}`), table(same));
  more.open = open;
  $('runs-table').replaceChildren(...parts, more);
}

let painted = '';
function paintPictures(shown) {
  const all = [];
  for (const run of shown) {
    for (const file of run.pictures || []) {
      // Of a picture in two formats the sharper one is shown.
      if (file.endsWith('.png') && run.pictures.includes(file.replace(/png$/, 'svg'))) continue;
      all.push({ run: run.name, file, at: run.state === 'done' ? run.updated : '' });
    }
  }
  $('runs-pictures').hidden = !all.length;
  const key = JSON.stringify(all);
  if (key === painted) return;
  painted = key;
  $('runs-images').replaceChildren(...all.map(p => {
    const url = `/api/v1/runs/${encodeURIComponent(p.run)}/pictures/${encodeURIComponent(p.file)}`;
    return el('figure', {}, el('a', { href: url, target: '_blank', rel: 'noopener' }, el('img', { src: url, alt: `${p.file} of ${p.run}`, loading: 'lazy' })), el('figcaption', {}, `${p.run}: ${p.file}`));
  }));
}

let walked = '';
function paintEpisodes(shown) {
  const all = [];
  for (const run of shown) {
    const e = run.result?.evaluation;
    if (!e?.first_episode?.cells || !e.size) continue;
    all.push({ caption: `${run.name}, first episode`, size: e.size, ...e.first_episode }, { caption: `${run.name}, episode ${e.episodes}`, size: e.size, ...e.last_episode });
  }
  $('runs-walks').hidden = !all.length;
  const key = JSON.stringify(all);
  if (key === walked) return;
  walked = key;
  $('runs-episodes').replaceChildren(...all.map(walk));
}
