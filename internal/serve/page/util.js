// What every room uses. Names out of runs, files and traces are put in place as text (el), never as markup.

// el makes an element: el('p', {class: 'soft', onclick: f}, 'text', child).
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

const svgNS = 'http://www.w3.org/2000/svg';

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(svgNS, tag), props, children);
}

function fill(node, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'value' || key === 'checked' || key === 'hidden') node[key] = value;
    else node.setAttribute(key, value === true ? '' : value);
  }
  node.append(...children.flat().filter(c => c !== null && c !== undefined));
  return node;
}

export const $ = id => document.getElementById(id);

// Failure is a refusal of the server's, in its own words.
export class Failure extends Error {}

async function failure(response) {
  let words = response.status + ' ' + response.statusText, missing;
  try { ({ detail: words = words, missing } = await response.json()); } catch { /* no object of ours */ }
  return Object.assign(new Failure(words), { missing });
}

export async function api(path, options = {}) {
  let response;
  try {
    response = await fetch('/api/v1' + path, options);
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Failure('the server does not answer: is haul serve still running?');
  }
  if (!response.ok) throw await failure(response);
  return response;
}

export const getJSON = async path => (await api(path)).json();

export const post = (path, body, options = {}) =>
  api(path, { method: 'POST', body: JSON.stringify(body), ...options, headers: { 'Content-Type': 'application/json', ...options.headers } });

// streamed posts a request and hands over each event of its answer.
export async function streamed(path, body, signal, each) {
  const response = await post(path, body, { signal, headers: { Accept: 'text/event-stream' } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split('\n\n');
    rest = events.pop();
    for (const e of events) {
      const name = /^event: (.*)$/m.exec(e), data = /^data: (.*)$/m.exec(e);
      if (name && data) each(name[1], JSON.parse(data[1]));
    }
  }
}

// say shows words where they belong, or takes them away.
export function say(node, words) {
  node.textContent = words || '';
  node.hidden = !words;
}

const digits = n => new Intl.NumberFormat('en', { maximumSignificantDigits: n });
const short = digits(4), grouped = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export function figure(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return '–';
  if (x !== 0 && (Math.abs(x) < 1e-3 || Math.abs(x) >= 1e12)) return x.toExponential(2);
  return Math.abs(x) >= 1000 ? grouped.format(x) : short.format(x);
}

export const percent = x => x === null || x === undefined ? '–' : figure(100 * x) + ' %';

export function duration(s) {
  if (!Number.isFinite(s)) return '–';
  if (s < 90) return figure(s) + ' s';
  if (s < 5400) return Math.round(s / 60) + ' min';
  return (s / 3600).toFixed(1) + ' h';
}

// later runs a function once, a moment after it was last asked for.
export function later(ms, f) {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(f, ms); };
}

export const calm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const a = el('a', { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
