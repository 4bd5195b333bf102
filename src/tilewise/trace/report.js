"use strict";
// Draws what the report has computed. Nothing is computed here but places on the screen, sums and quotients.

window.addEventListener("error", (event) => {
  const place = document.getElementById("error");
  place.textContent = `The page could not be drawn: ${event.message}`;
  place.hidden = false;
});

const data = JSON.parse(document.getElementById("data").textContent);
const KINDS = data.kinds;
const ARRAYS = { "<u4": Uint32Array, "<f4": Float32Array, "<f8": Float64Array };
const SHORTEST = 1e-9;
const find = (id) => document.getElementById(id);
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

let shown = null; // the iteration on the screen
let view = { from: 0, to: 1 }; // seconds that the Gantt chart shows

// Numbers for people

function digits(value) {
  if (value === 0) return "0";
  const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(Number(value.toPrecision(3))))));
  return value.toFixed(Math.min(places, 20));
}

function unitOf(seconds) {
  return [["s", 1], ["ms", 1e-3], ["µs", 1e-6]].find(([, size]) => seconds >= 0.9995 * size) ?? ["ns", 1e-9];
}

function time(seconds) {
  const [unit, size] = unitOf(seconds);
  return seconds === 0 ? "0 s" : `${digits(seconds / size)} ${unit}`;
}

function tick(seconds) {
  // A power of ten, or near to one.
  const [unit, size] = unitOf(seconds);
  return `${Number((seconds / size).toPrecision(3))} ${unit}`;
}

function bytes(count) {
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (count >= 0.9995 * size) return `${digits(count / size)} ${unit}`;
  }
  return `${count} B`;
}

const percent = (share) =>
  share > 0 && share < 0.00095 ? `${Number((100 * share).toPrecision(2))} %` : `${(100 * share).toFixed(1)} %`;
const count = (value) => value.toLocaleString("en-US").replaceAll(",", "\u2009");
const ratio = (value) => (value === null ? "" : digits(value));

function steps(from, to, about) {
  // Round places on a linear axis.
  const raw = Math.max(to - from, 1e-12) / about;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((f) => f >= raw);
  const places = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to * (1 + 1e-12); k++) places.push(k * step);
  return places;
}

