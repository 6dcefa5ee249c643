// Keeps the page up to date: when the store changes, the page is fetched again and the
// parts marked data-live that differ are replaced. The server escapes all text, and its
// policy allows no inline script, so a fetched page cannot run anything.

const pulse = document.getElementById('pulse');
const pause = 1500; // milliseconds between two fetches at least
const rest = 5; // times as long as a fetch took, so that a page takes no machine from its run
let last = 0, took = 0, waiting = false, busy = false;

function beat() {
  pulse.classList.remove('beat');
  void pulse.offsetWidth; // begins the animation again
  pulse.classList.add('beat');
}

// keep carries over what the reader did to a part: open details, chosen boxes, scrolling.
function keep(from, to) {
  for (const d of from.querySelectorAll('details[id][open]')) {
    const other = to.querySelector('#' + CSS.escape(d.id));
    if (other) other.open = true;
  }
  for (const box of from.querySelectorAll('input[type=checkbox]:checked')) {
    const other = to.querySelector('input[value="' + CSS.escape(box.value) + '"]');
    if (other) other.checked = true;
  }
  const here = from.querySelector('.here input[value]');
  if (here) to.querySelector('input[value="' + CSS.escape(here.value) + '"]')?.closest('tr')?.classList.add('here');
}

function replace(part, fresh) {
  const focused = part.contains(document.activeElement);
  if (focused && document.activeElement !== part) return; // the reader is in it
  keep(part, fresh);
  const tall = part.querySelector('.tall')?.scrollTop, wide = part.scrollLeft;
  const made = document.importNode(fresh, true);
  part.replaceWith(made);
  if (tall) made.querySelector('.tall').scrollTop = tall;
  made.scrollLeft = wide;
}

const source = new Map(); // of each part, as the server sent it
for (const part of document.querySelectorAll('[data-live][id]')) source.set(part.id, part.outerHTML);

export async function refresh(address = location.href) {
  if (busy) { waiting = true; return; }
  busy = true;
  last = Date.now();
  try {
    const answer = await fetch(address, {headers: {Accept: 'text/html'}});
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
    for (const part of fresh.querySelectorAll('[data-live][id]')) {
      const now = document.getElementById(part.id);
      const text = part.outerHTML;
      if (!now || source.get(part.id) === text) continue;
      source.set(part.id, text);
      replace(now, part);
    }
    document.dispatchEvent(new CustomEvent('refreshed'));
  } catch {
    pulse.classList.replace('on', 'off'); // the server has gone; the stream says when it is back
  } finally {
    took = Date.now() - last;
    busy = false;
    if (waiting) { waiting = false; soon(); }
  }
}

// showActivity shows what a run is doing, as the server's template does.
function showActivity(now) {
  const line = document.getElementById('now');
  if (!line) return;
  const text = document.createElement('span');
  text.textContent = now.text;
  line.replaceChildren(text);
  if (!now.total) return;
  const bar = document.createElement('progress');
  bar.max = now.total;
  bar.value = now.done;
  bar.ariaLabel = 'progress of the phase';
  line.append(' ', bar);
}

let timer;
function soon() {
  clearTimeout(timer);
  if (document.hidden) { waiting = true; return; }
  timer = setTimeout(() => refresh(), Math.max(0, last + Math.max(pause, rest * took) - Date.now()));
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden && waiting) { waiting = false; soon(); }
});

// A browser allows six connections to a server: hidden pages give theirs back.
if (document.querySelector('[data-live]')) {
  let stream = null;
  let lost = false;
  const show = (on, text) => {
    pulse.classList.toggle('on', on);
    pulse.classList.toggle('off', !on);
    pulse.title = text;
  };
  const close = () => { if (stream) { stream.close(); stream = null; lost = true; } };
  const open = () => {
    if (stream || document.hidden) return;
    const run = document.getElementById('now')?.dataset.run;
    stream = new EventSource('/changes' + (run ? '?run=' + run : ''));
    stream.addEventListener('activity', event => showActivity(JSON.parse(event.data)));
    stream.addEventListener('open', () => {
      show(true, 'connected: the page follows the store');
      if (lost) { lost = false; soon(); }
    });
    stream.addEventListener('change', () => { beat(); soon(); });
    stream.addEventListener('beat', soon);
    stream.addEventListener('error', () => { lost = true; show(false, 'not connected: the server has stopped'); });
  };
  document.addEventListener('visibilitychange', () => { document.hidden ? close() : open(); });
  addEventListener('pagehide', close);
  addEventListener('pageshow', open);
  open();
}
