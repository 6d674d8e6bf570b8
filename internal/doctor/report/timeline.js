(() => {
  const data = JSON.parse(document.getElementById('timeline-data').textContent);
  const canvas = document.getElementById('timeline'), tip = document.getElementById('tip'), box = canvas.parentElement;
  const ctx = canvas.getContext('2d');
  const labelWidth = () => box.clientWidth < 640 ? 84 : 172;
  const rowHeight = data.lanes.length > 24 ? 16 : 24, gap = 5, axis = 26;
  let from = data.from, to = Math.max(data.to, data.from + 1), hover = null, lit = null;
  for (const lane of data.lanes) {
    const n = lane.marks.length / 4;
    lane.s = new Float64Array(n); lane.e = new Float64Array(n);
    for (let i = 0, at = 0; i < n; i++) {
      lane.s[i] = at + lane.marks[4 * i];
      lane.e[i] = lane.s[i] + lane.marks[4 * i + 1];
      at = lane.e[i];
    }
  }
  const style = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  let colors = [];
  const paint = () => { colors = data.classes.map(c => style(c) || '#999'); };
  const height = () => axis + data.lanes.length * (rowHeight + gap) + 6;
  const words = ns => ns >= 1e9 ? (ns / 1e9).toPrecision(4) + ' s' : ns >= 1e6 ? (ns / 1e6).toPrecision(4) + ' ms' : ns >= 1e3 ? (ns / 1e3).toPrecision(4) + ' µs' : Math.round(ns) + ' ns';
  const tick = span => { for (let u = 1; ; u *= 10) for (const m of [1, 2, 5]) if (span / (u * m) <= (box.clientWidth < 640 ? 4 : 9)) return u * m; };
  const axisWords = (ns, step) => step >= 1e5 ? +(ns / 1e6).toFixed(1) + ' ms' : step >= 1e2 ? +(ns / 1e6).toFixed(4) + ' ms' : +(ns / 1e3).toFixed(3) + ' µs';
  const width = () => box.clientWidth - labelWidth();
  const x = t => labelWidth() + (t - from) / (to - from) * width();
  // The first mark that may reach into the window: ends are nearly in order, so a few before it are looked at too.
  const first = (lane, t) => {
    let lo = 0, hi = lane.e.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (lane.e[mid] > t) hi = mid; else lo = mid + 1; }
    return Math.max(0, lo - 8);
  };
  function draw() {
    const ratio = window.devicePixelRatio || 1, w = box.clientWidth, h = height();
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
      canvas.style.width = w + 'px'; canvas.style.height = h + 'px';
    }
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, w, h);
    ctx.font = '12px system-ui, sans-serif'; ctx.textBaseline = 'middle';
    const step = tick(to - from);
    ctx.textAlign = 'center';
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      const at = x(t);
      ctx.fillStyle = style('line'); ctx.fillRect(at, axis - 6, 1, h - axis);
      if (at > labelWidth() + 14 && at < w - 24) { ctx.fillStyle = style('soft'); ctx.fillText(axisWords(t, step), at, 11); }
    }
    data.lanes.forEach((lane, row) => {
      const y = axis + row * (rowHeight + gap);
      ctx.fillStyle = style('track'); ctx.fillRect(labelWidth(), y, width(), rowHeight);
      ctx.fillStyle = style('ink'); ctx.textAlign = 'right';
      let name = lane.label;
      while (name.length > 3 && ctx.measureText(name).width > labelWidth() - 12) name = name.slice(0, -2) + '…';
      ctx.fillText(name, labelWidth() - 8, y + rowHeight / 2);
      ctx.save(); ctx.beginPath(); ctx.rect(labelWidth(), y, width(), rowHeight); ctx.clip();
      let last = -1, lastClass = -1;
      for (let i = first(lane, from); i < lane.s.length && lane.s[i] < to; i++) {
        if (lane.e[i] <= from) continue;
        const a = x(lane.s[i]), b = Math.max(a + 0.7, x(lane.e[i])), c = lane.marks[4 * i + 2];
        if (b - last < 0.35 && c === lastClass) continue;
        ctx.fillStyle = colors[c]; ctx.fillRect(a, y, b - a, rowHeight);
        if (b - a > 46 && rowHeight > 18) {
          ctx.fillStyle = '#fff'; ctx.textAlign = 'left';
          const text = data.labels[lane.marks[4 * i + 3]].replace(/^aten::|^backward of /, '');
          const room = Math.floor((b - Math.max(a, labelWidth()) - 8) / 6.6);
          if (room > 3) ctx.fillText(text.length > room ? text.slice(0, room - 1) + '…' : text, Math.max(a, labelWidth()) + 4, y + rowHeight / 2);
        }
        last = b; lastClass = c;
      }
      ctx.restore();
    });
    for (const [s, e] of data.steps) {
      ctx.fillStyle = style('soft');
      for (const t of [s, e]) if (t >= from && t <= to) ctx.fillRect(x(t), axis - 8, 1, h - axis + 4);
    }
    if (lit) {
      ctx.fillStyle = style('lit'); ctx.strokeStyle = style('f0'); ctx.lineWidth = 1.5;
      const a = Math.max(labelWidth(), x(lit.start)), b = Math.min(w, Math.max(x(lit.start) + 2, x(lit.end)));
      if (b > a) { ctx.fillRect(a, axis - 8, b - a, h - axis); ctx.strokeRect(a, axis - 8, b - a, h - axis + 2); }
    }
  }
  let asked = false;
  const later = () => { if (!asked) { asked = true; requestAnimationFrame(() => { asked = false; draw(); }); } };
  function show(a, b) {
    const least = 50, span = Math.min(data.span, Math.max(least, b - a));
    const middle = (a + b) / 2;
    from = Math.min(Math.max(0, middle - span / 2), data.span - span); to = from + span;
    later();
  }
  const zoom = (factor, at) => { const t = at === undefined ? (from + to) / 2 : at; show(t - (t - from) * factor, t + (to - t) * factor); };
  const timeAt = px => from + (px - labelWidth()) / width() * (to - from);
  canvas.addEventListener('wheel', e => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) {
      e.preventDefault();
      if (e.shiftKey && !e.ctrlKey) { const d = (e.deltaY || e.deltaX) / 600 * (to - from); show(from + d, to + d); }
      else zoom(Math.exp(e.deltaY / 300), timeAt(e.offsetX));
    }
  }, { passive: false });
  let held = null;
  canvas.addEventListener('pointerdown', e => { held = { x: e.clientX, from, to }; canvas.setPointerCapture(e.pointerId); });
  canvas.addEventListener('pointerup', () => { held = null; });
  canvas.addEventListener('dblclick', e => zoom(0.4, timeAt(e.offsetX)));
  canvas.addEventListener('pointermove', e => {
    if (held) { const d = (held.x - e.clientX) / width() * (held.to - held.from); show(held.from + d, held.to + d); return; }
    const row = Math.floor((e.offsetY - axis) / (rowHeight + gap)), lane = data.lanes[row];
    tip.hidden = true;
    if (!lane || e.offsetX < labelWidth()) return;
    const t = timeAt(e.offsetX), slack = (to - from) / width() * 1.5;
    for (let i = first(lane, t - slack); i < lane.s.length && lane.s[i] <= t + slack; i++) {
      if (lane.e[i] + slack < t) continue;
      tip.textContent = data.labels[lane.marks[4 * i + 3]] + ', ' + words(lane.marks[4 * i + 1]) + ', at ' + words(lane.s[i]);
      tip.hidden = false;
      tip.style.left = Math.max(0, Math.min(e.offsetX + 12, box.clientWidth - tip.offsetWidth - 4)) + 'px';
      tip.style.top = (e.offsetY + 16) + 'px';
      break;
    }
  });
  canvas.addEventListener('pointerleave', () => { tip.hidden = true; });
  canvas.addEventListener('keydown', e => {
    const d = (to - from) / 5;
    const keys = { ArrowLeft: () => show(from - d, to - d), ArrowRight: () => show(from + d, to + d), '+': () => zoom(0.6), '=': () => zoom(0.6), '-': () => zoom(1.7), '0': () => show(0, data.span) };
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });
  const bind = (id, f) => document.getElementById(id).addEventListener('click', f);
  bind('zoom-in', () => zoom(0.5)); bind('zoom-out', () => zoom(2)); bind('zoom-all', () => { lit = null; show(0, data.span); });
  bind('zoom-step', () => { lit = null; show(data.from, data.to); });
  const turns = {};
  for (const button of document.querySelectorAll('[data-place]')) {
    const list = data.places.filter(p => p.id === button.dataset.place);
    if (!list.length) { button.hidden = true; continue; }
    button.addEventListener('click', () => {
      const n = turns[button.dataset.place] = (turns[button.dataset.place] ?? -1) + 1, p = list[n % list.length];
      const room = Math.max((p.end - p.start) * 0.6, 2000);
      lit = p; show(p.start - room, p.end + room);
      document.getElementById('timeline-head').scrollIntoView({ block: 'start' });
    });
  }
  const theme = matchMedia('(prefers-color-scheme: dark)');
  theme.addEventListener('change', () => { paint(); later(); });
  new ResizeObserver(later).observe(box);
  paint(); draw();
})();
