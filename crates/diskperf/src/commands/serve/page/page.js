"use strict";

// The page asks for the state four times a second. The picture plays the newest window of it in
// slow motion, to its end, and then the next one.

const STATE_INTERVAL_MS = 250;
const COLOURS = {
  seek: "#d1495b", head_switch: "#e07a5f", settle: "#e9a03b", write_settle: "#e9a03b",
  rotational_latency: "#8d96a3", missed_revolution: "#7b2cbf", media_transfer: "#2a9d57",
  read: "#2a9d57", program: "#3477c9", erase: "#d1495b", collection: "#e9a03b",
  suspension: "#7b2cbf", channel: "#8d96a3",
};
const NAMES = {
  seek: "seek", head_switch: "head switch", settle: "settle", write_settle: "settle",
  rotational_latency: "rotational latency", missed_revolution: "missed revolution",
  media_transfer: "media transfer", read: "read", program: "program", erase: "erase",
  collection: "garbage collection", suspension: "suspended", channel: "waits for the channel",
};
const LEGENDS = {
  disk: ["seek", "head_switch", "settle", "rotational_latency", "missed_revolution", "media_transfer"],
  flash: ["read", "program", "erase", "collection", "suspension", "channel"],
  plain: [],
};

const element = (id) => document.getElementById(id);
const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const kindOf = (period) => period.work.split(":")[0];

let state = null;
let previous = null;
let film = null;