function timeSteps(from, to, about) {
  // Round places on an axis of time, with labels that tell neighbours apart.
  const places = steps(from, to, about), [unit, size] = unitOf(to);
  const step = places.length > 1 ? (places[1] - places[0]) / size : 1;
  const decimals = Math.min(20, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return places.map((place) => [place, `${(place / size).toFixed(decimals)} ${unit}`]);
}

// Elements

function element(tag, settings = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(settings)) {
    if (key === "style") made.style.cssText = value;
    else if (key === "class") made.className = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawing(tag, settings = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(settings)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function legend(id, entries) {
  find(id).replaceChildren(...entries.map(([name, text]) =>
    element("span", {}, element("i", { style: `background:var(--${name})` }), text)));
}

function tip(event, head, lines) {
  const place = find("tip");
  place.hidden = !head;
  if (!head) return;
  place.replaceChildren(element("b", {}, head));
  for (const [name, text] of lines) place.append(element("span", {}, `${name} `), text, element("br"));
  const { width, height } = place.getBoundingClientRect();
  place.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  place.style.top = `${event.clientY + 18 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 18}px`;
}

const waiting = new Set();

function soon(act) {
  // Once before the next frame, however often it is asked for.
  if (!waiting.size) {
    requestAnimationFrame(() => {
      const acts = [...waiting];
      waiting.clear();
      for (const one of acts) one();
    });
  }
  waiting.add(act);
}

function withTip(target, head, lines) {
  target.addEventListener("mousemove", (event) => tip(event, head, lines));
  target.addEventListener("mouseleave", (event) => tip(event, ""));
  return target;
}

function prepared(id, height) {
  // A canvas as sharp as the screen; returns its pen and its width.
  const canvas = find(id), scale = window.devicePixelRatio || 1, width = canvas.clientWidth;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  return { pen, width };
}

function nameOf(worker) {
  const each = data.workers / data.ranks;
  return data.ranks === 1 ? `worker ${worker}` : `rank ${Math.floor(worker / each)}, ${worker % each}`;
}

// Tasks: columns of one iteration, by worker and start

function columns(iteration) {
  if (iteration.decoded) return iteration.decoded;
  const made = {};
  for (const [name, kind] of Object.entries(data.types)) {
    const text = atob(iteration.columns[name]);
    const raw = new Uint8Array(text.length);
    for (let k = 0; k < text.length; k++) raw[k] = text.charCodeAt(k);
    made[name] = new ARRAYS[kind](raw.buffer);
  }
  made.first = new Uint32Array(data.workers + 1); // where the tasks of each worker begin
  for (const worker of made.worker) made.first[worker + 1]++;
  for (let w = 0; w < data.workers; w++) made.first[w + 1] += made.first[w];
  iteration.decoded = made;
  return made;
}

function firstAfter(tasks, worker, when) {
  // The first task of a worker that ends after a time.
  let low = tasks.first[worker], high = tasks.first[worker + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tasks.start[middle] + tasks.seconds[middle] > when) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Gantt chart

const LEFT = 76, TOP = 20, BOTTOM = 24;
const rowHeight = () => Math.max(9, Math.min(52, Math.floor(520 / data.workers)));
const ganttWidth = () => Math.max(1, find("gantt").clientWidth - LEFT - 8);
const toX = (when) => LEFT + (ganttWidth() * (when - view.from)) / (view.to - view.from);
const toTime = (x) => view.from + ((x - LEFT) * (view.to - view.from)) / ganttWidth();

function drawGantt() {
  const row = rowHeight(), height = TOP + row * data.workers + BOTTOM;
  const { pen, width } = prepared("gantt", height);
  const colors = KINDS.map(color), soft = color("soft"), line = color("line");
  const bar = row - (row > 14 ? 4 : 1), base = TOP + row * data.workers;
  pen.textBaseline = "middle";
  const skip = Math.ceil(14 / row);
  for (let w = 0; w < data.workers; w++) {
    pen.fillStyle = color("track");
    pen.fillRect(LEFT, TOP + w * row, ganttWidth(), bar);
    pen.fillStyle = soft;
    if (w % skip === 0) pen.fillText(nameOf(w), 0, TOP + w * row + bar / 2);
  }
  for (let w = 0; w < data.workers; w++) drawRow(pen, w, TOP + w * row, bar, colors);
  drawLevels(pen, base);
  pen.textBaseline = "top";
  pen.textAlign = "center";
  for (const [when, label] of timeSteps(view.from, view.to, width / 130)) {
    const x = toX(when);
    pen.fillStyle = line;
    pen.fillRect(x, base, 1, 5);
    pen.fillStyle = soft;
    if (x + pen.measureText(label).width / 2 < width) pen.fillText(label, x, base + 8);
  }
}

function drawRow(pen, worker, y, height, colors) {
  const tasks = columns(shown), wide = Math.ceil(ganttWidth());
  const scale = ganttWidth() / (view.to - view.from);
  const work = KINDS.map(() => new Float32Array(wide + 2)); // of narrow tasks: pixels of work by kind and column
  let last = -1;
  for (let k = firstAfter(tasks, worker, view.from); k < tasks.first[worker + 1]; k++) {
    const left = (tasks.start[k] - view.from) * scale;
    if (left > wide) break;
    const right = Math.min(left + tasks.seconds[k] * scale, wide);
    const from = Math.max(left, 0);
    if (right - from >= 1) {
      if (tasks.kind[k] !== last) pen.fillStyle = colors[(last = tasks.kind[k])];
      // A hair of background between neighbours, once there is room for it.
      pen.fillRect(LEFT + from, y, right - from - (right - from > 4 ? 0.6 : 0), height);
      continue;
    }
    const column = Math.floor(from), cut = Math.min(right, column + 1);
    work[tasks.kind[k]][column] += cut - from;
    if (right > cut) work[tasks.kind[k]][column + 1] += right - cut;
  }
  const floor = new Float32Array(wide).fill(y + height);
  work.forEach((parts, kind) => {
    pen.fillStyle = colors[kind];
    for (let column = 0; column < wide; column++) {
      const part = parts[column] * height;
      if (part < 0.05) continue;
      floor[column] -= part;
      pen.fillRect(LEFT + column, floor[column], 1, part);
    }
  });
}

function drawLevels(pen, base) {
  let free = LEFT;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const level of [...shown.levels].sort((one, other) => one.end - other.end)) {
    const x = toX(level.end);
    if (x < LEFT || x > LEFT + ganttWidth() + 1) continue;
    pen.strokeStyle = color("text");
    pen.globalAlpha = 0.55;
    pen.setLineDash([4, 3]);
    pen.beginPath();
    pen.moveTo(x, TOP - 4);
    pen.lineTo(x, base);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    const text = x - free > 52 ? `level ${level.level}` : `${level.level}`;
    if (x - free < pen.measureText(text).width + 5) continue;
    pen.fillStyle = color("soft");
    pen.fillText(text, x, TOP - 11);
    free = x;
  }
  pen.textAlign = "left";
}

function taskAt(x, y) {
  const worker = Math.floor((y - TOP) / rowHeight());
  if (worker < 0 || worker >= data.workers || x < LEFT) return -1;
  const tasks = columns(shown), when = toTime(x), reach = toTime(x + 2) - when;
  const k = firstAfter(tasks, worker, when - reach);
  let best = -1, distance = reach;
  for (let near = k; near < Math.min(k + 50, tasks.first[worker + 1]); near++) {
    const start = tasks.start[near], end = start + tasks.seconds[near];
    const away = when < start ? start - when : Math.max(0, when - end);
    if (away < distance) [best, distance] = [near, away];
    if (away === 0 || start > when + reach) break;
  }
  return best;
}

function tipOfTask(event, k) {
  const tasks = columns(shown);
  const lines = [
    ["block", data.blocks[tasks.block[k]]],
    ["kind", `${KINDS[tasks.kind[k]]}, level ${tasks.level[k]}, ${nameOf(tasks.worker[k])}`],
    ["from", `${time(tasks.start[k])} for ${time(tasks.seconds[k])}`],
    ["predicted", time(tasks.predicted[k])],
    ["waited", time(tasks.wait[k])],
  ];
  if (tasks.flops[k]) lines.push(["speed", `${digits((1e-9 * tasks.flops[k]) / tasks.seconds[k])} GF/s`]);
  tip(event, data.operations[tasks.operation[k]], lines);
}

function look(from, to) {
  // Moves the view, which stays inside of the iteration and never gets shorter than 100 ns.
  const whole = shown.makespan, length = Math.min(Math.max(to - from, Math.min(1e-7, whole)), whole);
  from = Math.min(Math.max(from, 0), whole - length);
  view = { from, to: from + length };
  soon(drawGantt);
}

function zoom(factor, around = (view.from + view.to) / 2) {
  look(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

function listenToGantt() {
  const canvas = find("gantt");
  let dragged = null;
  canvas.addEventListener("wheel", (event) => {
    const all = view.to - view.from >= shown.makespan;
    if (all && event.deltaY > 0) return; // nothing to zoom out of: the page scrolls
    event.preventDefault();
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), toTime(event.offsetX));
  }, { passive: false });
  canvas.addEventListener("pointerdown", (event) => {
    dragged = { x: event.clientX, ...view };
    canvas.setPointerCapture(event.pointerId);
    canvas.classList.add("dragged");
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) {
      const moved = ((dragged.x - event.clientX) * (dragged.to - dragged.from)) / ganttWidth();
      look(dragged.from + moved, dragged.to + moved);
    }
    const k = dragged ? -1 : taskAt(event.offsetX, event.offsetY);
    if (k < 0) tip(event, "");
    else tipOfTask(event, k);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(name, () => {
      dragged = null;
      canvas.classList.remove("dragged");
    });
  }
  canvas.addEventListener("pointerleave", (event) => tip(event, ""));
  canvas.addEventListener("dblclick", () => look(0, shown.makespan));
  canvas.addEventListener("keydown", (event) => {
    const part = 0.2 * (view.to - view.from);
    const acts = {
      "+": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": () => look(0, shown.makespan),
      ArrowLeft: () => look(view.from - part, view.to - part),
      ArrowRight: () => look(view.from + part, view.to + part),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
  for (const button of document.querySelectorAll("[data-zoom]")) {
    const acts = { in: () => zoom(0.6), out: () => zoom(1 / 0.6), all: () => look(0, shown.makespan) };
    button.addEventListener("click", acts[button.dataset.zoom]);
  }
}

// Shares of each worker

const SHARES = ["compute", "sort", "counter", "idle"];

function drawShares() {
  const rows = shown.workers.map((worker, w) => {
    const whole = SHARES.reduce((sum, name) => sum + worker[name], 0) || 1;
    const parts = SHARES.map((name) => [name, worker[name] / whole]);
    const pieces = parts.map(([name, share]) => withTip(
      element("span", { style: `width:${100 * share}%;background:var(--${name})` }),
      `${nameOf(w)}: ${name}`, [["", `${time(worker[name])}, ${percent(share)}`]]));
    return element("tr", {}, element("td", {}, nameOf(w)),
      element("td", { class: "bar" }, element("div", {}, ...pieces)),
      ...parts.map(([name, share]) => element("td", { "data-share": name }, percent(share))));
  });
  const heads = ["", "", ...SHARES].map((name) => element("th", {}, name));
  find("shares").replaceChildren(element("tr", {}, ...heads), ...rows);
}

// Charts of bars

function axis(chart, left, width, toY, places) {
  for (const [place, label] of places) {
    chart.append(drawing("line", { x1: left, x2: width, y1: toY(place), y2: toY(place), stroke: "var(--line)" }));
    chart.append(drawing("text", { x: left - 8, y: toY(place) + 4, "text-anchor": "end" }, label));
  }
}

function drawSizes() {
  const bins = shown.histogram, width = find("sizes").clientWidth, height = 300;
  const left = 46, top = 22, base = height - 42;
  const shares = bins.map((bin) => [bin.tasks / shown.tasks, shown.work ? bin.seconds / shown.work : 0]);
  const most = Math.max(...shares.flat());
  const toY = (share) => base - ((base - top) * share) / most;
  const chart = drawing("svg", { height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  axis(chart, left, width, toY, steps(0, most, 5).map((share) => [share, `${Number((100 * share).toPrecision(2))} %`]));
  const slot = (width - left) / bins.length, bar = Math.min(30, 0.42 * slot);
  bins.forEach((bin, k) => {
    const middle = left + (k + 0.5) * slot;
    const group = drawing("g");
    ["compute", "time"].forEach((name, side) => {
      group.append(drawing("rect", { x: middle + (side ? 1 : -1 - bar), width: bar, rx: 2,
        y: toY(shares[k][side]), height: base - toY(shares[k][side]), fill: `var(--${name})` }));
    });
    if (bin.tasks && 7 * count(bin.tasks).length < slot) {
      group.append(drawing("text", { x: middle - bar / 2 - 1, y: toY(shares[k][0]) - 4, "text-anchor": "middle" },
        count(bin.tasks)));
    }
    chart.append(withTip(group, `${time(bin.low)} to ${time(bin.high)}`, [
      ["tasks", `${count(bin.tasks)}, ${percent(shares[k][0])}`], ["time", `${time(bin.seconds)}, ${percent(shares[k][1])}`]]));
  });
  bins.forEach((bin, k) => {
    const decade = Math.abs(Math.log10(bin.low) - Math.round(Math.log10(bin.low))) < 1e-6;
    if (!decade && bins.length > 4) return;
    const x = left + k * slot;
    chart.append(drawing("line", { x1: x, x2: x, y1: base, y2: base + 6, stroke: "var(--soft)" }));
    chart.append(drawing("text", { x, y: base + 20, "text-anchor": "middle" }, tick(bin.low)));
  });
  chart.append(drawing("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "time of a task"));
  find("sizes").replaceChildren(chart);
}

function drawBounds() {
  const all = data.iterations, width = find("bounds").clientWidth, height = 300;
  const left = 64, top = 14, base = height - 42;
  const most = Math.max(...all.map((one) => Math.max(one.makespan, one.critical_path, one.work / data.workers)));
  const toY = (seconds) => base - ((base - top) * seconds) / (most || 1);
  const chart = drawing("svg", { height, viewBox: `0 0 ${width} ${height}`, role: "img" });
  axis(chart, left, width, toY, timeSteps(0, most, 5));
  const slot = (width - left) / all.length, bar = Math.min(22, 0.26 * slot);
  all.forEach((one, k) => {
    const middle = left + (k + 0.5) * slot, here = one === shown;
    const parts = [["path", one.critical_path], ["compute", one.work / data.workers], ["makespan", one.makespan]];
    const group = drawing("g", { class: "pick", opacity: here ? 1 : 0.5 });
    group.append(drawing("rect", { x: middle - slot / 2, width: slot, y: top, height: base - top, fill: "transparent" }));
    parts.forEach(([name, seconds], side) => group.append(drawing("rect", {
      x: middle + (side - 1.5) * bar, width: Math.max(bar - 1, 1), y: toY(seconds), height: base - toY(seconds),
      fill: `var(--${name})` })));
    group.addEventListener("click", () => choose(one.number));
    chart.append(withTip(group, `iteration ${one.number}`, [
      ["critical path", time(one.critical_path)], ["work / workers", time(one.work / data.workers)],
      ["makespan", time(one.makespan)], ["imbalance", percent(one.imbalance)]]));
    if (k % Math.ceil(26 / slot) === 0 || here) {
      chart.append(drawing("text", { x: middle, y: base + 20, "text-anchor": "middle", class: here ? "strong" : "" },
        `${one.number}`));
    }
  });
  chart.append(drawing("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "iteration"));
  find("bounds").replaceChildren(chart);
}

// Predicted and measured

function drawScatter() {
  const tasks = columns(shown), height = 420;
  const { pen, width } = prepared("scatter", height);
  const left = 64, top = 10, base = height - 46, right = width - 12;
  let low = Infinity, high = 0;
  for (const column of [tasks.predicted, tasks.seconds]) {
    for (const value of column) {
      low = Math.min(low, Math.max(value, SHORTEST));
      high = Math.max(high, value);
    }
  }
  const from = Math.floor(Math.log10(low)), to = Math.max(from + 1, Math.ceil(Math.log10(high || SHORTEST)));
  const place = (value) => (Math.log10(Math.max(value, SHORTEST)) - from) / (to - from);
  const x = (value) => left + (right - left) * place(value), y = (value) => base - (base - top) * place(value);
  pen.fillStyle = color("soft");
  pen.strokeStyle = color("line");
  pen.textBaseline = "middle";
  for (let power = from; power <= to; power++) {
    const value = 10 ** power;
    pen.beginPath();
    pen.moveTo(x(value), top);
    pen.lineTo(x(value), base);
    pen.moveTo(left, y(value));
    pen.lineTo(right, y(value));
    pen.stroke();
    pen.textAlign = "right";
    pen.fillText(tick(value), left - 8, y(value));
    if ((right - left) / (to - from) < 64 && (to - power) % 2) continue; // no room for every label
    pen.textAlign = power === to ? "right" : "center";
    pen.fillText(tick(value), x(value), base + 14);
  }
  pen.textAlign = "center";
  pen.fillText("predicted", (left + right) / 2, height - 8);
  pen.save();
  pen.translate(8, (top + base) / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText("measured", 0, 0);
  pen.restore();
  const colors = KINDS.map(color), size = tasks.kind.length > 5000 ? 2 : 4;
  pen.globalAlpha = tasks.kind.length > 5000 ? 0.45 : 0.75;
  let last = -1;
  for (let k = 0; k < tasks.kind.length; k++) {
    if (tasks.kind[k] !== last) pen.fillStyle = colors[(last = tasks.kind[k])];
    pen.fillRect(x(tasks.predicted[k]) - size / 2, y(tasks.seconds[k]) - size / 2, size, size);
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = color("text");
  pen.beginPath();
  pen.moveTo(left, base);
  pen.lineTo(right, top);
  pen.stroke();
}

// Tables

function sortable(id, heads, rows, by) {
  // `heads`: name and how to show a value; rows: lists of values. A click sorts, another turns the order.
  const table = find(id);
  const order = { by: table.sorted?.by ?? by, down: table.sorted?.down ?? true };
  const fill = () => {
    table.sorted = order;
    const sign = order.down ? -1 : 1;
    const value = (row) => row[order.by] ?? -Infinity;
    const sorted = [...rows].sort((one, other) => sign * (value(one) > value(other) ? 1 : value(one) < value(other) ? -1 : 0));
    const top = element("tr", {}, ...heads.map(([name], k) => {
      const button = element("button", {}, name);
      button.addEventListener("click", () => {
        order.down = order.by === k ? !order.down : typeof rows[0][k] !== "string";
        order.by = k;
        fill();
      });
      return element("th", order.by === k ? { "aria-sort": order.down ? "descending" : "ascending" } : {}, button);
    }));
    table.replaceChildren(element("thead", {}, top), element("tbody", {}, ...sorted.map((row) =>
      element("tr", {}, ...row.map((cell, k) => heads[k][1](cell))))));
  };
  fill();
}

const cell = (show) => (value) => element("td", {}, show(value));
const text = (value) => element("td", { class: "text" }, value);
const kind = (value) => element("td", { class: "kind" },
  element("i", { style: `background:var(--${value.split(",")[0]})` }), value);

function drawOperations() {
  sortable("operations",
    [["operation", text], ["kind", kind], ["tasks", cell(count)], ["time", cell(time)], ["share", cell(percent)],
      ["longest task", cell(time)], ["imbalance", cell(digits)], ["GF/s", cell((value) => (value ? digits(value) : ""))]],
    shown.operations.map((row) => [row.text, row.kind, row.tasks, row.seconds, row.share, row.longest, row.imbalance,
      row.gigaflops]), 3);
  sortable("predictions",
    [["operation", text], ["predicted", cell(time)], ["measured", cell(time)], ["ratio", cell(ratio)]],
    shown.operations.map((row) => [row.text, row.predicted, row.seconds, row.ratio]), 2);
}

function drawCounters() {
  const heads = ["", "counter calls", "steals", "time in counters", "arena, at most", "heap allocations in tasks"];
  const sum = (name) => shown.workers.reduce((total, worker) => total + worker[name], 0);
  const row = (head, value, settings) => element("tr", settings, element("td", {}, head),
    ...[count(value("counter_calls")), count(value("steals")), time(value("counter")), bytes(value("arena_bytes")),
      count(value("allocations"))].map((shownValue) => element("td", {}, shownValue)));
  find("counters").replaceChildren(element("tr", {}, ...heads.map((head) => element("th", {}, head))),
    ...shown.workers.map((worker, w) => row(nameOf(w), (name) => worker[name], {})),
    row("all", sum, { class: "total" }));
}

// What ranks moved

function drawMoved() {
  find("between-ranks").hidden = !shown.ranks.length;
  const heads = ["", "Gets", "additions", "moved", "messages", "under way", "hidden"];
  const sum = (name) => shown.ranks.reduce((total, rank) => total + rank[name], 0);
  const row = (head, value, settings) => element("tr", settings, element("td", {}, head),
    ...[count(value("gets")), count(value("adds")), bytes(value("bytes")), count(value("messages")),
      time(value("seconds")), value("seconds") ? percent(Math.min(1, value("hidden") / value("seconds"))) : ""]
      .map((shownValue) => element("td", {}, shownValue)));
  find("moved").replaceChildren(element("tr", {}, ...heads.map((head) => element("th", {}, head))),
    ...shown.ranks.map((rank, k) => row(`rank ${k}`, (name) => rank[name], {})), row("all", sum, { class: "total" }));
}

// The whole page

function drawNumbers() {
  const each = shown.work / data.workers, whole = shown.makespan || 1;
  const say = (id, words) => { find(id).textContent = words; };
  say("makespan", time(shown.makespan));
  say("makespan-note", `${count(shown.tasks)} tasks in ${shown.levels.length} levels`);
  say("imbalance", percent(shown.imbalance));
  say("critical-share", percent(shown.critical_path / whole));
  say("critical-note", `critical path ${time(shown.critical_path)}`);
  say("work-each", time(each));
  say("work-note", `${percent(each / whole)} of the makespan`);
  say("prediction", shown.predicted ? digits(shown.work / shown.predicted) : "none");
  say("prediction-note", `${percent(shown.close)} of tasks within factor 2`);
}

function draw() {
  drawNumbers();
  drawGantt();
  drawShares();
  drawSizes();
  drawBounds();
  drawScatter();
  drawOperations();
  drawMoved();
  drawCounters();
  document.body.dataset.iteration = shown.number;
}

function choose(number) {
  location.hash = `iteration=${number}`;
}

function show() {
  // The iteration that the address asks for, or the one that the report was made for.
  const asked = Number(new URLSearchParams(location.hash.slice(1)).get("iteration") ?? data.shown);
  const at = Math.max(0, data.iterations.findIndex((one) => one.number === asked));
  shown = data.iterations[at];
  view = { from: 0, to: shown.makespan || 1 };
  find("iteration").value = shown.number;
  find("previous").disabled = at === 0;
  find("next").disabled = at === data.iterations.length - 1;
  find("previous").onclick = () => choose(data.iterations[at - 1].number);
  find("next").onclick = () => choose(data.iterations[at + 1].number);
  draw();
}

function open() {
  find("policy").textContent = data.policy;
  find("workers").textContent = `${data.workers} worker${data.workers === 1 ? "" : "s"}`;
  const name = `${data.policy}: `; // the decision begins with it, and it is said already
  find("decision").textContent = data.decision.startsWith(name) ? data.decision.slice(name.length) : data.decision;
  find("iteration").append(...data.iterations.map((one) => element("option", { value: one.number }, `${one.number}`)));
  find("iteration").addEventListener("change", (event) => choose(event.target.value));
  legend("kinds", KINDS.map((name) => [name, name]));
  legend("shares-legend", [["compute", "compute"], ["sort", "sort"], ["counter", "counter"], ["idle", "idle: waiting"]]);
  legend("sizes-legend", [["compute", "share of the tasks (their number above)"], ["time", "share of the time"]]);
  legend("bounds-legend", [["path", "critical path"], ["compute", "work / workers"], ["makespan", "makespan"]]);
  listenToGantt();
  addEventListener("hashchange", show);
  addEventListener("resize", () => soon(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  show();
}

open();
