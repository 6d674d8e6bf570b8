// Routes: an instance on the map, solved again whenever it changes, by one method or by two side by side.
import { $, el, svg, api, getJSON, post, streamed, say, figure, percent, later, download } from './util.js';
import { routeTable, timeBars, leftOut, stopsOf, minutes, hues } from './plan.js';
import { fillTables, addPlace, removePlace, parts, amountIn, customers, depots } from './tables.js';

let instance = null;          // as the API has it
let view = null;              // how it lies on the map: x0, y0, side; on the globe lon and narrow too
let picked = 0;               // the customer that the keyboard moves; 0: none
let best = 0;                 // a cost that the file states
let policies = [];
let limits = { exact_customers: 18, policy_customers: 500 };
let file = null;              // the .npz that more instances can be taken from
let told = {};                // what its user said that it does not
let wishes = 0;               // how often an instance was wished for: the last wish is granted, whichever answer comes last
const maps = [];
const size = 1000, margin = 50;

// wrong says why there are no routes, where it can be seen: on a phone the map comes first.
function wrong(words) {
  say($('r-error'), words);
  if (words) $('r-error').scrollIntoView({ block: 'nearest' });
}

export async function enter(query) {
  if (maps.length) return;
  const methods = [new Method('A', query.get('method') || 'search'), new Method('B', query.get('with') || 'policy')];
  for (const m of methods) maps.push(new RouteMap(m));
  $('r-compare').checked = query.has('with');
  $('r-open').checked = query.get('open') === '1';
  for (const [key, id] of [['n', 'r-count'], ['seed', 'r-seed'], ['capacity', 'r-capacity']]) if (query.get(key)) $(id).value = query.get(key);
  arrange();
  try {
    limits = (await getJSON('/about')).limits;
    policies = (await getJSON('/policies')).policies;
  } catch (e) { wrong(e.message); }
  for (const m of methods) m.fill();
  if (!wishes) random(!query.get('n')); // an example is solved at first sight, unless a file was dropped before
}

// Method is the choice of one way to solve.
class Method {
  constructor(letter, name) {
    this.letter = letter;
    const option = (v, words) => el('option', { value: v }, words);
    this.name = el('select', { onchange: () => { arrange(); solveAll(); remember(); this.name.focus(); } }, option('search', 'Search'), option('policy', 'Policy'), option('exact', 'Exact'));
    this.name.value = ['search', 'policy', 'exact'].includes(name) ? name : 'search';
    this.time = el('input', { type: 'number', min: 0.1, max: 60, step: 0.1, value: 2, onchange: solveAll });
    this.policy = el('select', { onchange: solveAll });
    this.decode = el('select', { onchange: solveAll }, option('', 'default for the size'), option('greedy', 'greedy'), option('pomo', 'pomo: a start per customer'), option('pomo8', 'pomo8: with 8 symmetries'), option('pomo8:1', 'pomo8:1: pomo8, sampled'));
    this.label = el('span', {}, 'Method');
    this.timeBox = el('label', {}, 'Seconds ', this.time);
    this.policyBox = el('label', { class: 'whole' }, 'Policy ', this.policy);
    this.decodeBox = el('label', { class: 'whole' }, 'Decoding ', this.decode);
    this.node = el('div', { class: 'fields' }, el('label', {}, this.label, ' ', this.name), this.timeBox, this.policyBox, this.decodeBox);
  }

  fill() {
    const m = this.name.value;
    this.timeBox.hidden = m !== 'search';
    this.policyBox.hidden = this.decodeBox.hidden = m !== 'policy';
    const was = this.policy.value;
    this.policy.replaceChildren(el('option', { value: '' }, 'nearest size'), ...policies.map(p => el('option', { value: p.name }, `${p.name} (${p.customers} customers)`)));
    this.policy.value = policies.some(p => p.name === was) ? was : '';
  }

