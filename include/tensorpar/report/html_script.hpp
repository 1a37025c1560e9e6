// tensorpar/report/html_script.hpp - what the report page does: choose operators, zoom timelines, draw memory
#pragma once

namespace tensorpar::detail {

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
const time = ns => ns === 0 ? '0' : ns < 999.5 ? three(ns) + ' ns' : ns < 999500 ? three(ns / 1e3) + ' \u00b5s' :
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
  for (const d of list) { const i = make('i'); i.style.background = colour(d); i.title = 'device ' + d; s.append(i); }
  return s;
};
const keys = (e, act) => { e.onkeydown = k => { if (k.key === 'Enter' || k.key === ' ') { k.preventDefault(); act(); } }; };
function choose(node, scroll) {
  chosen = chosen === node && !scroll ? -1 : node;
  document.querySelectorAll('.chosen').forEach(e => e.classList.remove('chosen'));
  const box = $('details');
  box.replaceChildren();
  const o = data.operators.find(x => x.node === chosen);
  if (!o) {
    box.append(make('p', 'soft', 'Click an operator to see how it is spread, what it costs and where it runs.'));
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
  row('split', o.spread);
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
  const p = graph.parentElement, across = (p.clientWidth - 4) / base[0], down = (p.clientHeight - 4) / base[1];
  setZoom(Math.min(1, Math.max(0.5, across), down > 0.8 ? down : 1));
};
$('graph-in').onclick = () => setZoom(zoom * 1.25);
$('graph-out').onclick = () => setZoom(zoom / 1.25);
$('graph-fit').onclick = fit;

// table of operators, sorted by a click on a heading
const rows = $('operators');
const columns = [o => o.node, o => o.op, o => o.spread, o => o.devices.length, o => o.compute, o => o.move, o => o.sent];
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
    tr.append(make('td', '', o.name || '#' + o.node), make('td', '', o.op), make('td', '', o.spread), where);
    tr.append(make('td', 'n', time(o.compute)), make('td', 'n', time(o.move)), make('td', 'n', o.sent ? bytes(o.sent) : '\u2013'));
    return tr;
  }));
}
document.querySelectorAll('#operator-table th').forEach((th, i) => {
  th.onclick = () => { ascending = order === i ? !ascending : i < 4; order = i; fillTable(); };
  keys(th, th.onclick);
});

// timelines on one canvas: a block of lanes per timeline
const canvas = $('timeline'), lane = 15, gap = 3, left = 150, axis = 26;
const label = text => (/[-,]/.test(text) ? 'devices ' : 'device ') + text;
for (const t of data.timelines)                      // a lane: its devices, whether it communicates, spans as [task, start, end]
  t.lanes = t.rows.flatMap(([devices, text, ...both]) => both.map((flat, w) => {
    const spans = [];
    for (let i = 0; i < flat.length; i += 3) spans.push([flat[i], flat[i + 1], flat[i + 1] + flat[i + 2]]);
    return { devices, text: label(text), talks: w, spans };
  }).filter(l => l.spans.length));
