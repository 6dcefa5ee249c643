// Keys: each page names its own with data-key; j, k, x and Enter move in a list.

const typing = e => e instanceof HTMLElement && (e.matches('input:not([type=checkbox]), select, textarea') || e.isContentEditable);
const rows = () => [...document.querySelectorAll('#list tbody tr:has(input), #list > .completion, .sides .completion, #latest .completion')];
const here = () => document.querySelector('.here');

function move(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.indexOf(here());
  const next = all[Math.max(0, Math.min(all.length - 1, at < 0 ? 0 : at + by))];
  here()?.classList.remove('here');
  next.classList.add('here');
  next.scrollIntoView({block: 'nearest'});
}

const act = {
  j: () => move(1),
  k: () => move(-1),
  x: () => { const box = here()?.querySelector('input[type=checkbox]'); if (box) box.checked = !box.checked; },
  Enter: () => here()?.querySelector('a')?.click(),
  C: () => document.querySelector('[formaction="/curves"]')?.click(),
  M: () => document.querySelector('[formaction="/compare"]')?.click(),
};

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') { document.activeElement?.blur(); return; }
  if (typing(event.target) || event.key === 'Enter' && event.target !== document.body && event.target !== document.documentElement && event.target.id !== 'main') return;
  const named = document.querySelector('[data-key="' + CSS.escape(event.key) + '"]');
  if (act[event.key]) {
    act[event.key]();
  } else if (named instanceof HTMLAnchorElement) {
    named.click();
  } else if (named) {
    named.focus();
    named.select?.();
  } else {
    return;
  }
  event.preventDefault();
});
