// The setting and the controls that change it: sliders over tidy values, number boxes, the address of the page.

import { CHANGES, changesFrom } from "./changes.js";
import { faithful } from "./words.js";

/** Values of about 40 a decade with two significant digits; whole numbers where only they make sense. */
function tidyValues(from, to, whole) {
  const values = new Set();
  const first = Math.round(40 * Math.log10(from));
  const last = Math.round(40 * Math.log10(to));
  for (let i = first; i <= last; i += 1) {
    const value = Number((10 ** (i / 40)).toPrecision(2));
    if (!whole || Number.isInteger(value)) values.add(value);
  }
  return [...values];
}

/** What can be set: the name in addresses and commands, the slider's values, and the widest range of the box. */
export const FIELDS = {
  dimension: { key: "M", values: tidyValues(1, 1e6, true), least: 1, most: 1e9, whole: true },
  epsilon: { key: "epsilon", values: tidyValues(1e-5, 20), least: 1e-6, most: 50 },
  delta: { key: "delta", values: tidyValues(1e-12, 0.1), least: 1e-15, most: 0.4 },
  sensitivity: { key: "sensitivity", values: tidyValues(1e-3, 1e3), least: 1e-9, most: 1e9 },
};

/** The setting of the paper's count query: 89 x 89 cells, neighbours that replace one row. */
export const FIRST_SETTING = { dimension: 7921, epsilon: 1e-5, delta: 1e-7, sensitivity: 1, changes: "moved" };

/** The sentence that says why a text is no value of a field; empty if it is one. */
export function complaint(name, text) {
  const { key, least, most, whole } = FIELDS[name];
  const value = text.trim() === "" ? NaN : Number(text);
  const range = `between ${faithful(least)} and ${faithful(most)}`;
  if (!Number.isFinite(value)) return `${key}=${text} is not a number: write one ${range}.`;
  if (whole && !Number.isInteger(value)) return `${key}=${text} is not a whole number: write one ${range}.`;
  if (value < least || value > most) return `${key}=${text} is out of range: write a number ${range}.`;
  return "";
}

/** The index of the slider's value nearest in ratio. */
export function nearestIndex(name, value) {
  const { values } = FIELDS[name];
  const distance = (other) => Math.abs(Math.log(other / value));
  return values.reduce((best, other, i) => (distance(other) < distance(values[best]) ? i : best), 0);
}

/** The next tidy value above or below. */
export function neighbour(name, value, direction) {
  const { values } = FIELDS[name];
  const beyond = values.filter((other) => (direction > 0 ? other > value : other < value));
  if (beyond.length === 0) return value;
  return direction > 0 ? beyond[0] : beyond[beyond.length - 1];
}

const PREFIX = "#explore?";

/** What an address, a question or a command says of the changes: words by name. */
export function changeWords({ changes, sensitivity }) {
  return CHANGES[changes].words(faithful(sensitivity));
}

/** The part of the page's address that holds a setting. */
export function toAddress(setting) {
  const numbers = ["dimension", "epsilon", "delta"].map((name) => [FIELDS[name].key, faithful(setting[name])]);
  return PREFIX + [...numbers, ...Object.entries(changeWords(setting))].map((part) => part.join("=")).join("&");
}

/** The setting of an address; what is missing or unusable there is taken from the fallback. */
export function fromAddress(address, fallback) {
  if (!address.startsWith(PREFIX)) return null;
  const given = new URLSearchParams(address.slice(PREFIX.length));
  const setting = { ...fallback };
  const { changes = setting.changes, size = null } = changesFrom(given) ?? {};
  const texts = Object.fromEntries(Object.entries(FIELDS).map(([name, { key }]) => [name, given.get(key)]));
  texts.sensitivity = size;
  const usable = (name) => texts[name] !== null && complaint(name, texts[name]) === "";
  if (size === null || usable("sensitivity")) setting.changes = changes;
  for (const name of Object.keys(FIELDS).filter(usable)) setting[name] = Number(texts[name]);
  return setting;
}

/** The command that computes the certified bracket of one mechanism at a setting. */
export function command(mechanism, setting) {
  const { dimension, epsilon, delta } = setting;
  const words = Object.entries(changeWords(setting)).map(([name, word]) => `--${name} ${word}`);
  return (
    `lessnoise check ${mechanism} --shape ${dimension} ${words.join(" ")} ` +
    `--epsilon ${faithful(epsilon)} --delta ${faithful(delta)}`
  );
}