  // refuses says what is wrong before the server is asked.
  refuses() {
    const m = this.name.value, n = customers(instance), most = { exact: limits.exact_customers, policy: limits.policy_customers }[m];
    const heavy = instance.fleet ? -1 : instance.demands.findIndex(d => d > instance.capacity);
    if (instance.open && m !== 'search') return `Open routes are the search's alone: choose Search, or let routes end at the depot.`;
    if (n > most) return `${m === 'exact' ? 'The exact method' : 'A policy'} takes up to ${most} customers here, these are ${n}: choose Search.`;
    if (m === 'policy' && !policies.length) return 'There is no trained policy yet: haul train makes one, and it is found here once it has an epoch and this room is opened again.';
    if (heavy > 0) return `Customer ${heavy} demands ${instance.demands[heavy] / parts(instance)}, more than the capacity ${instance.capacity / parts(instance)}: no vehicle can serve it.`;
    return '';
  }

  request() {
    const m = this.name.value;
    return { ...instance, method: m, gap: true, ...(m === 'search' ? { time: Number(this.time.value) || 1 } : {}), ...(m === 'policy' ? { policy: this.policy.value, decode: this.decode.value } : {}) };
  }
}

// RouteMap is one map with the routes of one method.
class RouteMap {
  constructor(method) {
    this.method = method;
    this.canvas = svg('svg', { viewBox: `0 0 ${size} ${size}`, tabindex: 0, role: 'application', 'aria-label': 'map: arrows move the cross, Enter places a customer, N picks one' });
    this.figures = el('p', { class: 'figures', role: 'status' });
    this.error = el('p', { class: 'notice', role: 'alert', hidden: true });
    this.buttons = {};
    this.saves = el('p', { class: 'row', hidden: true }, el('span', { class: 'small soft' }, 'Save as'),
      ['sol', 'csv', 'json', 'geojson', 'svg', 'vrp'].map(f => this.buttons[f] = el('button', { type: 'button', onclick: () => this.save(f) }, '.' + f)));
    this.head = el('h2', {}, '');
    const zoom = (words, label, f) => el('button', { type: 'button', 'aria-label': label, onclick: f }, words);
    this.zooms = el('p', { class: 'row zoom' }, zoom('+', 'zoom in', () => this.zoom(1.5)), zoom('−', 'zoom out', () => this.zoom(1 / 1.5)), zoom('Whole map', 'show the whole map', () => { this.seen = { x: 0, y: 0, k: 1 }; this.draw(); }));
    this.under = el('div', { class: 'under' });
    this.node = el('section', { class: 'map', 'aria-label': 'routes by method ' + method.letter }, this.head, this.figures, this.canvas, this.zooms, this.error, this.saves, this.under);
    this.routes = this.types = null;
    this.seen = { x: 0, y: 0, k: 1 }; // what is seen of the map: its corner and how much larger than whole
    this.cross = [size / 2, size / 2];
    this.listen();
  }