const runs = data.timelines.filter(t => t.lanes.length);
const longest = Math.max(1, ...runs.map(t => t.seconds));
const together = $('together');
together.checked = runs.length < 2 || Math.min(...runs.map(t => t.seconds)) * 4 > longest;
let from = 0, to = 1, layout = [];
const taskInfo = task => data.tasks[task] || ['', 3, -1];
const scale = t => (together.checked ? longest : t.seconds) * 1.01;
function fitCanvas(c, height) {
  const ratio = devicePixelRatio || 1, width = c.parentElement.clientWidth;
  c.style.height = height + 'px';
  c.width = Math.round(width * ratio);
  c.height = Math.round(height * ratio);
  const g = c.getContext('2d');
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = '11.5px system-ui, "DejaVu Sans", sans-serif';
  g.textBaseline = 'middle';
  return [g, width];
}
function tickStep(range, pixels) {
  const raw = range / Math.max(2, pixels / 110), unit = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map(k => k * unit).find(s => s >= raw) || raw;
}
function ticks(g, x0, x1, y, a, b, bottom) {
  const step = tickStep(b - a, x1 - x0);
  g.fillStyle = css('soft');
  g.strokeStyle = css('line');
  g.lineWidth = 1;
  for (let t = Math.ceil(a / step) * step; t <= b; t += step) {
    const x = x0 + (t - a) / (b - a) * (x1 - x0);
    g.beginPath(); g.moveTo(x, y + 8); g.lineTo(x, bottom); g.stroke();
    if (x + 60 < x1) g.fillText(time(Math.round(t)), x + 3, y);
  }
}
function drawTimeline() {
  if (!runs.length) return;
  layout = [];
  let y = 0;
  for (const t of runs) {
    const first = y + axis + 20, at = i => first + i * (lane + gap);
    layout.push({ t, top: y, lanes: t.lanes.map((l, i) => ({ ...l, y: at(i) })), bottom: at(t.lanes.length) + 10 });
    y = layout[layout.length - 1].bottom;
  }
  const [g, width] = fitCanvas(canvas, y);
  const fills = kinds.map(css), text = css('text'), soft = css('soft'), page = css('page');
  for (const b of layout) {
    const total = scale(b.t), a = from * total, z = to * total, px = (width - left - 10) / (z - a);
    g.fillStyle = text;
    g.font = '600 12.5px system-ui, "DejaVu Sans", sans-serif';
    g.fillText(b.t.name + ' \u00b7 ' + time(b.t.seconds), 12, b.top + 16);
    g.font = '11.5px system-ui, "DejaVu Sans", sans-serif';
    ticks(g, left, width - 10, b.top + axis + 4, a, z, b.bottom - 10);
    for (const l of b.lanes) {
      const n = Math.min(4, l.devices.length);
      for (let i = 0; i < n; ++i) { g.fillStyle = colour(l.devices[i]); g.fillRect(12 + 12 * i / n, l.y + 3, 12 / n, 9); }
      g.fillStyle = soft;
      const name = l.text.length > 17 ? l.text.slice(0, 16) + '\u2026' : l.text;
      g.fillText(name + (l.talks ? ' \u21c4' : ''), 30, l.y + lane / 2);
    }
    g.save();
    g.beginPath(); g.rect(left, b.top, width - left - 10, b.bottom - b.top); g.clip();
    for (const l of b.lanes) for (const [task, s, e] of l.spans) {
      if (e < a || s > z) continue;
      const x = left + (s - a) * px, wide = Math.max((e - s) * px, 0.6), ly = l.y, info = taskInfo(task);
      g.globalAlpha = chosen < 0 || info[2] === chosen ? 1 : 0.22;
      g.fillStyle = fills[info[1]];
      g.fillRect(x, ly, Math.max(wide - 0.5, 0.6), lane);
      if (wide > 46) {
        const start = Math.max(x, left) + 4, room = x + wide - start - 4;
        if (room > 34) {
          let label = info[0];
          const most = Math.floor(room / 6.3);
          if (label.length > most) label = label.slice(0, Math.max(1, most - 1)) + '\u2026';
          g.fillStyle = '#fff';
          g.fillText(label, start, ly + lane / 2 + 0.5);
        }
      }
    }
    g.globalAlpha = 1;
    g.restore();
  }
}
const moveView = (a, b) => {
  const w = Math.min(1, Math.max(2e-5, b - a));
  from = Math.max(0, Math.min(1 - w, a));
  to = from + w;
  drawTimeline();
};
const zoomAt = (f, k) => { const w = (to - from) * k, c = from + (to - from) * f; moveView(c - w * f, c - w * f + w); };
const fraction = e => (e.clientX - canvas.getBoundingClientRect().left - left) / (canvas.clientWidth - left - 10);
canvas.addEventListener('wheel', e => {
  if (!e.ctrlKey && !e.shiftKey) return;
  e.preventDefault();
  zoomAt(fraction(e), (e.deltaY || e.deltaX) > 0 ? 1.25 : 0.8);
}, { passive: false });
canvas.ondblclick = e => zoomAt(fraction(e), 0.4);
let grabbed = null;
canvas.onpointerdown = e => { grabbed = [e.clientX, from, to, false]; canvas.setPointerCapture(e.pointerId); };
canvas.onpointerup = e => {
  const moved = grabbed && grabbed[3], hit = find(e);
  grabbed = null;
  if (!moved && hit && hit.info[2] >= 0) choose(hit.info[2], true);
};
function find(e) {
  const r = canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
  const b = layout.find(l => y >= l.top && y < l.bottom);
  if (!b || x < left) return null;
  const l = b.lanes.find(l => y >= l.y && y < l.y + lane);
  if (!l) return null;
  const total = scale(b.t), at = (from + fraction(e) * (to - from)) * total;
  const slack = (to - from) * total / (canvas.clientWidth - left) * 1.5;
  const s = l.spans.find(s => at >= s[1] && at <= s[2]) || l.spans.find(s => at >= s[1] - slack && at <= s[2] + slack);
  return s && { span: s, lane: l, info: taskInfo(s[0]) };
}
canvas.onpointermove = e => {
  if (grabbed) {
    const d = (grabbed[0] - e.clientX) / (canvas.clientWidth - left - 10) * (grabbed[2] - grabbed[1]);
    if (Math.abs(grabbed[0] - e.clientX) > 3) grabbed[3] = true;
    moveView(grabbed[1] + d, grabbed[2] + d);
    return;
  }
  const hit = find(e);
  if (!hit) return hideTip();
  const [task, s, z] = hit.span;
  const where = hit.lane.text + (hit.lane.talks ? ', communication' : ', compute') + ', task ' + task;
  showTip(e, hit.info[0] + '\n' + time(z - s) + ', from ' + time(s) + ' to ' + time(z) + '\n' + where);
};
canvas.onpointerleave = hideTip;
$('time-in').onclick = () => zoomAt(0.5, 0.6);
$('time-out').onclick = () => zoomAt(0.5, 1 / 0.6);
$('time-all').onclick = () => moveView(0, 1);
canvas.onkeydown = e => {
  const w = to - from, act = { ArrowLeft: () => moveView(from - w / 5, to - w / 5), ArrowRight: () => moveView(from + w / 5, to + w / 5),
    '+': () => zoomAt(0.5, 0.6), '-': () => zoomAt(0.5, 1 / 0.6), '0': () => moveView(0, 1) }[e.key];
  if (act) { e.preventDefault(); act(); }
};
together.onchange = drawTimeline;

