// tensorpar/report/page/script.hpp - what the page does: choose and unfold operators in graph and table
#pragma once

namespace tensorpar::report::detail {

/// Reads the element #data; writes text with textContent only, so nothing in a name can become markup.
inline constexpr char const* html_script = R"js(
(() => {
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const root = document.documentElement;
const css = name => getComputedStyle(root).getPropertyValue('--' + name).trim();
const make = (tag, cls, text) => {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
};
const three = x => x < 9.995 ? x.toFixed(2) : x < 99.95 ? x.toFixed(1) : x.toFixed(0);
const time = ns => ns === 0 ? '0' : ns < 999.5 ? three(ns) + ' ns' :
  ns < 999500 ? three(ns / 1e3) + ' \u00b5s' :
  ns < 999.5e6 ? three(ns / 1e6) + ' ms' : three(ns / 1e9) + ' s';
const bytes = b => {
  if (b < 1024) return b + ' B';
  let u = -1;
  do { b /= 1024; ++u; } while (b >= 999.5 && u < 4);
  return three(b) + ' ' + ['KiB', 'MiB', 'GiB', 'TiB', 'PiB'][u];
};
const kinds = ['forward', 'backward', 'update', 'move'];

// light or dark: the reader's wish, then the button
const dark = window.matchMedia && matchMedia('(prefers-color-scheme: dark)').matches;
root.classList.toggle('dark', dark);
$('theme').onclick = () => { root.classList.toggle('dark'); drawAll(); };

const tip = $('tip');
const showTip = (e, text) => {
  tip.textContent = text;
  tip.style.display = 'block';
  const r = tip.getBoundingClientRect();
  tip.style.left = Math.min(e.clientX + 14, innerWidth - r.width - 8) + 'px';
  tip.style.top = Math.min(e.clientY + 16, innerHeight - r.height - 8) + 'px';
};
const hideTip = () => { tip.style.display = 'none'; };

// device groups: one colour and one letter each, in all pictures
const groupsOf = devices => [...new Set(devices.map(d => data.groupOf[d]))];
const chips = groups => {
  const s = make('span', 'dots');
  for (const g of groups.slice(0, 8)) {
    const of = data.groups[g], i = make('i'), both = make('span');
    i.style.background = 'var(--' + of.colour + ')';
    both.title = of.text;
    both.append(i, of.name);
    s.append(both);
  }
  if (groups.length > 8) s.append('\u2026');
  return s;
};

// folds: one is open, or all, or none; what is hidden has another operator that stands for it
const none = -1, all = -2;
let open = none, sums = new Map();
const byNode = new Map(data.operators.map(o => [o.node, o]));
const isOpen = fold => open === all || fold === open;
const standsFor = o => o.fold === undefined || isOpen(o.fold) ? o.node : o.shown;
const standing = node => { const o = byNode.get(node); return o ? standsFor(o) : node; };
function addUp() {
  sums = new Map();
  for (const o of data.operators) {
    const to = standsFor(o), s = sums.get(to) || { times: 0, compute: 0, move: 0, sent: 0, bytes: {},
      parameters: 0, saves: {} };
    s.times += 1;
    for (const what of o.saves || []) s.saves[what] = (s.saves[what] || 0) + 1;
    for (const key of ['compute', 'move', 'sent', 'parameters']) s[key] += o[key] || 0;
    for (const [kind, b] of Object.entries(o.bytes || {})) s.bytes[kind] = (s.bytes[kind] || 0) + b;
    sums.set(to, s);
  }
}
const savesText = s => Object.entries(s.saves).map(([what, n]) =>
  what + (n < s.times ? ' (' + n + ' of ' + s.times + ')' : '')).join(', ');
const foldText = (o, times) => times > 1 ? '\u00d7 ' + times : '\u2212 fold';
const hasButton = (o, times) => o.fold !== undefined &&
  (times > 1 || (isOpen(o.fold) && data.folds[o.fold][0] === o.node));
const toggle = fold => setOpen(isOpen(fold) ? none : fold);

// operators: graph, details and table follow one choice
let chosen = -1;
const keys = (e, act) => {
  e.onkeydown = k => { if (k.key === 'Enter' || k.key === ' ') { k.preventDefault(); act(); } };
};
function choose(node, scroll) {
  const to = node < 0 ? node : standing(node);
  chosen = chosen === to && !scroll ? -1 : to;
  showChosen();
  const g = document.querySelector('#graph [data-node="' + chosen + '"]');
  if (scroll && g) g.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}
function showChosen() {
  document.querySelectorAll('.chosen').forEach(e => e.classList.remove('chosen'));
  const box = $('details');
  box.replaceChildren();
  const o = byNode.get(chosen), sum = sums.get(chosen);
  if (!o || !sum) {
    box.append(make('p', 'soft',
      'Click an operator to see how it is sharded, what it costs and where it runs.'));
    return drawAll();
  }
  document.querySelectorAll('[data-node="' + chosen + '"]').forEach(e => e.classList.add('chosen'));
  const dl = make('dl');
  const row = (name, value) => {
    const dd = make('dd');
    dd.append(value);
    dl.append(make('dt', '', name), dd);
  };
  row('name', o.name || '\u2013');
  row('operator', o.op);
  if (sum.times > 1) row('stands for', sum.times + ' operators; numbers are their sums');
  row('result', o.shape);
  row('split', o.sharding);
  if (savesText(sum)) row('saves', savesText(sum));
  row('devices', chips(o.groups));
  row('', o.devices);
  row('compute', time(sum.compute));
  row('moves', time(sum.move));
  for (const [kind, b] of Object.entries(sum.bytes)) row(kind, bytes(b));
  if (sum.parameters) row('parameters', bytes(sum.parameters) + ' in all');
  box.append(dl);
  drawAll();
}

// the picture: one svg, exchanged for another that waits in a template
const pictures = $('pictures');
let graph = $('graph'), zoom = 1, base = [1, 1];
const folded = graph;
const setZoom = z => {
  if (!graph) return;
  zoom = Math.max(0.08, Math.min(3, z));
  graph.setAttribute('width', base[0] * zoom);
  graph.setAttribute('height', base[1] * zoom);
};
const fit = () => {                                  // all of a small graph, the width of a tall one
  const across = (pictures.clientWidth - 4) / base[0], down = (pictures.clientHeight - 4) / base[1];
  setZoom(Math.min(1, Math.max(0.5, across), down > 0.8 ? down : 1));
};
function usePicture(svg) {
  if (graph && svg !== graph) graph.replaceWith(svg);
  graph = svg;
  if (!graph) return;
  if (!graph.dataset.size) graph.dataset.size = [graph.width.baseVal.value, graph.height.baseVal.value];
  base = graph.dataset.size.split(',').map(Number);
  graph.querySelectorAll('.op').forEach(g => {
    g.onclick = () => choose(+g.dataset.node);
    keys(g, g.onclick);
  });
  graph.querySelectorAll('.badge').forEach(b => {
    b.onclick = () => {
      toggle(+b.dataset.fold);
      focusOn('#graph .badge[data-fold="' + b.dataset.fold + '"]');
    };
    keys(b, b.onclick);
  });
}
const focusOn = what => { const e = document.querySelector(what); if (e) e.focus(); };
function setOpen(fold) {
  open = fold;
  const waiting = document.querySelector('#pictures template[data-open="' + fold + '"]');
  usePicture(waiting ? waiting.content.firstElementChild.cloneNode(true) : folded);
  setZoom(zoom);
  addUp();
  const button = document.getElementById('unfold');
  if (button) {
    button.textContent = open === none ? 'unfold all' : 'fold all';
    button.setAttribute('aria-expanded', open !== none);
  }
  if (chosen >= 0) chosen = standing(chosen);
  fillTable();
  showChosen();
}
if (document.getElementById('unfold'))
  document.getElementById('unfold').onclick = () =>
    setOpen(open !== none ? none : data.folds.length > 1 ? all : 0);
$('graph-in').onclick = () => setZoom(zoom * 1.25);
$('graph-out').onclick = () => setZoom(zoom / 1.25);
$('graph-fit').onclick = fit;

// table of operators, sorted by a click on a heading; at first no more rows than browsers like
const rows = $('operators');
const columns = [o => o.node, o => o.op, o => o.sharding, o => savesText(sums.get(o.node)), o => o.count,
  o => sums.get(o.node).compute, o => sums.get(o.node).move, o => sums.get(o.node).sent];
let order = 0, ascending = true, most = 1000;
function tableRow(o) {
  const sum = sums.get(o.node), tr = make('tr', o.node === chosen ? 'chosen' : '');
  tr.dataset.node = o.node;
  tr.tabIndex = 0;
  tr.onclick = () => choose(o.node, true);
  keys(tr, tr.onclick);
  const name = make('td', '', o.name || '#' + o.node), where = make('td');
  if (hasButton(o, sum.times)) {
    const b = make('button', 'fold', foldText(o, sum.times)), f = data.folds[o.fold];
    b.type = 'button';
    b.setAttribute('aria-expanded', isOpen(o.fold));
    b.title = f[2] + ' repetitions of ' + f[1] + (f[1] === 1 ? ' operator' : ' operators');
    b.onclick = e => {
      e.stopPropagation();
      toggle(o.fold);
      focusOn('#operators [data-node="' + o.node + '"] .fold');
    };
    b.onkeydown = e => e.stopPropagation();
    name.append(' ', b);
  }
  where.append(chips(o.groups), ' ' + o.devices);
  tr.append(name, make('td', '', o.op), make('td', '', o.sharding),
    make('td', '', savesText(sum) || '\u2013'), where, make('td', 'n', time(sum.compute)),
    make('td', 'n', time(sum.move)),
    make('td', 'n', sum.sent ? bytes(sum.sent) : '\u2013'));
  return tr;
}
function fillTable() {
  const key = columns[order], sorted = data.operators.filter(o => sums.has(o.node)).sort((a, b) => {
    const x = key(a), y = key(b), c = x < y ? -1 : x > y ? 1 : a.node - b.node;
    return ascending ? c : -c;
  });
  rows.replaceChildren(...sorted.slice(0, most).map(tableRow));
  if (sorted.length <= most) return;
  const tr = make('tr'), td = make('td'), b = make('button', '', 'show all ' + sorted.length + ' operators');
  td.colSpan = columns.length;
  b.type = 'button';
  b.onclick = () => { most = Infinity; fillTable(); };
  td.append(b);
  tr.append(td);
  rows.append(tr);
}
document.querySelectorAll('#operator-table th').forEach((th, i) => {
  th.onclick = () => { ascending = order === i ? !ascending : i < 5; order = i; fillTable(); };
  keys(th, th.onclick);
});
)js";

}  // namespace tensorpar::report::detail
