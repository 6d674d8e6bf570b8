// The instance as tables: customers with their windows, and vehicles. What is written there changes the instance at once.
import { $, el } from './util.js';
import { clock } from './plan.js';
import { byPlace, inObjects, customersOf } from './parts.js';

const most = 300; // rows that are shown

export const depots = instance => instance.depots || 1;
export const customers = instance => instance.demands.length - depots(instance);

// Amounts are shown in the units of the file, of which fractions says how many parts they count.
export const parts = (instance, dimension = 0) => instance.fractions?.[dimension] || 1;
export const amountIn = (instance, units) => Math.max(0, Math.round(units * parts(instance)));

const empty = neutral => Array.isArray(neutral) ? [] : neutral;

// addPlace gives every list by place an entry that asks for nothing.
export function addPlace(instance) {
  for (const [key, neutral] of Object.entries(byPlace)) instance[key]?.push(empty(neutral));
  for (const [list, keys] of Object.entries(inObjects)) for (const one of instance[list] ?? []) for (const key of keys) one[key]?.push(0);
}

// removePlace takes the entries of a place away, and renumbers customers that objects name.
export function removePlace(instance, place) {
  for (const key of Object.keys(byPlace)) instance[key]?.splice(place, 1);
  for (const [list, keys] of Object.entries(inObjects)) for (const one of instance[list] ?? []) for (const key of keys) one[key]?.splice(place, 1);
  const behind = c => c > place ? c - 1 : c;
  for (const [list, keys] of Object.entries(customersOf)) for (const one of instance[list] ?? []) for (const key of keys) {
    if (Array.isArray(one[key])) one[key] = one[key].filter(c => c !== place).map(behind);
    else if (one[key] !== undefined) one[key] = behind(one[key]);
  }
}

// fillTables shows an instance; changed is called after each edit, removed with the place to be taken away.
export function fillTables(instance, changed, removed) {
  if ($('r-customers').open) $('r-customers-table').replaceChildren(customerTable(instance, changed, removed));
  if ($('r-vehicles').open) $('r-vehicles-table').replaceChildren(vehicleTable(instance, changed));
}

const cell = (label, value, set, type = 'number') => el('td', {}, el('input', { type, value: value ?? '', step: 'any', 'aria-label': label, onchange: e => set(e.target.value) }));
const number = (text, otherwise = 0) => text.trim() === '' || !Number.isFinite(Number(text)) ? otherwise : Number(text);
const whole = text => Math.max(0, Math.round(number(text)));

// A point in time as it is written and read: 08:30 where times are those of a day.
const shown = (instance, t) => t === undefined || t === null ? '' : instance.clock ? clock(t, instance.clock) : t;
const point = (instance, text, otherwise = 0) => {
  const [, h, m] = /^\s*(\d{1,3}):(\d\d)/.exec(text) ?? [];
  return instance.clock && h !== undefined ? (60 * h + Number(m)) * instance.clock : number(text, otherwise);
};

function head(...names) { return el('thead', {}, el('tr', {}, names.map(n => el('th', { scope: 'col' }, n)))); }