  listen() {
    let held = 0, moved = false, from = null;
    const fingers = new Map(); // by id, where they are
    this.canvas.addEventListener('pointerdown', e => {
      const node = Number(e.target.dataset?.node ?? -1);
      fingers.set(e.pointerId, [e.clientX, e.clientY]);
      moved = false;
      from = [e.clientX, e.clientY];
      if (node >= 0 && fingers.size === 1) { held = node + 1; pick(node); }
      this.canvas.setPointerCapture(e.pointerId);
    });
    this.canvas.addEventListener('pointermove', e => {
      const was = fingers.get(e.pointerId);
      if (!was) return;
      const now = [e.clientX, e.clientY], apart = () => { const [p, q] = [...fingers.values()]; return Math.hypot(p[0] - q[0], p[1] - q[1]); };
      if (fingers.size === 2) { // two fingers zoom
        const before = apart();
        fingers.set(e.pointerId, now);
        moved = true;
        held = 0;
        if (before > 0) this.zoom(apart() / before, this.point(e));
        return;
      }
      if (!moved && Math.hypot(now[0] - from[0], now[1] - from[1]) < 4) return; // a hand that shakes
      moved = true;
      fingers.set(e.pointerId, now);
      if (held) {
        place(held - 1, this.at(e));
        drawAll();
        solveSoon();
      } else {
        const scale = this.canvas.getScreenCTM().a;
        this.look(this.seen.x - (now[0] - was[0]) / scale, this.seen.y - (now[1] - was[1]) / scale, this.seen.k);
      }
    });
    const let_go = e => fingers.delete(e.pointerId);
    this.canvas.addEventListener('pointercancel', e => { let_go(e); held = 0; });
    this.canvas.addEventListener('pointerup', e => {
      let_go(e);
      if (held) { held = 0; if (moved) { solveAll(); tables(); } return; }
      if (e.button === 0 && !moved && !fingers.size) add(this.at(e));
    });
    this.canvas.addEventListener('wheel', e => { e.preventDefault(); this.zoom(e.deltaY < 0 ? 1.2 : 1 / 1.2, this.point(e)); }, { passive: false });
    this.canvas.addEventListener('keydown', e => this.key(e));
    this.canvas.addEventListener('focus', () => this.draw());
    this.canvas.addEventListener('blur', () => this.draw());
    for (const kind of ['dragenter', 'dragover']) this.node.addEventListener(kind, e => { e.preventDefault(); this.node.classList.add('over'); });
    for (const kind of ['dragleave', 'drop']) this.node.addEventListener(kind, () => this.node.classList.remove('over'));
    this.node.addEventListener('drop', e => { e.preventDefault(); if (e.dataTransfer.files[0]) open(e.dataTransfer.files[0]); });
  }

  // point is where a pointer is on the map, whatever is seen of it.
  point(e) {
    const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(this.canvas.getScreenCTM().inverse());
    return [p.x, p.y];
  }

  // at is the same in the instance's coordinates.
  at(e) { return unproject(this.point(e)); }

  // zoom keeps a point of the map where it is.
  zoom(by, [x, y] = [this.seen.x + size / this.seen.k / 2, this.seen.y + size / this.seen.k / 2]) {
    const k = Math.min(40, Math.max(1, this.seen.k * by)), s = this.seen.k / k;
    this.look(x - (x - this.seen.x) * s, y - (y - this.seen.y) * s, k);
  }

  look(x, y, k) {
    const room = size - size / k;
    this.seen = { k, x: Math.min(room, Math.max(0, x)), y: Math.min(room, Math.max(0, y)) };
    this.draw();
  }

  key(e) {
    const step = e.shiftKey ? 100 : 20;
    const ways = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    if (!instance?.coords) return;
    const n = customers(instance) + 1;
    if (e.key === '+' || e.key === '-') { this.zoom(e.key === '+' ? 1.5 : 1 / 1.5); e.preventDefault(); return; }
    if (ways[e.key]) {
      const from = picked ? project(instance.coords[picked]) : this.cross;
      const to = from.map((v, i) => Math.min(size - margin, Math.max(margin, v + ways[e.key][i])));
      if (picked) { place(picked, unproject(to)); drawAll(); solveSoon(); } else { this.cross = to; this.draw(); }
    } else if (e.key === 'Enter' || e.key === ' ') add(unproject(this.cross));
    else if (e.key === 'n' || e.key === 'N') pick(n > 1 ? picked % (n - 1) + 1 : 0);
    else if (e.key === 'p' || e.key === 'P') pick(n > 1 ? (picked + n - 3) % (n - 1) + 1 : 0);
    else if (e.key === 'Escape') pick(0);
    else if ((e.key === 'Delete' || e.key === 'Backspace') && picked) remove(picked);
    else return;
    e.preventDefault();
  }

