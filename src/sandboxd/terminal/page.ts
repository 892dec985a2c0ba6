/**
 * The page at /terminal: a small terminal emulator in one file, without a library, so that it works offline and costs
 * the daemon nothing until the page is opened. It draws a grid, understands the sequences that shells, pagers and
 * editors use, and reconnects by itself; the server-side session keeps the screen.
 */
export const TERMINAL_PAGE = String.raw`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sandbox terminal</title>
<style>
  html, body { margin: 0; height: 100%; background: #14161b; color: #d8dee9; }
  #screen { box-sizing: border-box; height: 100%; padding: 8px; overflow: hidden; outline: none;
    font: 14px/1.25 ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; white-space: pre; }
  #screen .cursor { background: #d8dee9; color: #14161b; }
  #state { position: fixed; right: 10px; bottom: 8px; font: 12px system-ui; opacity: .7; }
</style>
<div id="screen" tabindex="0" role="textbox" aria-label="Terminal" aria-multiline="true"></div>
<div id="state" role="status"></div>
<script>
"use strict";
const view = document.getElementById("screen"), state = document.getElementById("state");
const COLORS = ["#3b4252","#e06c75","#98c379","#e5c07b","#61afef","#c678dd","#56b6c2","#abb2bf",
  "#5c6370","#ff7b86","#b5e890","#ffd68a","#82c4ff","#e19cf5","#7fdbe6","#ffffff"];
const plain = { fg: "", bg: "", bold: false, inverse: false, underline: false };
let cols = 80, rows = 24, cell = { w: 8, h: 17 };
let screen, main, alternate, x, y, style, top_, bottom, saved, cursorShown, appKeys, wrapNext, dirty = false;

const blank = () => Array.from({ length: cols }, () => ({ c: " ", s: plain }));
const empty = () => Array.from({ length: rows }, blank);
function reset() {
  main = empty(); alternate = null; screen = main; x = y = 0; style = plain; top_ = 0; bottom = rows - 1;
  saved = { x: 0, y: 0, style }; cursorShown = true; appKeys = false; wrapNext = false;
}
function fit() {
  const probe = document.createElement("span"); probe.textContent = "M".repeat(20); view.append(probe);
  const box = probe.getBoundingClientRect(); probe.remove();
  cell = { w: box.width / 20, h: parseFloat(getComputedStyle(view).fontSize) * 1.25 };
  const c = Math.max(20, Math.floor((view.clientWidth - 16) / cell.w)), r = Math.max(5, Math.floor((view.clientHeight - 16) / cell.h));
  if (c === cols && r === rows && screen) return;
  const old = screen; cols = c; rows = r;
  if (!old) return reset();
  const keep = (lines) => { const next = lines.slice(-rows).map((l) => [...l.slice(0, cols), ...blank().slice(l.length)]);
    while (next.length < rows) next.push(blank()); return next; };
  const shift = Math.max(0, old.length - rows);
  main = keep(main); if (alternate) alternate = keep(alternate);
  screen = alternate || main; x = Math.min(x, cols - 1); y = Math.min(Math.max(0, y - shift), rows - 1); top_ = 0; bottom = rows - 1;
  send({ type: "resize", cols, rows });
}
function scrollUp(n = 1) { while (n-- > 0) { screen.splice(top_, 1); screen.splice(bottom, 0, blank()); } }
function scrollDown(n = 1) { while (n-- > 0) { screen.splice(bottom, 1); screen.splice(top_, 0, blank()); } }
function lineFeed() { if (y === bottom) scrollUp(); else if (y < rows - 1) y++; }
function put(ch) {
  if (wrapNext) { x = 0; lineFeed(); wrapNext = false; }
  screen[y][x] = { c: ch, s: style };
  if (x === cols - 1) wrapNext = true; else x++;
}
const clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi);
const erase = (line, from, to) => { for (let i = from; i < to; i++) screen[line][i] = { c: " ", s: plain }; };
function color(p, i) {
  if (p[i + 1] === 5) { const n = p[i + 2] || 0; return [n < 16 ? COLORS[n] : n > 231 ? gray(n) : cube(n - 16), i + 2]; }
  if (p[i + 1] === 2) return ["rgb(" + [p[i + 2], p[i + 3], p[i + 4]].map((v) => v || 0) + ")", i + 4];
  return ["", i];
}
const gray = (n) => { const v = 8 + (n - 232) * 10; return "rgb(" + [v, v, v] + ")"; };
const cube = (n) => "rgb(" + [Math.floor(n / 36), Math.floor(n / 6) % 6, n % 6].map((v) => (v ? 55 + v * 40 : 0)) + ")";
function graphics(p) {
  for (let i = 0; i < p.length; i++) {
    const n = p[i] || 0;
    if (n === 0) style = plain;
    else if (n === 1) style = { ...style, bold: true };
    else if (n === 4) style = { ...style, underline: true };
    else if (n === 7) style = { ...style, inverse: true };
    else if (n === 22) style = { ...style, bold: false };
    else if (n === 24) style = { ...style, underline: false };
    else if (n === 27) style = { ...style, inverse: false };
    else if (n >= 30 && n <= 37) style = { ...style, fg: COLORS[n - 30] };
    else if (n >= 90 && n <= 97) style = { ...style, fg: COLORS[n - 82] };
    else if (n === 39) style = { ...style, fg: "" };
    else if (n >= 40 && n <= 47) style = { ...style, bg: COLORS[n - 40] };
    else if (n >= 100 && n <= 107) style = { ...style, bg: COLORS[n - 92] };
    else if (n === 49) style = { ...style, bg: "" };
    else if (n === 38 || n === 48) { const [c, at] = color(p, i); style = { ...style, [n === 38 ? "fg" : "bg"]: c }; i = at; }
  }
}
function mode(p, on) {
  for (const n of p) {
    if (n === 1) appKeys = on;
    if (n === 25) cursorShown = on;
    if (n === 47 || n === 1047 || n === 1049) {
      if (on && !alternate) { saved = { x, y, style }; alternate = empty(); screen = alternate; x = y = 0; }
      if (!on && alternate) { alternate = null; screen = main; ({ x, y, style } = saved); }
      top_ = 0; bottom = rows - 1;
    }
  }
}
function control(mark, text, final) {
  const p = text.split(/[;:]/).map((v) => (v === "" ? 0 : Number(v))), n = Math.max(1, p[0] || 1);
  wrapNext = false;
  if (mark === "?") { if (final === "h" || final === "l") mode(p, final === "h"); return; }
  if (mark) return;
  const line = screen[y];
  switch (final) {
    case "A": y = clamp(y - n, 0, rows - 1); break;
    case "B": case "e": y = clamp(y + n, 0, rows - 1); break;
    case "C": case "a": x = clamp(x + n, 0, cols - 1); break;
    case "D": x = clamp(x - n, 0, cols - 1); break;
    case "E": y = clamp(y + n, 0, rows - 1); x = 0; break;
    case "F": y = clamp(y - n, 0, rows - 1); x = 0; break;
    case "G": case "\x60": x = clamp(n - 1, 0, cols - 1); break;
    case "d": y = clamp(n - 1, 0, rows - 1); break;
    case "H": case "f": y = clamp((p[0] || 1) - 1, 0, rows - 1); x = clamp((p[1] || 1) - 1, 0, cols - 1); break;
    case "J":
      if (p[0] === 0) { erase(y, x, cols); for (let i = y + 1; i < rows; i++) erase(i, 0, cols); }
      else if (p[0] === 1) { erase(y, 0, x + 1); for (let i = 0; i < y; i++) erase(i, 0, cols); }
      else for (let i = 0; i < rows; i++) erase(i, 0, cols);
      break;
    case "K": erase(y, p[0] === 0 ? x : 0, p[0] === 1 ? x + 1 : cols); break;
    case "X": erase(y, x, Math.min(cols, x + n)); break;
    case "P": line.splice(x, n); while (line.length < cols) line.push({ c: " ", s: plain }); break;
    case "@": for (let i = 0; i < n; i++) line.splice(x, 0, { c: " ", s: plain }); line.length = cols; break;
    case "L": { const t = top_; top_ = y; scrollDown(Math.min(n, rows)); top_ = t; break; }
    case "M": { const t = top_; top_ = y; scrollUp(Math.min(n, rows)); top_ = t; break; }
    case "S": scrollUp(Math.min(n, rows)); break;
    case "T": scrollDown(Math.min(n, rows)); break;
    case "m": graphics(p); break;
    case "r": top_ = clamp((p[0] || 1) - 1, 0, rows - 1); bottom = clamp((p[1] || rows) - 1, top_, rows - 1); x = y = 0; break;
    case "n": if (p[0] === 6) type("\x1b[" + (y + 1) + ";" + (x + 1) + "R"); break;
    case "c": type("\x1b[?1;2c"); break;
    case "s": saved = { x, y, style }; break;
    case "u": ({ x, y, style } = saved); break;
  }
}
let rest = "";
function write(data) {
  rest += data;
  const pattern = /\x1b\[([?>=!]?)([0-9;:]*)[ -\/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()#%].|\x1b([^[\]()#%])|[\s\S]/gu;
  const unfinished = /\x1b(?:\[[?>=!]?[0-9;:]*[ -\/]*|\][^\x07\x1b]*\x1b?|[()#%])?$/.exec(rest);
  const now = unfinished && unfinished[0].length < 4096 ? rest.slice(0, unfinished.index) : rest;
  rest = rest.slice(now.length);
  for (const m of now.matchAll(pattern)) {
    if (m[3]) control(m[1], m[2], m[3]);
    else if (m[4]) {
      if (m[4] === "7") saved = { x, y, style }; else if (m[4] === "8") ({ x, y, style } = saved);
      else if (m[4] === "c") reset(); else if (m[4] === "D") lineFeed();
      else if (m[4] === "E") { x = 0; lineFeed(); } else if (m[4] === "M") { if (y === top_) scrollDown(); else if (y > 0) y--; }
    } else if (m[0].length > 2) continue;
    else switch (m[0]) {
      case "\n": case "\v": case "\f": wrapNext = false; lineFeed(); break;
      case "\r": wrapNext = false; x = 0; break;
      case "\b": wrapNext = false; x = Math.max(0, x - 1); break;
      case "\t": x = Math.min(cols - 1, x + 8 - (x % 8)); break;
      default: if (m[0] >= " " && m[0] !== "\x7f") put(m[0]);
    }
  }
  if (!dirty) { dirty = true; requestAnimationFrame(draw); }
}
function draw() {
  dirty = false;
  const out = document.createDocumentFragment();
  screen.forEach((line, row) => {
    let run = null, text = "";
    const flush = () => { if (!run) return; const span = document.createElement("span"); span.textContent = text;
      const s = run.s; let fg = s.fg, bg = s.bg; if (s.inverse) [fg, bg] = [bg || "#14161b", fg || "#d8dee9"];
      if (fg) span.style.color = fg; if (bg) span.style.background = bg; if (s.bold) span.style.fontWeight = "bold";
      if (s.underline) span.style.textDecoration = "underline"; if (run.cursor) span.className = "cursor"; out.append(span); };
    line.forEach((at, col) => {
      const cursor = cursorShown && row === y && col === x;
      if (!run || run.s !== at.s || run.cursor !== cursor) { flush(); run = { s: at.s, cursor }; text = ""; }
      text += at.c;
    });
    flush(); out.append("\n");
  });
  view.replaceChildren(out);
}
const KEYS = { ArrowUp: "A", ArrowDown: "B", ArrowRight: "C", ArrowLeft: "D", Home: "H", End: "F" };
const TILDE = { Delete: 3, Insert: 2, PageUp: 5, PageDown: 6, F5: 15, F6: 17, F7: 18, F8: 19, F9: 20, F10: 21, F11: 23, F12: 24 };
const PF = { F1: "P", F2: "Q", F3: "R", F4: "S" };
view.addEventListener("keydown", (e) => {
  if (e.metaKey || (e.ctrlKey && e.shiftKey) || e.isComposing) return;
  let data = "";
  if (KEYS[e.key]) data = "\x1b" + (appKeys ? "O" : "[") + KEYS[e.key];
  else if (TILDE[e.key]) data = "\x1b[" + TILDE[e.key] + "~";
  else if (PF[e.key]) data = "\x1bO" + PF[e.key];
  else if (e.key === "Enter") data = "\r";
  else if (e.key === "Backspace") data = "\x7f";
  else if (e.key === "Tab") data = e.shiftKey ? "\x1b[Z" : "\t";
  else if (e.key === "Escape") data = "\x1b";
  else if (e.ctrlKey && e.key.length === 1) { const c = e.key.toUpperCase().charCodeAt(0); if (c >= 64 && c < 96) data = String.fromCharCode(c - 64); else if (e.key === " ") data = "\0"; }
  else if (e.key.length === 1 || [...e.key].length === 1) data = (e.altKey ? "\x1b" : "") + e.key;
  if (data) { e.preventDefault(); type(data); }
});
view.addEventListener("paste", (e) => { e.preventDefault(); type(e.clipboardData.getData("text").replace(/\r?\n/g, "\r")); });
let socket = null, waitMs = 500, flows = false;
const send = (message) => { if (socket && socket.readyState === 1) socket.send(JSON.stringify(message)); };
const type = (data) => send({ type: "input", data });
function connect() {
  const query = new URLSearchParams(location.search);
  query.set("cols", cols); query.set("rows", rows); query.set("flow", "ack"); flows = false;
  const address = new URL(location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  address.pathname = address.pathname.replace(/\/$/, "") + "/ws";
  address.search = query.toString();
  socket = new WebSocket(address);
  socket.onopen = () => { waitMs = 500; state.textContent = ""; send({ type: "resize", cols, rows }); };
  socket.onmessage = (event) => { const m = JSON.parse(event.data); if (m.type === "output") { write(m.data); if (flows) send({ type: "ack", chars: m.data.length }); } else if (m.type === "window") flows = true; else if (m.type === "error") state.textContent = m.data; };
  socket.onclose = () => { state.textContent = "disconnected; trying again"; setTimeout(connect, waitMs); waitMs = Math.min(waitMs * 2, 10000); };
}
new ResizeObserver(fit).observe(view);
fit(); view.focus(); connect();
</script>
</html>
`;
