// tensorpar/report/page/timelines.hpp - what the report page does besides: zoom timelines, draw memory
#pragma once

namespace tensorpar::report::detail {

/// Goes on where html_script ends, in the same script.
inline constexpr char const* html_timelines = R"js(// timelines on one canvas: a block of lanes per timeline
const canvas = $('timeline'), lane = 15, gap = 3, left = 150, axis = 26;
const label = text => (/[-,]/.test(text) ? 'devices ' : 'device ') + text;
// a lane: its devices, whether it communicates, spans as [task, start, end]
for (const t of data.timelines)
  t.lanes = t.rows.flatMap(([devices, text, ...both]) => both.map((flat, w) => {
    const spans = [];
    for (let i = 0; i < flat.length; i += 3) spans.push([flat[i], flat[i + 1], flat[i + 1] + flat[i + 2]]);
    const groups = groupsOf(devices), names = groups.map(g => data.groups[g].name);
    const letters = names.length > 3 ? names.slice(0, 2).join(' ') + ' \u2026' : names.join(' ');
    return { devices, groups, letters, text: label(text), talks: w, spans };
  }).filter(l => l.spans.length));
const runs = data.timelines.filter(t => t.lanes.length);
const longest = Math.max(1, ...runs.map(t => t.seconds));
const together = $('together'), showChain = $('chain');
together.checked = runs.length < 2 || Math.min(...runs.map(t => t.seconds)) * 4 > longest;
let from = 0, to = 1, layout = [];
const taskInfo = task => data.tasks[task] || ['', 3, -1];
const onChain = new Map();                     // of the predicted step: task -> device
for (let i = 0; i < data.chain.length; i += 2) onChain.set(data.chain[i], data.chain[i + 1]);
const marked = (t, l, task) => t === data.timelines[0] && onChain.has(task) &&
  l.devices.includes(onChain.get(task));
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
    layout.push({ t, top: y, lanes: t.lanes.map((l, i) => ({ ...l, y: at(i) })),
      bottom: at(t.lanes.length) + 10 });
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
      const n = Math.min(4, l.groups.length);
      for (let i = 0; i < n; ++i) {
        g.fillStyle = css(data.groups[l.groups[i]].colour);
        g.fillRect(12 + 12 * i / n, l.y + 3, 12 / n, 9);
      }
      g.fillStyle = soft;
      const long = (l.letters ? l.letters + ' ' : '') + l.text;
      const name = long.length > 17 ? long.slice(0, 16) + '\u2026' : long;
      g.fillText(name + (l.talks ? ' \u21c4' : ''), 30, l.y + lane / 2);
    }
    g.save();
    g.beginPath(); g.rect(left, b.top, width - left - 10, b.bottom - b.top); g.clip();
    for (const l of b.lanes) for (const [task, s, e] of l.spans) {
      if (e < a || s > z) continue;
      const x = left + (s - a) * px, wide = Math.max((e - s) * px, 0.6), ly = l.y, info = taskInfo(task);
      g.globalAlpha = chosen < 0 || standing(info[2]) === chosen ? 1 : 0.22;
      g.fillStyle = fills[info[1]];
      g.fillRect(x, ly, Math.max(wide - 0.5, 0.6), lane);
      if (showChain.checked && marked(b.t, l, task)) {
        g.fillStyle = text;
        g.fillRect(x, ly + lane - 2, Math.max(wide, 0.6), 4);
      }
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
const zoomAt = (f, k) => {
  const w = (to - from) * k, c = from + (to - from) * f;
  moveView(c - w * f, c - w * f + w);
};
const fraction = e =>
  (e.clientX - canvas.getBoundingClientRect().left - left) / (canvas.clientWidth - left - 10);
canvas.addEventListener('wheel', e => {
  if (!e.ctrlKey && !e.shiftKey) return;
  e.preventDefault();
  zoomAt(fraction(e), (e.deltaY || e.deltaX) > 0 ? 1.25 : 0.8);
}, { passive: false });
canvas.ondblclick = e => zoomAt(fraction(e), 0.4);
let grabbed = null;
canvas.onpointerdown = e => {
  grabbed = [e.clientX, from, to, false];
  canvas.setPointerCapture(e.pointerId);
};
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
  const s = l.spans.find(s => at >= s[1] && at <= s[2]) || l.spans.find(s => at >= s[1] - slack &&
    at <= s[2] + slack);
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
  const where = (hit.lane.letters ? hit.lane.letters + ' ' : '') + hit.lane.text +
    (hit.lane.talks ? ', communication' : ', compute') + ', task ' + task;
  showTip(e, hit.info[0] + '\n' + time(z - s) + ', from ' + time(s) + ' to ' + time(z) + '\n' + where);
};
canvas.onpointerleave = hideTip;
$('time-in').onclick = () => zoomAt(0.5, 0.6);
$('time-out').onclick = () => zoomAt(0.5, 1 / 0.6);
$('time-all').onclick = () => moveView(0, 1);
canvas.onkeydown = e => {
  const w = to - from, act = { ArrowLeft: () => moveView(from - w / 5, to - w / 5),
    ArrowRight: () => moveView(from + w / 5, to + w / 5),
    '+': () => zoomAt(0.5, 0.6), '-': () => zoomAt(0.5, 1 / 0.6), '0': () => moveView(0, 1) }[e.key];
  if (act) { e.preventDefault(); act(); }
};
together.onchange = showChain.onchange = drawTimeline;

