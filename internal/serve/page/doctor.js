// Doctor: traces in, the command's own page out, in a frame.
import { $, el, say, download } from './util.js';

let files = [];
let request = null;
let wishes = 0; // how often files were wished for: the last wish is granted, whichever comes last

export function enter() {}

const drop = $('d-drop');
for (const kind of ['dragenter', 'dragover']) drop.addEventListener(kind, e => { e.preventDefault(); drop.classList.add('over'); });
for (const kind of ['dragleave', 'drop']) drop.addEventListener(kind, () => drop.classList.remove('over'));
drop.addEventListener('drop', e => { e.preventDefault(); take([...e.dataTransfer.files]); });
$('d-example').addEventListener('click', async () => {
  const wish = ++wishes;
  const trace = await fetch('/example.json.gz').then(got => got.ok ? got.blob() : null).catch(() => null);
  if (wish !== wishes) return;
  if (trace) take([new File([trace], 'example.json.gz')]); else say($('d-error'), 'the example is not there: is haul serve still running?');
});
$('d-file').addEventListener('change', e => { take([...e.target.files]); e.target.value = ''; });

function take(list) {
  if (!list.length) return;
  wishes++;
  files = list;
  const two = files.length === 2;
  const again = diff => el('button', { type: 'button', onclick: () => send(diff) }, diff ? 'As before and after' : 'As ranks of one job');
  const swap = el('button', { type: 'button', onclick: () => { files.reverse(); take(files); } }, 'Swap');
  $('d-files').replaceChildren(...files.map(f => el('span', { class: 'chip' }, f.name)), ...(two ? [again(true), again(false), swap] : []));
  $('d-files').hidden = false;
  send(two);
}

function send(diff) {
  request?.abort();
  say($('d-error'), '');
  $('d-result').hidden = true;
  const form = new FormData();
  for (const f of files) form.append('trace', f, f.name);
  const x = request = new XMLHttpRequest();
  x.open('POST', '/api/v1/doctor' + (diff ? '?diff=1' : ''));
  x.upload.onprogress = e => { $('d-progress').textContent = e.lengthComputable && e.loaded < e.total ? `sending, ${Math.round(100 * e.loaded / e.total)} %` : 'reading…'; };
  x.onerror = () => { $('d-progress').textContent = ''; say($('d-error'), 'the server does not answer, or has refused the file: is haul serve still running?'); };
  x.onload = () => {
    $('d-progress').textContent = '';
    let answer = {};
    try { answer = JSON.parse(x.responseText); } catch { /* shown below */ }
    if (x.status !== 200) { say($('d-error'), answer.detail || `${x.status} ${x.statusText}`); return; }
    show(answer);
  };
  x.send(form);
}

const heads = { trace: 'One trace', ranks: 'The ranks of one job', diff: 'Before and after' };

function show({ kind, page, report, left_out }) {
  say($('d-error'), (left_out || []).join('; '));
  const frame = $('d-frame');
  $('d-how').open = false;
  $('d-links').replaceChildren(el('b', {}, heads[kind]),
    el('a', { class: 'button', href: page, target: '_blank', rel: 'noopener' }, 'Open alone'),
    el('a', { class: 'button', href: page, download: 'doctor.html' }, 'Save the page'),
    el('button', { type: 'button', onclick: () => download('doctor.json', new Blob([JSON.stringify(report, null, 1)], { type: 'application/json' })) }, 'Save as JSON'));
  $('d-result').hidden = false;
  frame.onload = () => {
    const inside = frame.contentDocument;
    if (!inside?.body) return;
    const fit = () => { frame.style.height = Math.max(400, inside.body.offsetTop + inside.body.offsetHeight + 40) + 'px'; };
    fit();
    new ResizeObserver(fit).observe(inside.body);
  };
  frame.src = page;
}
