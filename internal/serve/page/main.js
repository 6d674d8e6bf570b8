// The rooms and their addresses: each room has its own, and what is chosen in it stands behind the question mark.
import { $ } from './util.js';

const rooms = {
  runs: { title: 'Runs', load: () => import('./runs.js') },
  routes: { title: 'Routes', load: () => import('./routes.js') },
  doctor: { title: 'Doctor', load: () => import('./doctor.js') },
};

let turns = 0; // how often a room was shown: the last one counts, whichever loads last
async function show(name, focus) {
  const turn = ++turns;
  const room = rooms[name] || rooms.runs;
  document.title = room.title + ' · Haul';
  for (const key of Object.keys(rooms)) $(key).hidden = rooms[key] !== room;
  for (const a of document.querySelectorAll('[data-room]')) {
    if (rooms[a.dataset.room] === room) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
  }
  if (focus) $('main').focus({ preventScroll: true });
  const module = await room.load();
  if (turn !== turns) return;
  module.enter(new URLSearchParams(location.search));
}

const here = () => location.pathname.slice(1);

document.addEventListener('click', e => {
  const a = e.target.closest?.('a[data-room]');
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  if (here() !== a.dataset.room) history.pushState(null, '', a.href);
  show(a.dataset.room, true);
});
addEventListener('popstate', () => show(here(), true));
// A file that misses its place must not replace the page.
for (const kind of ['dragover', 'drop']) addEventListener(kind, e => e.preventDefault());

// The page paints before its room is loaded.
requestAnimationFrame(() => setTimeout(() => show(here(), false)));