  async solve() {
    this.stop?.abort();
    const stop = this.stop = new AbortController();
    say(this.error, '');
    const alive = () => !stop.signal.aborted && this.node.isConnected;
    if (customers(instance) < 1) { this.routes = null; this.tell(null); this.draw(); return; }
    const refused = this.method.refuses();
    if (refused || this.routes && !fits(this.routes)) this.routes = null;
    this.draw();
    if (refused) { this.tell(null); say(this.error, refused); return; }
    try {
      await streamed('/solve', this.method.request(), stop.signal, (event, data) => {
        if (!alive()) return;
        if (event === 'problem') { say(this.error, data.detail); return; }
        if (data.routes) { this.routes = data.routes; this.types = data.types; this.missing = data.unserved_required; this.draw(); }
        this.tell(data, event === 'progress');
      });
    } catch (e) {
      if (!alive() || e.name === 'AbortError') return;
      this.routes = null;
      this.tell(null);
      this.draw();
      say(this.error, e.message);
    }
  }

  tell(data, running, again) {
    this.saves.hidden = !data || running;
    this.buttons.vrp.hidden = instance.open; // the format has no word for it
    if (!running) this.list(data);
    this.cost = data?.cost;
    if (!data) this.last = null;
    const n = customers(instance);
    if (!data) { this.figures.replaceChildren(counted(n, 'customer')); return; }
    const parts = [el('span', {}, 'cost ', el('b', {}, figure(data.cost)), instance.distance === 'metres' && !(instance.fleet || []).some(v => v.fixed_cost || v.duration_cost || v.distance_cost !== undefined) ? ' m' : ''), el('span', {}, counted(this.routes?.length ?? 0, 'route')), el('span', {}, counted(n, 'customer'))];
    const known = data.optimum ?? (!instance.open && best || null); // a file states what closed routes cost
    if (known) parts.push(el('span', {}, `gap ${percent(Math.max(0, data.cost / known - 1))} to ${data.optimum != null ? 'the optimum' : 'the best known'}`));
    const other = maps.find(m => m !== this && m.node.isConnected)?.cost;
    if (other && !running && data.cost > other * (1 + 1e-9)) parts.push(el('span', {}, `${percent(data.cost / other - 1)} above the other`));
    parts.push(el('span', {}, running ? `searching, ${data.seconds.toFixed(1)} s` : `${figure(1e3 * data.seconds)} ms${data.policy ? ` by ${data.policy}, ${data.decode}` : ''}`));
    this.figures.replaceChildren(...parts);
    if (!running && !again) maps.forEach(m => m !== this && m.last && m.tell(m.last, false, true)); // which may be above this one
    this.last = running ? null : data;
  }