function number(value, digits) {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function showFigures() {
  const elapsed = previous ? state.elapsed_s - previous.elapsed_s : state.elapsed_s;
  const bytes = (of) => of.operations.reduce((sum, one) => sum + one.bytes, 0);
  const before = previous || { requests: 0, operations: [] };
  element("drive").textContent = state.drive;
  document.title = `${state.drive}, served by diskperf`;
  const speed = state.speed === 1 ? "" : ` at ${state.speed} times its speed`;
  element("summary").textContent =
    `${number(state.size_bytes / 2 ** 30, 1)} GiB${speed}, served for ${number(state.elapsed_s, 0)} s, ` +
    `${number(state.requests, 0)} requests`;
  element("rate").textContent = number((state.requests - before.requests) / elapsed, 0);
  element("throughput").textContent = number((bytes(state) - bytes(before)) / elapsed / 1e6, 1);
  element("in-flight").textContent = number(state.in_flight, 0);
  const late = Math.max(0, ...state.operations.map((of) => of.lateness_ms.p99));
  element("lateness").textContent = number(late, 3);
  element("operations").replaceChildren(...state.operations.map((of) => {
    const row = document.createElement("tr");
    const cells = [
      of.operation, number(of.requests, 0), number(of.failed, 0), number(of.service_ms.p50, 3),
      number(of.service_ms.p99, 3), number(of.lateness_ms.p50, 3),
      number(of.lateness_ms.p99, 3) + (of.is_late ? " late" : ""),
    ];
    row.append(...cells.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    return row;
  }));
  element("faults").textContent = state.faults
    .map((of) => `Fault ${of.name} (${of.kind}), ${of.on ? "on" : "off"}: struck ${of.strikes} requests.`)
    .join(" ");
}

function showLegend() {
  element("legend").replaceChildren(...LEGENDS[state.shape.kind].map((kind) => {
    const item = document.createElement("li");
    const space = "http://www.w3.org/2000/svg";
    const icon = document.createElementNS(space, "svg");
    icon.setAttribute("viewBox", "0 0 1 1");
    const square = document.createElementNS(space, "rect");
    square.setAttribute("width", "1");
    square.setAttribute("height", "1");
    square.setAttribute("fill", COLOURS[kind]);
    icon.append(square);
    item.append(icon, NAMES[kind]);
    return item;
  }));
}

// A film is a window of the drive's time with what happened in it.
function cut(of) {
  const start = of.now_ms - of.window_ms;
  return { shape: of.shape, periods: of.periods, end: of.now_ms, since: start, at: start };
}

// The arm rests where its last access ended, and moves evenly in a seek. A transfer since the last
// picture is shown, too: it may be shorter than the time between two pictures.
function armAt(periods, since, at, cylinders) {
  let cylinder = periods.length ? periods[0].cylinder : cylinders / 2;
  for (const period of periods) {
    if (period.start_ms > at) break;
    if (kindOf(period) === "seek" && at < period.end_ms) {
      const share = (at - period.start_ms) / (period.end_ms - period.start_ms);
      return { cylinder: cylinder + (period.cylinder - cylinder) * share, period };
    }
    cylinder = period.cylinder;
    const isSeen = kindOf(period) === "media_transfer" && since < period.end_ms;
    if (isSeen || at < period.end_ms) return { cylinder, period };
  }
  return { cylinder, period: null };
}

function drawDisk(context, width, height, { shape, periods, since, at }) {
  const middle = { x: width * 0.42, y: height / 2 };
  const outer = height * 0.46;
  const inner = outer * 0.4;
  const turn = (shape.start_angle + at / shape.revolution_ms) * 2 * Math.PI;
  const radius = (cylinder) => outer - (outer - inner) * (cylinder / Math.max(1, shape.cylinders - 1));
  const disc = (size, colour) => {
    context.beginPath();
    context.arc(middle.x, middle.y, size, 0, 2 * Math.PI);
    context.fillStyle = colour;
    context.fill();
  };
  disc(outer, style("--idle"));
  disc(inner * 0.6, style("--line"));
  // The platters turn against the angle of their sectors, which pass the head.
  context.strokeStyle = style("--line");
  for (let spoke = 0; spoke < 12; spoke++) {
    const angle = -turn + (spoke * Math.PI) / 6;
    context.lineWidth = spoke === 0 ? 4 : 1;
    context.beginPath();
    context.moveTo(middle.x + inner * Math.cos(angle), middle.y + inner * Math.sin(angle));
    context.lineTo(middle.x + outer * Math.cos(angle), middle.y + outer * Math.sin(angle));
    context.stroke();
  }
  const { cylinder, period } = armAt(periods, since, at, shape.cylinders);
  const colour = period ? COLOURS[kindOf(period)] : style("--faint");
  if (period) {
    // The sector that is waited for, or passes.
    const angle = period.angle * 2 * Math.PI - turn;
    const size = radius(period.cylinder);
    context.beginPath();
    context.arc(middle.x, middle.y, size, angle, angle + 0.15);
    context.strokeStyle = colour;
    context.lineWidth = 6;
    context.stroke();
  }
  const head = { x: middle.x + radius(cylinder), y: middle.y };
  context.strokeStyle = colour;
  context.lineWidth = 5;
  context.beginPath();
  context.moveTo(width - 12, height * 0.86);
  context.lineTo(head.x, head.y);
  context.stroke();
  context.fillStyle = colour;
  context.fillRect(head.x - 5, head.y - 5, 10, 10);
  return period
    ? `${NAMES[kindOf(period)]} for a ${period.access}, cylinder ${period.cylinder}, head ${period.head}`
    : "the arm rests";
}

function drawFlash(context, width, height, { shape, periods, at }) {
  const rows = Math.ceil(shape.dies / shape.channels);
  const cell = { width: width / shape.channels, height: Math.min(height / rows, 60) };
  const busy = new Map();
  for (const period of periods) {
    if (period.start_ms <= at && at < period.end_ms) busy.set(period.die, period);
  }
  for (let die = 0; die < shape.dies; die++) {
    const channel = die % shape.channels;
    const row = Math.floor(die / shape.channels);
    const period = busy.get(die);
    context.fillStyle = period ? COLOURS[kindOf(period)] : style("--idle");
    context.fillRect(channel * cell.width + 2, row * cell.height + 2, cell.width - 4, cell.height - 4);
  }
  const counts = new Map();
  for (const period of busy.values()) {
    counts.set(kindOf(period), (counts.get(kindOf(period)) || 0) + 1);
  }
  const list = [...counts].map(([kind, count]) => `${NAMES[kind]} ${count}`).join(", ");
  return `${busy.size} of ${shape.dies} dies busy${list ? `: ${list}` : ""}; a column is a channel`;
}

// Kinds of work that the picture has shown since the page was opened.
const shown = new Set();

function draw(elapsedMs) {
  const canvas = element("picture");
  const context = canvas.getContext("2d");
  const { shape, periods, since, at } = film;
  // Setting the height clears the picture.
  canvas.height = shape.kind === "flash" ? Math.min(400, 60 * Math.ceil(shape.dies / shape.channels)) : 400;
  const drawKind = { disk: drawDisk, flash: drawFlash }[shape.kind];
  element("scene").hidden = !drawKind;
  if (!drawKind) return;
  element("work").textContent = drawKind(context, canvas.width, canvas.height, film);
  element("moment").textContent = `${number(at, 2)} ms of the drive's time`;
  for (const period of periods) {
    if (period.start_ms <= at && since < period.end_ms) shown.add(kindOf(period));
  }
  canvas.dataset.shown = [...shown].sort().join(" ");
  advance(elapsedMs * Number(element("slowness").value));
}

// Moves the film on. Idle time between two pieces of work is skipped.
function advance(stepMs) {
  film.since = film.at;
  film.at += stepMs;
  const next = film.periods.find((period) => period.end_ms > film.at);
  if (film.at >= film.end || (film.periods.length > 0 && !next)) film = cut(state);
  else if (next && next.start_ms > film.at + 30 * stepMs) film.at = next.start_ms - 10 * stepMs;
}

let drawn = null;
function animate(now) {
  if (film) draw(drawn === null ? 0 : Math.min(now - drawn, 100));
  drawn = now;
  requestAnimationFrame(animate);
}

async function ask() {
  try {
    const answer = await fetch("/state.json");
    const next = await answer.json();
    const isFirst = state === null;
    // Rates are of a second.
    if (!previous || next.elapsed_s - previous.elapsed_s >= 1) previous = state;
    state = next;
    if (isFirst) showLegend();
    if (!film || (film.periods.length === 0 && state.periods.length > 0)) film = cut(state);
    showFigures();
  } catch {
    element("summary").textContent = "The server has ended.";
  }
  setTimeout(ask, STATE_INTERVAL_MS);
}

ask();
requestAnimationFrame(animate);
