// An agent's episode in its room, cell by cell. It plays by itself unless motion is unwelcome; the slider goes anywhere in it.
import { el, svg, calm } from './util.js';

const side = 36;

// A goal is a cell that pays, or a key and a door.
export function walk({ caption, size, goal, cells, return: got }) {
  const door = goal.door ?? goal, key = goal.key, at = (c, x, y) => c && x === c[0] && y === c[1];
  const middle = ([x, y]) => [side * (x + 0.5), side * (y + 0.5)];
  const box = svg('svg', { class: 'room-map', viewBox: `0 0 ${side * size} ${side * size}`, role: 'img', 'aria-label': `${caption}: ${cells.length - 1} steps, return ${got}` });
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      box.append(svg('rect', { x: side * x, y: side * y, width: side, height: side, class: at(door, x, y) ? 'goal' : at(key, x, y) ? 'key' : null }));
    }
  }
  const way = svg('path', { class: 'way' }), walker = svg('circle', { class: 'walker', r: side / 3.4 });
  box.append(way, walker);
  const slider = el('input', { type: 'range', min: 0, max: cells.length - 1, value: 0, 'aria-label': 'step of ' + caption });
  const words = el('span', { class: 'small soft' });
  const show = t => {
    const [x, y] = middle(cells[t]);
    walker.setAttribute('cx', x);
    walker.setAttribute('cy', y);
    way.setAttribute('d', cells.slice(0, t + 1).map((c, i) => (i ? 'L' : 'M') + middle(c).join(' ')).join(''));
    slider.value = t;
    words.textContent = `step ${t} of ${cells.length - 1}`;
  };
  let timer = null;
  const button = el('button', { type: 'button', onclick: () => timer ? stop() : play() }, 'Play');
  function stop() { clearInterval(timer); timer = null; button.textContent = 'Play'; }
  function play() {
    button.textContent = 'Pause';
    timer = setInterval(() => {
      if (!box.isConnected) return stop();
      show((Number(slider.value) + 1) % cells.length);
    }, 350);
  }
  slider.addEventListener('input', () => { stop(); show(Number(slider.value)); });
  show(calm() ? cells.length - 1 : 0);
  if (!calm()) play();
  return el('figure', {}, box, el('figcaption', {}, `${caption}, return ${got}`), el('p', { class: 'row' }, button, slider, words));
}
