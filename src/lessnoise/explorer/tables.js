// The bars and the tables of the page, built as DOM nodes.

import { faithful, nearest, relativeLoss, upwards } from "./words.js";

function node(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function verdict({ holds, unproved }) {
  const word = holds ? "holds" : unproved ? "not proved" : "fails";
  return node("span", { class: `lnx-verdict lnx-${word.replace(" ", "-")}` }, word);
}

/** Name with its colour; a remark below it. */
function mechanismHead(row, labelOf) {
  const head = node("th", { scope: "row" }, node("span", { class: "lnx-swatch", "aria-hidden": "true" }));
  head.append(row.label ?? labelOf(row.name));
  if (row.note) head.append(node("small", {}, row.note));
  return head;
}

/** "lower to upper", breaking only between the words. */
function bracketEnds(text) {
  return text.split(" ").flatMap((word, i) => [...(i ? [" "] : []), node("span", { class: "lnx-whole" }, word)]);
}

/** One row a mechanism. Certified rows carry the library's own words for the bracket. */
export function fillTable(body, rows, labelOf) {
  body.replaceChildren(
    ...rows.map((row) =>
      node(
        "tr",
        { "data-m": row.name, "data-source": row.certified ? "library" : "page" },
        mechanismHead(row, labelOf),
        node("td", {}, row.claimed === null ? "none" : nearest(row.claimed, 6)),
        node("td", { class: "lnx-exact" }, ...bracketEnds(row.bracket ?? upwards(row.exact))),
        node("td", {}, row.claimed === null ? "" : verdict(row)),
        node("td", {}, relativeLoss(row.relative)),
        node("td", {}, nearest(row.loss)),
        node("td", {}, nearest(row.spread)),
        node("td", {}, row.scale === undefined ? "" : row.scale + nearest(row.scaleValue)),
      ),
    ),
  );
}

/**
 * Bars on a logarithmic scale that start at the analytic Gaussian: to the left less loss, to the right more.
 * A mechanism that fails its claim is hatched: its loss buys less privacy than it says.
 */
export function fillBars(list, rows, labelOf) {
  const logs = rows.map(({ relative }) => Math.log10(relative));
  const low = Math.min(-0.5, ...logs);
  const high = Math.max(0.5, ...logs);
  // Square-root distances keep a factor of 2 visible beside a factor of 10^20.
  const bend = (log) => Math.sign(log) * Math.sqrt(Math.abs(log));
  const span = bend(high) - bend(low);
  const place = (log) => (100 * (bend(log) - bend(low))) / span;
  list.replaceChildren(
    ...rows.map((row, i) => {
      const [from, to] = [place(Math.min(0, logs[i])), place(Math.max(0, logs[i]))];
      const bar = node("span", { class: row.holds ? "lnx-bar" : "lnx-bar lnx-bar-fails" });
      bar.style.left = `${from}%`;
      bar.style.width = `${Math.max(to - from, 0.6)}%`;
      const zero = node("span", { class: "lnx-zero" });
      zero.style.left = `${place(0)}%`;
      return node(
        "li",
        { "data-m": row.name },
        node("span", { class: "lnx-bar-name" }, row.label ?? labelOf(row.name)),
        node("span", { class: "lnx-track", "aria-hidden": "true" }, zero, bar),
        node("span", { class: "lnx-bar-ratio" }, relativeLoss(row.relative)),
        node("span", { class: "lnx-bar-value" }, `E‖n‖² ${nearest(row.loss, 3)}, per entry ${nearest(row.spread, 3)}`),
      );
    }),
  );
}

/** The curves as numbers, for readers who do not see the picture. */
export function fillCurveTable(table, rows, setting, labelOf) {
  const places = [0.1, 0.3, 1, 2, 5, 10].map((factor) => Number((setting.epsilon * factor).toPrecision(3)));
  const head = node("tr", {}, node("th", { scope: "col" }, "δ at ε ="));
  for (const place of places) head.append(node("th", { scope: "col" }, faithful(place)));
  const body = rows
    .filter((row) => row.delta)
    .map((row) => {
      const line = node("tr", { "data-m": row.name }, mechanismHead({ ...row, note: "" }, labelOf));
      for (const place of places) line.append(node("td", {}, small(row.delta(place, 1e-6))));
      return line;
    });
  table.replaceChildren(node("thead", {}, head), node("tbody", {}, ...body));
}

function small(delta) {
  return delta > 0 && delta < 1e-30 ? "< 1e-30" : upwards(delta, 3);
}