  // list shows what the routes are under the map.
  list(data) {
    if (!data || !this.routes?.length) { this.under.replaceChildren(...[leftOut(data?.plan?.unserved)].filter(Boolean)); return; }
    const seconds = minutes(instance, data.plan);
    this.under.replaceChildren(...[leftOut(data.plan?.unserved), data.plan && timeBars(data.plan, seconds, hues(this.routes)),
      el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'list of routes' }, routeTable(instance, this.routes, this.types, data.plan, seconds))].filter(Boolean));
  }

  draw() {
    if (!instance) return; // the first one is on its way
    const { x, y, k } = this.seen, u = 1 / k; // sizes on the screen do not depend on the zoom
    this.canvas.setAttribute('viewBox', `${x} ${y} ${size * u} ${size * u}`);
    this.canvas.style.setProperty('--u', u);
    if (!instance.coords) {
      this.canvas.replaceChildren(svg('text', { class: 'hint', x: size / 2, y: size / 2 }, 'Distances without coordinates: no map'));
      return;
    }
    const parts = [], c = instance.coords, p = c.map(project), first = depots(instance);
    const hue = hues(this.routes || []);
    (this.routes || []).forEach((r, i) => parts.push(svg('path', { class: 'route s' + hue[i], d: 'M' + stopsOf(instance, r, this.types?.[i]).map(v => (p[v] || p[0]).map(z => z.toFixed(1)).join(' ')).join('L') })));
    const small = c.length > 150 && Math.max(2, 7 * Math.sqrt(150 / c.length)), top = Math.max(1, ...instance.demands); // thousands leave room for routes
    const served = this.routes && new Set(this.routes.flat()), radius = [];
    for (let i = first; i < c.length; i++) {
      radius[i] = u * (small || 9 + 11 * Math.sqrt(instance.demands[i] / top));
      parts.push(svg('circle', { class: 'customer' + (i === picked ? ' picked' : '') + (served && !served.has(i) ? ' left' : ''), 'data-node': i, cx: p[i][0], cy: p[i][1], r: radius[i] }, svg('title', {}, `${instance.ids?.[i] ?? i}, demand ${instance.demands[i]}`)));
    }
    for (let i = 0; i < first; i++) parts.push(svg('rect', { class: 'depot', 'data-node': i, x: p[i][0] - 13 * u, y: p[i][1] - 13 * u, width: 26 * u, height: 26 * u }));
    parts.push(...this.labels(p, radius, u));
    if (customers(instance) < 1) parts.push(svg('text', { class: 'hint', x: size / 2, y: size - 80 }, 'Click to place customers, or drop a file'));
    if (document.activeElement === this.canvas && this.canvas.matches(':focus-visible') && !picked) {
      const [hx, hy] = this.cross;
      parts.push(svg('path', { class: 'hair', d: `M${hx - 24} ${hy}h48M${hx} ${hy - 24}v48` }));
    }
    this.canvas.replaceChildren(...parts);
  }

  // labels names what is seen, where the name covers neither another name nor a customer.
  labels(p, radius, u) {
    const { x, y, k } = this.seen, side = size / k, out = [], taken = [], high = 20 * u;
    const shown = p.map((_, i) => i).filter(i => radius[i] && p[i][0] >= x && p[i][0] <= x + side && p[i][1] >= y && p[i][1] <= y + side);
    if (shown.length > 600) return out;
    const free = b => !taken.some(t => b[0] < t[2] && b[2] > t[0] && b[1] < t[3] && b[3] > t[1]);
    for (const i of shown) taken.push([p[i][0] - radius[i], p[i][1] - radius[i], p[i][0] + radius[i], p[i][1] + radius[i]]);
    for (const i of shown) {
      const words = String(instance.ids?.[i] ?? i).slice(0, 14), w = 0.58 * high * words.length, r = radius[i], [cx, cy] = p[i];
      for (const [lx, ly] of [[cx, cy - r - 5 * u], [cx, cy + r + high * 0.9], [cx + r + w / 2 + 4 * u, cy + high * 0.35], [cx - r - w / 2 - 4 * u, cy + high * 0.35]]) {
        const box = [lx - w / 2, ly - high * 0.8, lx + w / 2, ly + high * 0.2];
        if (!free(box)) continue;
        taken.push(box);
        out.push(svg('text', { class: 'label', x: lx, y: ly }, words));
        break;
      }
    }
    return out;
  }

  async save(format) {
    try {
      const name = instance.name, body = { ...instance, routes: this.routes, ...(this.types ? { types: this.types } : {}), ...(this.missing ? { unserved_required: this.missing } : {}), title: this.method.name.selectedOptions[0].textContent };
      download(`${(name || 'routes').replace(/[^\w.-]+/g, '_')}.${format}`, await (await post('/export/' + format, body)).blob());
    } catch (e) { say(this.error, e.message); }
  }
}

