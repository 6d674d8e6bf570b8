// What stands under a map: a line per route, a time bar per vehicle, and who is not served.
import { el, svg, figure } from './util.js';

// minutes are the units of time per minute where times are those of a day: as the instance says, or 60 where they look like seconds of one; 0: they are not.
export function minutes(instance, plan) {
  const routes = plan?.routes || [];
  return instance.clock || (routes.some(r => r.end > 5000) && routes.every(r => r.end < 172800) ? 60 : 0);
}

// clock writes a time as the problem counts it: a time of day as hours and minutes, all else as a number.
export function clock(t, minute) {
  if (!minute) return figure(t);
  const m = Math.round(t / minute);
  return `${String(Math.floor(m / 60)).padStart(2, '0')}:${String(m % 60).padStart(2, '0')}`;
}

// span writes how long something takes, likewise.
export const span = (t, minute) => minute ? `${Math.floor(Math.round(t / minute) / 60)}:${String(Math.round(t / minute) % 60).padStart(2, '0')} h` : figure(t);

const radians = d => d * Math.PI / 180;

// way is how far two places are, by the instance's own rule; null where only the server knows.
function way(instance, a, b) {
  if (instance.distances) return instance.distances[a][b];
  const [p, q] = [instance.coords?.[a], instance.coords?.[b]];
  if (!p || !q) return null;
  const d = Math.hypot(p[0] - q[0], p[1] - q[1]);
  switch (instance.distance || 'exact') {
    case 'exact': return d;
    case 'rounded': return Math.floor(d + 0.5);
    case 'ceil': return Math.ceil(d);
    case 'floor': return Math.floor(d);
    case 'metres': {
      const h = Math.sin(radians(q[1] - p[1]) / 2) ** 2 + Math.cos(radians(p[1])) * Math.cos(radians(q[1])) * Math.sin(radians(q[0] - p[0]) / 2) ** 2;
      return 2 * 6371008.8 * Math.asin(Math.min(1, Math.sqrt(h)));
    }
  }
  return null;
}

// ends are the depots of a route: by its vehicle type, or depot 0; null where it has none.
export function ends(instance, type) {
  const v = instance.fleet?.[type ?? 0];
  const at = d => d === -1 ? null : d ?? 0;
  return v ? [at(v.start), at(v.end)] : [0, instance.open ? null : 0];
}

// stopsOf are a route's places, its depots included.
export function stopsOf(instance, route, type) {
  const [from, to] = ends(instance, type);
  return [...(from === null ? [] : [from]), ...route, ...(to === null ? [] : [to])];
}

const title = (instance, i) => instance.ids?.[i] ?? String(i);

// far writes a distance: kilometres where the problem counts metres.
export const far = (instance, d) => d !== null && instance.distance === 'metres' ? `${(d / 1000).toFixed(1)} km` : figure(d);

// hues gives routes their colours by the first of their customers, so that the same route has the same colour on both maps.
export function hues(routes) {
  const least = routes.map(r => Math.min(...r)), out = [];
  [...least.keys()].sort((a, b) => least[a] - least[b]).forEach((i, k) => out[i] = k % 8);
  return out;
}

// routeTable lists routes, each with its stops in a row below it. With a plan it has durations and times, which are the server's.
export function routeTable(instance, routes, types, plan, minute) {
  const head = ['Route', 'Stops', 'Load', 'Length', ...(plan ? ['Duration', 'Leaves', 'Returns'] : [])];
  const hue = hues(routes), rows = routes.flatMap((r, i) => {
    const p = plan?.routes?.[i], stops = stopsOf(instance, r, types?.[i]);
    let length = p?.distance ?? 0;
    if (!p) for (let k = 1; k < stops.length; k++) { const d = way(instance, stops[k - 1], stops[k]); length = d === null || length === null ? null : length + d; }
    const load = p?.load?.length ? p.load.join(', ') : r.reduce((a, c) => a + instance.demands[c], 0);
    const order = p ? p.stops.filter(s => s.kind !== 'start').map(s => el('span', { title: s.name || null }, `${s.kind === 'customer' ? s.id : s.kind} `, el('b', {}, clock(s.arrival, minute)), s.wait > 0 ? ` (waits ${span(s.wait, minute)})` : ''))
      : r.map(c => el('span', {}, title(instance, c)));
    return [el('tr', {}, el('th', { scope: 'row' }, el('i', { class: 'swatch b' + hue[i] }), p?.vehicle && instance.fleet ? `${i + 1}, ${p.vehicle}` : i + 1), el('td', {}, r.length), el('td', {}, load), el('td', {}, far(instance, length)),
      ...(plan ? [el('td', {}, span(p?.duration ?? 0, minute)), el('td', {}, clock(p?.start ?? 0, minute)), el('td', {}, clock(p?.end ?? 0, minute))] : [])),
    el('tr', {}, el('td', { class: 'order', colspan: head.length }, order))];
  });
  return el('table', { class: 'routes' }, el('thead', {}, el('tr', {}, head.map(h => el('th', { scope: 'col' }, h)))), el('tbody', {}, rows));
}

// timeBars draws a row per vehicle: what it drives, waits and serves, with windows that it must meet.
export function timeBars(plan, minute, hue) {
  const routes = plan.routes || [];
  if (!routes.length) return null;
  const t0 = Math.min(...routes.map(r => r.start)), t1 = Math.max(...routes.map(r => r.end)), span = t1 - t0 || 1;
  const w = 1000, row = 30, left = 60, x = t => left + (t - t0) / span * (w - left - 10);
  const box = svg('svg', { class: 'bars', viewBox: `0 0 ${w} ${row * routes.length + 26}`, role: 'img', 'aria-label': `times of ${routes.length} vehicles, from ${clock(t0, minute)} to ${clock(t1, minute)}` });
  routes.forEach((r, i) => {
    const y = row * i + 4, piece = (from, to, kind, words) => to > from && box.append(svg('rect', { class: kind, x: x(from), y, width: Math.max(1, x(to) - x(from)), height: row - 10 }, svg('title', {}, words)));
    box.append(svg('text', { x: left - 8, y: y + 15, 'text-anchor': 'end' }, i + 1));
    let at = r.start;
    for (const s of r.stops) {
      piece(at, s.arrival, 'drive f' + hue[i], `drives to ${s.id}, ${clock(at, minute)} to ${clock(s.arrival, minute)}`);
      piece(s.arrival, s.begin, 'wait', `waits at ${s.id} until ${clock(s.begin, minute)}`);
      piece(s.begin, s.depart, 'serve f' + hue[i], `${s.kind === 'customer' ? 'serves ' : ''}${s.id}, ${clock(s.begin, minute)} to ${clock(s.depart, minute)}`);
      at = s.depart;
    }
  });
  for (let k = 0; k <= 4; k++) box.append(svg('text', { x: x(t0 + span * k / 4), y: row * routes.length + 20, 'text-anchor': k === 0 ? 'start' : k === 4 ? 'end' : 'middle' }, clock(t0 + span * k / 4, minute)));
  return el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'time bars' }, box);
}

// leftOut says why customers are on no route.
export function leftOut(unserved) {
  if (!unserved?.length) return null;
  return el('div', { class: 'notice' }, el('p', {}, `${unserved.length} not served:`), el('ul', {}, unserved.slice(0, 100).map(u => el('li', {}, el('b', {}, u.id), ': ' + u.reason))));
}
