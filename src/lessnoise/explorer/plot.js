// The delta(epsilon) curves, drawn as SVG; colours and dashes come from the style sheet by mechanism name.

import { faithful, powerOfTen, upwards } from "./words.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const MARGIN = { left: 54, right: 14, top: 16, bottom: 42 };
const POINTS = 64;
const NEAR = [0.93, 0.96, 0.98, 0.99, 0.995, 0.998, 0.9995, 1, 1.002]; // curves of nearly pure mechanisms are steep there

/** The window around the target: a hundredth of epsilon to thirty times it; a thousandth of delta to 1. */
export function windowOf({ epsilon, delta }) {
  return { left: epsilon / 100, right: epsilon * 30, bottom: delta * 1e-3, top: 1 };
}

/** Points of one falling curve inside the window; what lies far below is left out. */
export function curvePoints(mechanism, view, epsilon) {
  const points = [];
  const ratio = Math.log(view.right / view.left);
  const places = Array.from({ length: POINTS + 1 }, (_, i) => view.left * Math.exp((ratio * i) / POINTS));
  places.push(...NEAR.map((factor) => factor * epsilon));
  for (const place of places.sort((a, b) => a - b)) {
    const value = mechanism.delta(place, 1e-4);
    // A pure mechanism's curve ends in 0, which has no place on a logarithmic axis: it leaves the window downwards.
    points.push([place, Math.max(value, view.bottom * 0.1)]);
    if (value < view.bottom * 0.1) break;
  }
  return points;
}

function element(name, attributes, text) {
  const node = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

/** Where numbers lie on the drawing. */
function scales(view, width, height) {
  const across = (width - MARGIN.left - MARGIN.right) / Math.log(view.right / view.left);
  const down = (height - MARGIN.top - MARGIN.bottom) / Math.log(view.top / view.bottom);
  return {
    x: (epsilon) => MARGIN.left + across * Math.log(epsilon / view.left),
    y: (delta) => MARGIN.top + down * Math.log(view.top / delta),
  };
}

function axes(svg, view, { x, y }, width, height) {
  const bottom = height - MARGIN.bottom;
  const decades = Math.log10(view.top / view.bottom);
  const every = decades > 9 ? 3 : decades > 5 ? 2 : 1;
  for (let n = 0; n >= Math.log10(view.bottom) - 1e-9; n -= every) {
    const at = y(10 ** n);
    svg.append(element("line", { class: "lnx-grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }));
    svg.append(element("text", { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end" }, powerOfTen(n)));
  }
  for (let n = Math.ceil(Math.log10(view.left) - 1e-9); n <= Math.log10(view.right) + 1e-9; n += 1) {
    const at = x(10 ** n);
    svg.append(element("line", { class: "lnx-grid", x1: at, x2: at, y1: MARGIN.top, y2: bottom }));
    svg.append(element("text", { x: at, y: bottom + 17, "text-anchor": "middle" }, powerOfTen(n)));
  }
  svg.append(element("text", { class: "lnx-axis", x: width - MARGIN.right, y: height - 6, "text-anchor": "end" }, "ε"));
  svg.append(element("text", { class: "lnx-axis", x: 6, y: MARGIN.top + 4 }, "δ"));
}

/** The curve of one mechanism and the dot at its exact delta. */
function drawCurve(svg, { x, y }, view, { name, points, exact, holds }, epsilon) {
  const path = points.map(([e, d], i) => `${i ? "L" : "M"}${x(e).toFixed(1)},${y(d).toFixed(1)}`).join("");
  const group = element("g", { "data-m": name, "clip-path": "url(#lnx-clip)" });
  group.append(element("path", { class: "lnx-curve", d: path }));
  if (exact >= view.bottom) {
    const dot = {
      class: holds ? "lnx-dot" : "lnx-dot lnx-dot-fails",
      cx: x(epsilon),
      cy: y(exact),
      r: holds ? 3.5 : 5,
    };
    group.append(element("circle", dot));
  }
  svg.append(group);
}

/** The target, and beside it how far the published R1SMG is from its claim. */
function drawTarget(svg, { x, y }, setting, published, width) {
  const [cx, cy] = [x(setting.epsilon), y(setting.delta)];
  const room = width - cx > 115;
  const side = room ? { dx: 12, "text-anchor": "start" } : { dx: -12, "text-anchor": "end" };
  if (published && !published.holds) {
    const top = y(published.exact);
    svg.append(element("line", { class: "lnx-gap", x1: cx, x2: cx, y1: cy - 8, y2: top + 7 }));
    const middle = Math.max((cy + top) / 2, MARGIN.top + 24);
    svg.append(
      element("text", { class: "lnx-note", x: cx, y: middle - 7, ...side }, `exact δ ${upwards(published.exact)}`),
    );
    svg.append(
      element("text", { class: "lnx-note", x: cx, y: middle + 9, ...side }, `claimed ${faithful(setting.delta)}`),
    );
  }
  svg.append(element("circle", { class: "lnx-target", cx, cy, r: 8 }));
  svg.append(element("text", { class: "lnx-note", x: cx, y: cy + 20, ...side }, "target (ε, δ)"));
}

/** Redraw everything. Each curve: { name, points, exact, holds }. */
export function drawPlot(svg, setting, curves, title) {
  const width = Math.max(svg.parentElement.clientWidth, 280);
  const height = Math.round(Math.min(Math.max(width * 0.62, 300), 430));
  const view = windowOf(setting);
  const place = scales(view, width, height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  svg.replaceChildren(element("title", {}, title));
  const clip = element("clipPath", { id: "lnx-clip" });
  const inside = { width: width - MARGIN.left - MARGIN.right + 8, height: height - MARGIN.top - MARGIN.bottom + 8 };
  clip.append(element("rect", { x: MARGIN.left, y: MARGIN.top - 8, ...inside }));
  svg.append(clip);
  axes(svg, view, place, width, height);
  for (const curve of curves) drawCurve(svg, place, view, curve, setting.epsilon);
  drawTarget(
    svg,
    place,
    setting,
    curves.find(({ name }) => name === "r1smg-published"),
    width,
  );
}