// memory over time, one step line per device, or for several that are alike
for (const [devices, text] of data.memory.slice(0, 16)) {
  const s = make('span'), i = make('i');
  i.style.background = colour(devices[0]);
  s.append(i, label(text));
  $('memory-legend').append(s);
}
function drawMemory() {
  const c = $('memory');
  if (!c || !data.memory.length) return;
  const height = 300, [g, width] = fitCanvas(c, height), top = 14, bottom = height - 30, x0 = 70, x1 = width - 14;
  const end = Math.max(1, data.memoryEnd), most = Math.max(1, ...data.peaks) * 1.06;
  const X = t => x0 + t / end * (x1 - x0), Y = b => bottom - b / most * (bottom - top);
  const unit = 2 ** Math.floor(Math.log2(most / 4)), step = most / unit > 6 ? unit * 2 : unit;
  g.textAlign = 'right';
  for (let b = 0; b <= most; b += step) {
    g.strokeStyle = css('line'); g.beginPath(); g.moveTo(x0, Y(b)); g.lineTo(x1, Y(b)); g.stroke();
    g.fillStyle = css('soft'); g.fillText(bytes(Math.round(b)), x0 - 8, Y(b));
  }
  g.textAlign = 'left';
  const dt = tickStep(end, x1 - x0);
  g.fillStyle = css('soft');
  for (let t = 0; t <= end; t += dt) if (X(t) + 40 < x1) g.fillText(time(Math.round(t)), X(t) + 2, bottom + 14);
  data.memory.forEach(([devices, , flat]) => {
    g.strokeStyle = colour(devices[0]);
    g.lineWidth = data.memory.length > 16 ? 1 : 1.7;
    g.beginPath();
    let y = Y(0);
    g.moveTo(X(0), y);
    for (let i = 0; i < flat.length; i += 2) { g.lineTo(X(flat[i]), y); y = Y(flat[i + 1]); g.lineTo(X(flat[i]), y); }
    g.lineTo(X(end), y);
    g.stroke();
  });
  g.setLineDash([5, 4]);
  g.lineWidth = 1;
  [...new Set(data.peaks)].slice(0, 4).forEach(p => {
    g.strokeStyle = css('text'); g.globalAlpha = 0.55; g.beginPath(); g.moveTo(x0, Y(p)); g.lineTo(x1, Y(p)); g.stroke(); g.globalAlpha = 1;
  });
  g.setLineDash([]);
}

function drawAll() { drawTimeline(); drawMemory(); }
fit();
fillTable();
choose(-1);
addEventListener('resize', () => { drawAll(); });
})();
)js";

}  // namespace tensorpar::detail