const counted = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`;

// fits says that routes are of this instance's places.
const fits = routes => routes.flat().every(c => c >= 0 && c < instance.demands.length);

// The map shows the instance's own square; an edit may not move it under the pointer. On the globe a degree of longitude is as long as the
// cosine of the latitude says, and is counted from the depot the short way round.
function frame() {
  if (!instance.coords || instance.coords.length < 2) { view = { x0: 0, y0: 0, side: 1 }; return; }
  const lats = instance.coords.map(c => c[1]), middle = (Math.min(...lats) + Math.max(...lats)) / 2;
  view = instance.distance === 'metres' ? { lon: instance.coords[0][0], narrow: Math.max(1e-6, Math.cos(middle * Math.PI / 180)) } : {};
  const at = instance.coords.map(flat), xs = at.map(c => c[0]), ys = at.map(c => c[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const side = Math.max(x1 - x0, y1 - y0) || 1;
  Object.assign(view, { x0: (x0 + x1 - side) / 2, y0: (y0 + y1 - side) / 2, side });
}
const around = lon => lon - 360 * Math.round(lon / 360);
const flat = ([x, y]) => view.narrow ? [around(x - view.lon) * view.narrow, y] : [x, y];
const round = ([x, y]) => view.narrow ? [around(view.lon + x / view.narrow), Math.min(90, Math.max(-90, y))] : [x, y];
const inner = size - 2 * margin;
const project = at => { const [x, y] = flat(at); return [margin + (x - view.x0) / view.side * inner, size - margin - (y - view.y0) / view.side * inner]; };
const unproject = ([x, y]) => round([view.x0 + (x - margin) / inner * view.side, view.y0 + (size - margin - y) / inner * view.side]).map(v => Number(v.toPrecision(7)));

function place(node, at) { instance.coords[node] = at; edited(); }
function edited() { best = 0; file = null; $('r-index-row').hidden = true; }

// fixed says what keeps places from coming and going here.
const fixed = () => ['distances', 'profiles'].some(k => instance[k]) ? 'This problem has a matrix of distances: a place of its own cannot be added or taken away here.'
  : ['groups', 'shipments'].some(k => instance[k]?.length) ? 'This problem has groups or shipments, which name its places: none can be taken away here.' : '';

function add(at) {
  if (!instance) return;
  if (instance.distances || instance.profiles) { wrong(fixed()); return; }
  const demand = Math.min(amountIn(instance, Number($('r-demand').value) || 0), instance.capacity || Infinity);
  addPlace(instance);
  const i = instance.demands.length - 1;
  instance.coords[i] = at;
  instance.demands[i] = picked ? parts(instance) : demand;
  if (instance.ids) instance.ids[i] = 'new ' + i;
  pick(0);
  edited();
  tables();
  solveAll();
}

function remove(node) {
  if (fixed()) { wrong(fixed()); return; }
  removePlace(instance, node);
  picked = 0;
  edited();
  for (const m of maps) m.routes = null;
  tables();
  solveAll();
}

// tables shows the instance as tables, where they are open.
function tables() {
  fillTables(instance, () => { edited(); frame(); drawAll(); solveAll(); }, remove);
}

function pick(node) {
  picked = node;
  $('r-demand-label').textContent = node ? `Demand of customer ${node}` : 'Demand of new customers';
  if (node) $('r-demand').value = instance.demands[node] / parts(instance);
  drawAll();
}

const drawAll = () => shown().forEach(m => m.draw());
const shown = () => $('r-compare').checked ? maps : maps.slice(0, 1);
function solveAll() { if (instance) shown().forEach(m => m.solve()); }
const solveSoon = later(120, solveAll);

function arrange() {
  const two = $('r-compare').checked;
  $('r-methods').replaceChildren(...shown().map(m => m.method.node));
  maps.forEach(m => { m.method.label.textContent = two ? 'Method ' + m.method.letter : 'Method'; m.head.hidden = !two; m.head.textContent = `${m.method.letter}: ${m.method.name.selectedOptions[0].textContent}`; m.node.classList.toggle('alone', !two); m.method.fill(); });
  $('r-maps').replaceChildren(...shown().map(m => m.node));
}

function use(got) {
  const { best_known, index, count, ...rest } = got;
  instance = { ...rest };
  if (instance.fleet) $('r-open').checked = false; else instance.open = $('r-open').checked || Boolean(rest.open);
  best = best_known || 0;
  $('r-capacity').value = instance.capacity ? instance.capacity / parts(instance) : '';
  $('r-capacity').disabled = Boolean(instance.fleet);
  $('r-ask').hidden = true;
  say($('r-notes'), '');
  if (count > 1) { $('r-index-row').hidden = false; $('r-index').max = count - 1; $('r-index').value = index; } else $('r-index-row').hidden = true;
  for (const m of maps) { m.routes = m.types = null; m.seen = { x: 0, y: 0, k: 1 }; }
  frame();
  pick(0);
  tables();
  solveAll();
}

function clear() {
  wishes++;
  file = null;
  use({ name: 'placed by hand', coords: [[0.5, 0.5]], demands: [0], capacity: Number($('r-capacity').value) || 30, distance: 'exact', count: 1 });
}

async function random(example = false) {
  const wish = ++wishes;
  try {
    const q = new URLSearchParams({ customers: $('r-count').value, capacity: $('r-capacity').value, seed: $('r-seed').value });
    const drawn = await getJSON('/instances/random?' + q);
    if (wish !== wishes) return;
    file = null;
    use(drawn);
    wrong('');
    if (!example) remember();
  } catch (e) { if (wish === wishes) wrong(e.message); }
}

// What a table may lack, and how it is asked for.
const lacks = {
  capacity: ['Capacity of a vehicle', 'does not say what a vehicle carries.'],
  speed: ['Speed in km/h', 'has times, and does not say how fast vehicles drive.'],
};
let asked = null; // the file that lacks something, what is known of it, and what is asked for

// open reads a file by the server. What a table does not say is asked for, one thing after the other.
async function open(f, index = 0, known = {}) {
  const wish = ++wishes;
  try {
    const q = new URLSearchParams({ name: f.name, index, ...known });
    const read = await (await api('/instances?' + q, { method: 'POST', body: f, headers: { 'Content-Type': 'application/octet-stream' } })).json();
    if (wish !== wishes) return;
    use(read);
    file = f;
    told = known;
    wrong('');
    say($('r-notes'), (read.notes || []).join(' '));
  } catch (e) {
    if (wish !== wishes) return;
    if (!lacks[e.missing]) { wrong(e.message); return; }
    wrong('');
    asked = { f, known, what: e.missing };
    $('r-ask-words').textContent = `${f.name} ${lacks[e.missing][1]}`;
    $('r-ask-label').textContent = lacks[e.missing][0];
    $('r-ask-value').value = '';
    $('r-ask').hidden = false;
    $('r-ask-value').focus();
  }
}
$('r-ask').addEventListener('submit', e => {
  e.preventDefault();
  const value = $('r-ask-value').value;
  if (asked && Number(value) > 0) open(asked.f, 0, { ...asked.known, [asked.what]: value });
});
for (const id of ['r-customers', 'r-vehicles']) $(id).addEventListener('toggle', () => instance && tables());

function remember() {
  if (location.pathname !== '/routes') return;
  const q = new URLSearchParams({ n: $('r-count').value, seed: $('r-seed').value, capacity: $('r-capacity').value, method: maps[0].method.name.value });
  if ($('r-compare').checked) q.set('with', maps[1].method.name.value);
  if ($('r-open').checked) q.set('open', 1);
  history.replaceState(null, '', '/routes?' + q);
}

$('r-random').addEventListener('click', () => { if (location.search || instance) $('r-seed').value = Number($('r-seed').value) + 1; random(); });
$('r-clear').addEventListener('click', () => { clear(); if (location.pathname === '/routes') history.replaceState(null, '', '/routes'); });
$('r-compare').addEventListener('change', () => { arrange(); solveAll(); remember(); });
$('r-open').addEventListener('change', e => { if (instance && !instance.fleet) { instance.open = e.target.checked; for (const m of maps) m.routes = null; solveAll(); remember(); } });
$('r-file').addEventListener('change', e => { if (e.target.files[0]) open(e.target.files[0]); e.target.value = ''; });
$('r-index').addEventListener('change', e => { if (file) open(file, e.target.value, told); });
$('r-capacity').addEventListener('change', e => { if (instance && !instance.fleet) { instance.capacity = amountIn(instance, Number(e.target.value)) || 1; tables(); solveAll(); } });
$('r-demand').addEventListener('change', e => { if (picked) { instance.demands[picked] = amountIn(instance, Number(e.target.value) || 0); edited(); tables(); solveAll(); drawAll(); } });
