// Shows the values of a curve under the pointer, and chooses a part of the steps by
// dragging. The values are fetched when the pointer first comes.

const cache = new Map(); // of values, by address
document.addEventListener('refreshed', () => cache.clear());

function load(address) {
  if (!cache.has(address)) {
    cache.set(address, fetch(address).then(r => r.ok ? r.json() : null).catch(() => null));
  }
  return cache.get(address);
}

const digits = new Intl.NumberFormat('en', {maximumSignificantDigits: 4});
const small = v => v !== 0 && (Math.abs(v) < 1e-3 || Math.abs(v) >= 1e6);
const text = v => v === null || v === undefined ? '–' : small(v) ? v.toExponential(2) : digits.format(v);

// nearest returns the index of the point next to x.
function nearest(xs, x) {
  let best = -1;
  for (let i = 0; i < xs.length; i++) {
    if (xs[i] !== null && (best < 0 || Math.abs(xs[i] - x) < Math.abs(xs[best] - x))) best = i;
  }
  return best;
}

function box(figure, name) {
  let e = figure.querySelector(':scope > .' + name);
  if (!e) {
    e = document.createElement('div');
    e.className = name;
    e.setAttribute('aria-hidden', 'true');
    figure.append(e);
  }
  return e;
}

function clear(figure) {
  for (const e of figure.querySelectorAll(':scope > .values, :scope > .cross')) e.remove();
}

// panel measures the drawing area of a figure.
function panel(figure) {
  const plot = figure.querySelector('.plot');
  if (!plot) return null;
  const [lo, hi] = plot.dataset.x.split(' ').map(Number);
  const frame = figure.getBoundingClientRect(), whole = plot.getBoundingClientRect();
  const left = whole.left - frame.left, width = whole.width;
  return {lo, hi, left, width, top: whole.top - frame.top + 8, height: whole.height - 30,
    at: px => lo + (px - left) / width * (hi - lo), to: x => left + (x - lo) / (hi - lo) * width};
}

function line(...parts) {
  const row = document.createElement('div');
  for (const part of parts) {
    const span = document.createElement('span');
    if (part instanceof Node) span.append(part); else span.textContent = part;
    row.append(span);
  }
  return row;
}

async function show(figure, px) {
  const data = await load(figure.dataset.points);
  const area = panel(figure);
  if (!data || !area || !figure.matches(':hover')) return;
  const x = area.at(px);
  const values = box(figure, 'values');
  const rows = [];
  let place = null;
  for (const arm of data.arms) {
    const i = nearest(arm.x, x);
    if (i < 0) continue;
    if (place === null || Math.abs(arm.x[i] - x) < Math.abs(place - x)) place = arm.x[i];
    const name = document.createElement('span');
    name.textContent = data.arms.length > 1 ? arm.name : data.y || arm.name;
    let shown = text(arm.mean[i]);
    if (arm.lo[i] !== null && arm.hi[i] !== null) shown += ' [' + text(arm.lo[i]) + ', ' + text(arm.hi[i]) + ']';
    rows.push(line(name, shown));
  }
  if (place === null) return;
  values.replaceChildren(line(data.x, text(place)), ...rows);
  const cross = box(figure, 'cross');
  const left = area.to(place);
  Object.assign(cross.style, {left: left + 'px', top: area.top + 'px', height: area.height + 'px'});
  const room = figure.clientWidth - values.offsetWidth;
  values.style.left = Math.max(0, Math.min(room, left > area.left + area.width / 2 ? left - values.offsetWidth - 12 : left + 12)) + 'px';
  values.style.top = area.top + 4 + 'px';
}

let drag = null; // {figure, from}

const inside = event => event.target instanceof Element && event.target.closest('figure.chart');
const offset = (figure, event) => event.clientX - figure.getBoundingClientRect().left;

document.addEventListener('pointermove', event => {
  const figure = drag ? drag.figure : inside(event);
  if (!figure) return;
  const px = offset(figure, event);
  if (!drag) { show(figure, px); return; }
  const area = panel(figure);
  const clamp = v => Math.max(area.left, Math.min(area.left + area.width, v));
  const [a, b] = [clamp(drag.from), clamp(px)].sort((x, y) => x - y);
  Object.assign(box(figure, 'drag').style, {left: a + 'px', width: b - a + 'px', top: area.top + 'px', height: area.height + 'px'});
});

document.addEventListener('pointerout', event => {
  const figure = inside(event);
  if (figure && !figure.contains(event.relatedTarget)) clear(figure);
});

document.addEventListener('pointerdown', event => {
  const figure = inside(event);
  const part = figure && !('whole' in figure.dataset); // its steps are training's
  if (part && event.pointerType === 'mouse' && event.button === 0 && event.target.closest('.plot')) {
    drag = {figure, from: offset(figure, event)};
    event.preventDefault();
  }
});

document.addEventListener('pointerup', async event => {
  if (!drag) return;
  const {figure, from} = drag;
  drag = null;
  figure.querySelector(':scope > .drag')?.remove();
  const area = panel(figure), to = offset(figure, event);
  if (!area || Math.abs(to - from) < 12) return;
  const data = await load(figure.dataset.points);
  if (!data) return;
  const [x1, x2] = [area.at(Math.min(from, to)), area.at(Math.max(from, to))];
  // An address has steps, whatever the axis counts.
  const steps = data.arms.flatMap(arm => arm.step.filter((s, i) => s !== null && arm.x[i] >= x1 && arm.x[i] <= x2));
  if (steps.length < 2) return;
  const address = new URL(location.href);
  address.searchParams.set('from', Math.min(...steps));
  address.searchParams.set('to', Math.max(...steps));
  location.assign(address);
});
