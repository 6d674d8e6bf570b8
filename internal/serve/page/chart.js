// Line charts in plain SVG: several curves over each other, a cross that reads them, and the last values in words for who does not see them.
import { el, svg, figure } from './util.js';

const most = 600; // points drawn of one curve

// ticks are round numbers between two.
function ticks(lo, hi, count) {
  const span = hi - lo || Math.abs(hi) || 1;
  const raw = span / count, unit = 10 ** Math.floor(Math.log10(raw));
  const step = unit * [1, 2, 5, 10].find(m => unit * m >= raw);
  const out = [];
  for (let t = Math.ceil(lo / step) * step; t <= hi + step * 1e-9; t += step) out.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return out;
}

// Chart is a panel that can be given other curves: [{name, color, dash, points: [[x, y], ...]}].
export class Chart {
  constructor(title, unit) {
    this.title = title;
    this.unit = unit;
    this.curves = [];
    this.canvas = svg('svg', { role: 'img', 'aria-label': title });
    this.words = el('p');
    this.node = el('section', { class: 'chart', 'aria-label': title }, el('h3', {}, title), this.canvas, this.words);
    this.canvas.addEventListener('pointermove', e => this.read(e.offsetX));
    this.canvas.addEventListener('pointerleave', () => this.read(null));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  set(curves, x) {
    this.curves = curves;
    this.x = x;
    this.draw();
  }

  scale() {
    const all = this.curves.flatMap(c => c.points);
    const w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    if (!all.length || !w) return null;
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const [x, y] of all) { x0 = Math.min(x0, x); x1 = Math.max(x1, x); y0 = Math.min(y0, y); y1 = Math.max(y1, y); }
    if (x0 === x1) { x0 -= 1; x1 += 1; }
    const pad = (y1 - y0) * 0.06 || Math.abs(y1) * 0.1 || 1;
    y0 = y0 >= 0 && y0 - pad < 0 ? 0 : y0 - pad;
    y1 += pad;
    const left = 52, right = 12, top = 20, bottom = 38;
    return { w, h, x0, x1, y0, y1, left, right, top, bottom, x: v => left + (v - x0) / (x1 - x0) * (w - left - right), y: v => h - bottom - (v - y0) / (y1 - y0) * (h - top - bottom) };
  }

  draw() {
    const s = this.scale();
    this.canvas.replaceChildren();
    if (!s) return;
    const parts = [];
    for (const t of ticks(s.y0, s.y1, 4)) parts.push(svg('line', { class: 'grid', x1: s.left, x2: s.w - s.right, y1: s.y(t), y2: s.y(t) }), svg('text', { x: s.left - 7, y: s.y(t) + 4, 'text-anchor': 'end' }, figure(t)));
    for (const t of ticks(s.x0, s.x1, Math.max(4, Math.floor(s.w / 110))).filter(Number.isInteger)) parts.push(svg('text', { x: s.x(t), y: s.h - 21, 'text-anchor': 'middle' }, figure(t)));
    parts.push(svg('text', { class: 'axis', x: (s.left + s.w - s.right) / 2, y: s.h - 4, 'text-anchor': 'middle' }, this.x || ''), svg('text', { class: 'axis', x: 2, y: 12 }, this.unit?.trim() || this.title.toLowerCase()));
    for (const c of this.curves) {
      const every = Math.max(1, Math.ceil(c.points.length / most));
      const points = c.points.filter((_, i) => i % every === 0 || i === c.points.length - 1);
      const d = points.map(([x, y], i) => (i ? 'L' : 'M') + s.x(x).toFixed(1) + ' ' + s.y(y).toFixed(1)).join('');
      parts.push(svg('path', { class: 'line s' + c.color % 8, d, 'stroke-dasharray': c.dash ? '5 4' : null }));
      if (points.length === 1) parts.push(svg('circle', { class: 'line s' + c.color % 8, cx: s.x(points[0][0]), cy: s.y(points[0][1]), r: 3 }));
    }
    this.canvas.append(...parts);
    this.canvas.setAttribute('aria-label', this.title + ': ' + this.last());
    this.read(null);
  }

  last() {
    return this.curves.map(c => c.name + ' ' + figure(c.points.at(-1)[1]) + (this.unit || '')).join(', ');
  }

  // read puts the cross where the pointer is, and the values there in words.
  read(px) {
    const s = this.scale();
    this.canvas.querySelector('.cross')?.remove();
    if (!s || px === null) { this.words.textContent = s ? this.last() : 'nothing recorded yet'; return; }
    const at = s.x0 + (px - s.left) / (s.w - s.left - s.right) * (s.x1 - s.x0);
    const near = this.curves.map(c => c.points.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
    const lead = near.reduce((a, b) => Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a);
    const x = s.x(lead[0]);
    this.canvas.append(svg('line', { class: 'cross', x1: x, x2: x, y1: s.top, y2: s.h - s.bottom }));
    // a run that stopped before the cross has no value there
    const there = (c, i) => lead[0] <= c.points.at(-1)[0] ? figure(near[i][1]) + (this.unit || '') : 'ended';
    this.words.textContent = `${this.x} ${figure(lead[0])}: ` + this.curves.map((c, i) => c.name + ' ' + there(c, i)).join(', ');
  }
}

// bar splits a whole into parts: [{name, share, words}].
export function bar(parts, label) {
  const total = parts.reduce((a, p) => a + p.share, 0) || 1;
  const row = el('div', { class: 'bar', role: 'img', 'aria-label': label + ': ' + parts.map(p => p.name + ' ' + p.words).join(', ') });
  const legend = el('ul', { class: 'legend' });
  parts.forEach((p, i) => {
    const piece = el('div', { class: 'b' + Math.min(i, 8), title: p.name + ' ' + p.words });
    piece.style.width = 100 * p.share / total + '%';
    row.append(piece);
    legend.append(el('li', {}, el('i', { class: 'swatch b' + Math.min(i, 8) }), p.name + ' ', el('b', {}, p.words)));
  });
  return el('div', {}, row, legend);
}