// memory over time, one line per device, or for several that are alike: in their group's colour, dashed where
// that is taken
const taken = new Map();
const curves = data.memory.map(([devices, text, flat]) => {
  const group = data.groupOf[devices[0]], n = taken.get(group) || 0;
  taken.set(group, n + 1);
  return { devices, text, flat, group, dash: [[], [7, 3], [2, 3], [9, 3, 2, 3]][n % 4] };
});
for (const c of curves.slice(0, 16)) {
  const s = make('span'), i = make('i');
  i.style.background = 'var(--' + data.groups[c.group].colour + ')';
  const name = data.groups[c.group].name;
  s.append(i, (name ? name + ' ' : '') + label(c.text));
  $('memory-legend').append(s);
}
function drawMemory() {
  const c = $('memory');
  if (!c || !data.memory.length) return;
  const height = 300, [g, width] = fitCanvas(c, height), top = 14, bottom = height - 30, x0 = 70,
    x1 = width - 14;
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
  for (let t = 0; t <= end; t += dt) if (X(t) + 40 < x1) g.fillText(time(Math.round(t)), X(t) + 2,
    bottom + 14);
  curves.forEach(({ group, dash, flat }) => {
    g.strokeStyle = css(data.groups[group].colour);
    g.setLineDash(dash);
    g.lineWidth = curves.length > 16 ? 1 : 1.7;
    g.beginPath();
    let y = Y(0);
    g.moveTo(X(0), y);
    for (let i = 0; i < flat.length; i += 2) { g.lineTo(X(flat[i]), y); y = Y(flat[i + 1]);
      g.lineTo(X(flat[i]), y); }
    g.lineTo(X(end), y);
    g.stroke();
  });
  g.setLineDash([5, 4]);
  g.lineWidth = 1;
  [...new Set(data.peaks)].slice(0, 4).forEach(p => {
    g.strokeStyle = css('text'); g.globalAlpha = 0.55; g.beginPath(); g.moveTo(x0, Y(p)); g.lineTo(x1, Y(p));
      g.stroke(); g.globalAlpha = 1;
  });
  g.setLineDash([]);
}

function drawAll() { drawTimeline(); drawMemory(); }
usePicture(graph);
fit();
addUp();
fillTable();
showChosen();
addEventListener('resize', () => { drawAll(); });
})();
)js";

}  // namespace tensorpar::report::detail
