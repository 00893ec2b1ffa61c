// Numbers and sentences as the page shows them.

import { CHANGES } from "./changes.js";

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** 10^n with a raised exponent. */
export function powerOfTen(n) {
  if (n === 0) return "1";
  return n === 1 ? "10" : `10${[...String(n)].map((digit) => SUPERSCRIPTS[digit]).join("")}`;
}

/** A decimal string without superfluous zeros: plain between 1e-3 and 1e6, scientific elsewhere. */
function tidy(text) {
  const value = Number(text);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e6) return String(value);
  return value.toExponential().replace("e+", "e");
}

/** The nearest number of the given significant digits. */
export function nearest(value, digits = 4) {
  if (value === Infinity) return "infinite";
  return tidy(value.toPrecision(digits));
}

/** Not below the value: privacy numbers are rounded to the safe side. What rounding errors add (1e-9) is not shown. */
export function upwards(value, digits = 4) {
  const text = value.toPrecision(digits);
  if (Number(text) >= value * (1 - 1e-9)) return tidy(text);
  const unit = 10 ** (Math.floor(Math.log10(value)) - digits + 1);
  return tidy((Number(text) + unit).toPrecision(digits));
}

/** The shortest text that reads back as the same number. */
export function faithful(value) {
  return tidy(String(value));
}

const COMPACT = new Intl.NumberFormat("en", {
  notation: "compact",
  compactDisplay: "long",
  maximumSignificantDigits: 2,
});

/** "2.2 million times", "1.5 times", "10¹⁸ times". */
export function times(ratio) {
  if (ratio >= 1e15) return `${powerOfTen(Math.floor(Math.log10(ratio)))} times`;
  return `${ratio >= 1000 ? COMPACT.format(ratio) : Number(ratio.toPrecision(2))} times`;
}

/** A loss relative to the analytic Gaussian's. */
export function relativeLoss(ratio) {
  if (ratio === Infinity) return "infinite";
  return ratio >= 1e-3 && ratio < 1e5 ? `×${Number(ratio.toPrecision(4))}` : `×${nearest(ratio, 3)}`;
}

/** What the setting shows, in two sentences. */
export function summary(setting, rows, labelOf) {
  const place = `M = ${setting.dimension}, ε = ${faithful(setting.epsilon)}, where ${CHANGES[setting.changes].short}`;
  const published = rows.find((row) => row.name === "r1smg-published");
  // A gain too small to show is none: the analytic Gaussian is the simpler choice.
  // The least noise may be another row's law under its own name.
  const head = { "analytic-gaussian": 1e-4, "least-noise": 1e-6 };
  const rank = (row) => row.relative - (head[row.name] ?? 0) * Math.min(row.relative, 1);
  const best = rows.filter((row) => row.holds).reduce((a, b) => (rank(b) < rank(a) ? b : a));
  const sentences = [];
  if (!published) {
    sentences.push(
      `At ${place}: R1SMG as published is not shown, because its paper states it for more than two entries.`,
    );
  } else if (published.holds) {
    sentences.push(
      `At ${place}: R1SMG as published keeps its claim δ = ${faithful(setting.delta)}, ` +
        `with ${relativeLoss(published.relative)} the loss of the analytic Gaussian.`,
    );
  } else {
    sentences.push(
      `At ${place}: R1SMG as published claims δ = ${faithful(setting.delta)}; its exact δ is ` +
        `${upwards(published.exact)}, ${times(published.exact / setting.delta)} as much.`,
    );
  }
  const reference =
    best.name === "analytic-gaussian" ? "" : `, ${relativeLoss(best.relative)} the analytic Gaussian's loss`;
  sentences.push(
    `Of the mechanisms that keep the target, ${best.label ?? labelOf(best.name)} has the smallest loss: ` +
      `${nearest(best.spread)} per entry (root mean square)${reference}.`,
  );
  return sentences.join(" ");
}
