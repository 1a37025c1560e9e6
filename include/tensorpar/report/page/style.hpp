// tensorpar/report/page/style.hpp - how the report page looks, in light and dark
#pragma once

namespace tensorpar::report::detail {

inline constexpr char const* html_style = R"css(
:root { color-scheme: light; --page: #f5f6f8; --card: #ffffff; --line: #d9dde4; --text: #1d2330;
  --soft: #667085; --accent: #2f6fde;
  --forward: #4c8bf5; --backward: #7d4fc9; --update: #2fa36b; --move: #e8973a; --heat: #f2994a;
    --edge: #aab2c0; --off: #e3e6ec; --alarm: #b42318;
  --shade: 0 1px 3px #1018281a; }
:root.dark { color-scheme: dark; --page: #12151c; --card: #1b202a; --line: #303746; --text: #e7eaf0;
  --soft: #98a2b3; --accent: #7aa7ff;
  --forward: #3f78d8; --backward: #a97fe6; --update: #3cb57c; --move: #e9a04c; --heat: #f2994a;
    --edge: #566074; --off: #333b4a; --alarm: #ff8a80;
  --shade: none; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 24px 28px 60px; }
header { display: flex; align-items: flex-start; gap: 16px; margin-bottom: 18px; }
header div { flex: 1; }
h1 { font-size: 23px; margin: 0; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0 0 12px; }
p { margin: 0; }
.soft { color: var(--soft); }
.note { color: var(--soft); font-size: 12.5px; margin-top: 8px; }
.strategy { font-size: 15px; margin: 2px 0 4px; overflow-wrap: anywhere; }
footer { font-size: 12.5px; }
code { overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--soft); }
details ul { margin: 4px 0 0; padding-left: 16px; color: var(--soft); }
button, label.check { font: inherit; font-size: 13px; color: var(--text); background: var(--card);
  border: 1px solid var(--line);
  border-radius: 7px; padding: 3px 10px; cursor: pointer; }
button:hover { border-color: var(--accent); }
label.check { border: 0; background: none; display: inline-flex; align-items: center; gap: 6px;
  padding: 3px 4px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  box-shadow: var(--shade);
  padding: 16px 18px; margin-bottom: 18px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(185px, 1fr)); gap: 14px;
  margin-bottom: 18px; }
.cards > div { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  box-shadow: var(--shade); padding: 12px 16px; }
.cards .big { font-size: 21px; font-weight: 650; letter-spacing: -0.01em; }
.cards .soft { font-size: 12.5px; }
.why { border-left: 4px solid var(--accent); }
.two { display: grid; grid-template-columns: minmax(0, 1fr) 320px; gap: 18px; }
.halves { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 18px; }
.halves section { margin-bottom: 0; }
.halves { margin-bottom: 18px; }
.bar { display: flex; gap: 8px; align-items: center; flex-wrap: wrap; margin-bottom: 10px; }
.bar h2 { margin: 0; flex: 1; }
.scroll { overflow: auto; max-height: 780px; border: 1px solid var(--line); border-radius: 8px;
  background: var(--page); }
.scroll.graph { display: flex; min-height: 260px; }
#graph { margin: auto; flex: none; display: block; }
#graph .edges path { fill: none; stroke: var(--edge); stroke-width: 1.4; }
#graph .card { fill: var(--card); stroke: var(--line); stroke-width: 1.2; }
#graph .heat { fill: var(--heat); pointer-events: none; }
#graph text { fill: var(--text); font-size: 12px; font-weight: 600; pointer-events: none; }
#graph .how { fill: var(--soft); font-size: 11px; font-weight: 400; }
.seg.off { fill: var(--off); }
#graph .letters { fill: var(--soft); font-size: 10px; }
#graph .folded { fill: var(--accent); }
#graph .badge { cursor: pointer; outline: none; }
#graph .badge rect { fill: var(--accent); }
#graph .badge text { fill: var(--card); font-size: 11px; text-anchor: middle; }
#graph .badge:hover rect, #graph .badge:focus rect { stroke: var(--text); stroke-width: 2; }
#graph .op { cursor: pointer; outline: none; }
#graph .op:hover .card, #graph .op:focus .card, #graph .op.chosen .card { stroke: var(--accent);
  stroke-width: 2.2; }
#graph .input rect { fill: none; stroke: var(--soft); stroke-dasharray: 4 3; }
#graph .input text { text-anchor: middle; fill: var(--soft); font-weight: 500; }
#parallel { margin: auto; display: block; }
#parallel .edges path { fill: none; stroke: var(--edge); stroke-width: 1.4; }
#parallel text { font-size: 11px; text-anchor: middle; pointer-events: none; }
#parallel .card > rect { fill: var(--card); stroke: var(--line); stroke-width: 1.2; }
#parallel .card text { fill: var(--text); font-weight: 600; }
#parallel .pill text { fill: #ffffff; }
#parallel .input rect { fill: none; stroke: var(--soft); stroke-dasharray: 4 3; }
#parallel .input text { fill: var(--soft); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 5px 14px; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 14px; font-size: 12.5px; color: var(--soft); }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.table + .table { margin-top: 12px; }
.legend i { width: 11px; height: 11px; border-radius: 3px; display: inline-block; }
canvas { display: block; width: 100%; }
.chart { position: relative; border: 1px solid var(--line); border-radius: 8px; overflow-y: auto;
  max-height: 760px;
  background: var(--page); }
#tip { position: fixed; z-index: 9; pointer-events: none; background: var(--text); color: var(--page);
  border-radius: 7px;
  padding: 6px 10px; font-size: 12.5px; max-width: 420px; display: none; white-space: pre-line; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; padding: 5px 12px 5px 0; border-bottom: 1px solid var(--line);
  vertical-align: middle; }
th { color: var(--soft); font-weight: 500; position: sticky; top: 0; background: var(--card);
  cursor: pointer; white-space: nowrap; }
table.plain th { cursor: default; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.table { max-height: 480px; overflow: auto; }
.table.whole { max-height: none; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: -2px; }
#operator-table td:first-child, #operator-table th:first-child { padding-left: 9px; }
tbody tr:hover { background: var(--page); }
tr.chosen { background: var(--page); box-shadow: inset 3px 0 var(--accent); }
.dots { display: inline-flex; flex-wrap: wrap; gap: 3px; align-items: center; max-width: 190px; }
.dots span { display: inline-flex; align-items: center; }
.dots i, td > i { width: 11px; height: 11px; border-radius: 3px; display: inline-block; margin-right: 3px; }
button.fold { font-size: 11.5px; padding: 0 7px; border-radius: 9px; background: var(--accent);
  color: var(--card); border-color: var(--accent); margin-left: 4px; white-space: nowrap; }
.meter { background: var(--off); border-radius: 4px; height: 8px; min-width: 90px; }
.wide { width: 45%; }
.wide .note { margin: 3px 0 0; }
.fill { position: relative; height: 16px; }
.fill b { position: absolute; height: 16px; background: var(--off); border-right: 2px solid var(--soft);
  border-radius: 3px 0 0 3px; }
.fill span { position: absolute; display: flex; overflow: hidden; width: 100%; height: 16px; }
.fill i { display: block; height: 10px; margin-top: 3px; }
.fill.over b { border-right: 3px solid var(--alarm); }
.meter i { display: block; height: 8px; border-radius: 4px; background: var(--accent); }
@media (max-width: 980px) { .two { grid-template-columns: minmax(0, 1fr); } }
@media print { .scroll, .table, .chart { max-height: none; } button { display: none; } }
)css";

}  // namespace tensorpar::report::detail
