// tensorpar/report/page/script.hpp - what the report page does: choose operators in graph and table
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
const colour = d => data.colours[d];
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

// operators: graph, details and table follow one choice
let chosen = -1;
const deviceDots = list => {
  const s = make('span', 'dots');
  for (const d of list) { const i = make('i'); i.style.background = colour(d); i.title = 'device ' + d;
    s.append(i);
  }
  return s;
};
const keys = (e, act) => {
  e.onkeydown = k => { if (k.key === 'Enter' || k.key === ' ') { k.preventDefault(); act(); } };
};
function choose(node, scroll) {
  chosen = chosen === node && !scroll ? -1 : node;
  document.querySelectorAll('.chosen').forEach(e => e.classList.remove('chosen'));
  const box = $('details');
  box.replaceChildren();
  const o = data.operators.find(x => x.node === chosen);
  if (!o) {
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
  row('result', o.shape);
  row('split', o.sharding);
  row('devices', deviceDots(o.devices));
  row('', o.deviceText);
  row('compute', time(o.compute));
  row('moves', time(o.move));
  for (const [kind, b] of Object.entries(o.bytes)) row(kind, bytes(b));
  if (o.parameters) row('parameters', bytes(o.parameters) + ' in all');
  box.append(dl);
  const g = document.querySelector('#graph [data-node="' + chosen + '"]');
  if (scroll && g) g.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  drawAll();
}
document.querySelectorAll('#graph .op').forEach(g => {
  g.onclick = () => choose(+g.dataset.node);
  keys(g, () => choose(+g.dataset.node));
});
const graph = $('graph');
let zoom = 1;
const base = [graph.width.baseVal.value, graph.height.baseVal.value];
const setZoom = z => {
  zoom = Math.max(0.08, Math.min(3, z));
  graph.setAttribute('width', base[0] * zoom);
  graph.setAttribute('height', base[1] * zoom);
};
const fit = () => {                                  // all of a small graph, the width of a tall one
  const p = graph.parentElement, across = (p.clientWidth - 4) / base[0],
    down = (p.clientHeight - 4) / base[1];
  setZoom(Math.min(1, Math.max(0.5, across), down > 0.8 ? down : 1));
};
$('graph-in').onclick = () => setZoom(zoom * 1.25);
$('graph-out').onclick = () => setZoom(zoom / 1.25);
$('graph-fit').onclick = fit;

// table of operators, sorted by a click on a heading
const rows = $('operators');
const columns = [o => o.node, o => o.op, o => o.sharding, o => o.devices.length, o => o.compute, o => o.move,
  o => o.sent];
let order = 0, ascending = true;
function fillTable() {
  const key = columns[order], sorted = [...data.operators].sort((a, b) => {
    const x = key(a), y = key(b), c = x < y ? -1 : x > y ? 1 : a.node - b.node;
    return ascending ? c : -c;
  });
  rows.replaceChildren(...sorted.map(o => {
    const tr = make('tr', o.node === chosen ? 'chosen' : '');
    tr.dataset.node = o.node;
    tr.tabIndex = 0;
    tr.onclick = () => choose(o.node, true);
    keys(tr, tr.onclick);
    const where = make('td');
    where.append(o.devices.length <= 32 ? deviceDots(o.devices) : o.deviceText);
    tr.append(make('td', '', o.name || '#' + o.node), make('td', '', o.op), make('td', '', o.sharding),
      where);
    tr.append(make('td', 'n', time(o.compute)), make('td', 'n', time(o.move)), make('td', 'n',
      o.sent ? bytes(o.sent) : '\u2013'));
    return tr;
  }));
}
document.querySelectorAll('#operator-table th').forEach((th, i) => {
  th.onclick = () => { ascending = order === i ? !ascending : i < 4; order = i; fillTable(); };
  keys(th, th.onclick);
});
)js";

}  // namespace tensorpar::report::detail