function customerTable(instance, changed, removed) {
  const total = instance.demands.length, rows = [];
  const list = (key, make) => instance[key] ??= Array.from({ length: total }, make);
  for (let i = 0; i < Math.min(total, most); i++) {
    const name = instance.ids?.[i] ?? (i < depots(instance) ? `depot ${i}` : String(i)), w = instance.windows?.[i] ?? [];
    const window = k => text => {
      const all = list('windows', () => []), now = all[i][0] ?? [0];
      const next = [k === 0 ? point(instance, text) : now[0] ?? 0, k === 1 ? point(instance, text, null) : now[1] ?? null];
      all[i] = next[0] === 0 && next[1] === null ? [] : [next[1] === null ? [next[0]] : next];
      changed();
    };
    const at = k => instance.coords ? cell(`${'xy'[k]} of ${name}`, instance.coords[i][k], t => { instance.coords[i][k] = number(t); changed(); }) : el('td', {}, '–');
    rows.push(el('tr', {}, cell(`name of ${name}`, name, t => { list('ids', (_, j) => String(j))[i] = t; changed(); }, 'text'), at(0), at(1),
      cell(`demand of ${name}`, instance.demands[i] / parts(instance), t => { instance.demands[i] = amountIn(instance, number(t)); changed(); }),
      w.length > 1 ? el('td', { colspan: 2 }, w.map(s => s.map(t => shown(instance, t)).join('–')).join(', ')) : [cell(`earliest time of ${name}`, shown(instance, w[0]?.[0]), window(0), instance.clock ? 'text' : 'number'), cell(`latest time of ${name}`, shown(instance, w[0]?.[1]), window(1), instance.clock ? 'text' : 'number')],
      cell(`service time of ${name}`, instance.service?.[i], t => { list('service', () => 0)[i] = Math.max(0, number(t)); changed(); }),
      el('td', {}, i < depots(instance) ? 'depot' : el('button', { type: 'button', 'aria-label': `remove ${name}`, onclick: () => removed(i) }, '×'))));
  }
  const table = el('table', { class: 'edit' }, head('name', instance.distance === 'metres' ? 'lon' : 'x', instance.distance === 'metres' ? 'lat' : 'y', 'demand', 'from', 'to', 'service', ''), el('tbody', {}, rows));
  return total > most ? el('div', {}, el('p', { class: 'small soft' }, `The first ${most} of ${total} places.`), table) : table;
}

function vehicleTable(instance, changed) {
  const fleet = instance.fleet;
  const rows = (fleet ?? [null]).map((v, i) => {
    const name = v?.name || `type ${i + 1}`;
    const shift = k => text => {
      const now = v.shift ?? [0], next = [k === 0 ? point(instance, text) : now[0], k === 1 ? point(instance, text, null) : now[1] ?? null];
      v.shift = next[1] === null ? [next[0]] : next;
      changed();
    };
    if (!v) return el('tr', {}, el('td', {}, 'all'), cell('number of vehicles, empty for any', instance.vehicles || '', t => { instance.vehicles = whole(t); changed(); }),
      cell('capacity', instance.capacity / parts(instance), t => { instance.capacity = Math.max(1, amountIn(instance, number(t))); $('r-capacity').value = instance.capacity / parts(instance); changed(); }), el('td', {}, '–'), el('td', {}, '–'),
      cell('longest duration, empty for any', instance.max_duration || '', t => { instance.max_duration = Math.max(0, number(t)); changed(); }), el('td', {}, '–'));
    return el('tr', {}, cell('name of ' + name, v.name ?? '', t => { v.name = t; changed(); }, 'text'), cell('number of ' + name + ', empty for any', v.count || '', t => { v.count = whole(t); changed(); }),
      cell('capacity of ' + name, v.capacity && v.capacity[0] / parts(instance), t => { v.capacity = [Math.max(1, amountIn(instance, number(t))), ...(v.capacity ?? []).slice(1)]; changed(); }),
      cell('shift of ' + name + ' from', shown(instance, v.shift?.[0]), shift(0), instance.clock ? 'text' : 'number'), cell('shift of ' + name + ' to', shown(instance, v.shift?.[1]), shift(1), instance.clock ? 'text' : 'number'),
      cell('longest duration of ' + name, v.max_duration ?? '', t => { const n = number(t, null); if (n === null) delete v.max_duration; else v.max_duration = n; changed(); }),
      cell('fixed cost of ' + name, v.fixed_cost || '', t => { v.fixed_cost = number(t); changed(); }));
  });
  const add = el('button', { type: 'button', onclick: () => {
    const common = { capacity: [instance.capacity || 1], ...(instance.vehicles ? { count: instance.vehicles } : {}), ...(instance.max_duration ? { max_duration: instance.max_duration } : {}), ...(instance.open ? { end: -1 } : {}) };
    instance.fleet = [...(instance.fleet ?? [{ name: 'type 1', ...common }]), { name: `type ${(instance.fleet?.length ?? 1) + 1}`, ...common }];
    for (const key of ['capacity', 'vehicles', 'max_duration', 'open']) delete instance[key];
    changed();
    $('r-vehicles-table').replaceChildren(vehicleTable(instance, changed));
  } }, 'Add a vehicle type');
  return el('div', {}, el('table', { class: 'edit' }, head('name', 'count', 'capacity', 'from', 'to', 'longest duration', 'fixed cost'), el('tbody', {}, rows)), el('p', { class: 'row' }, add));
}
