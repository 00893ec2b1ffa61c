// What one individual can change: sets by the words of lessnoise.changes.parse, with their largest l2 and l1 norms.

/** A change of every entry by D at once. */
const everyEntry = (dimension, size) => ({ l2: size * Math.sqrt(dimension), l1: size * dimension });

/**
 * norms(M, D): the largest of a change. words(D): its part of addresses and questions. moved: how many counts a row
 * changes by 1. field: label and remark of the box for D; none where a row changes counts by 1.
 */
export const CHANGES = {
  ball: {
    norms: (dimension, size) => ({ l2: size, l1: size * Math.sqrt(dimension) }),
    words: (size) => ({ sensitivity: size }),
    field: ["Sensitivity", "any change up to this length: the l2 ball"],
    short: "any change up to a length",
  },
  counts: {
    norms: () => ({ l2: 1, l1: 1 }),
    words: () => ({ changes: "counts" }),
    moved: () => 1,
    short: "one count changes by 1",
  },
  moved: {
    // A single count has no other to move a row to: it changes by 1.
    norms: (dimension) => (dimension === 1 ? { l2: 1, l1: 1 } : { l2: Math.SQRT2, l1: 2 }),
    words: () => ({ changes: "counts", neighbours: "replace" }),
    moved: (dimension) => Math.min(dimension, 2),
    short: "one row of a table of counts is replaced",
  },
  entries: {
    norms: everyEntry,
    words: (size) => ({ changes: `ball:${size},norm=inf` }),
    field: ["Bound", "largest change of any one entry"],
    short: "every entry changes up to a bound",
  },
  corner: {
    norms: everyEntry,
    words: (size) => ({ changes: `corner:${size}` }),
    field: ["Bound", "largest amount added to any one entry"],
    short: "every entry grows by 0 to a bound, or falls",
  },
};

/** Mechanisms for counts alone. */
export const FOR_COUNTS = ["least-count-noise", "geometric"];

/** The largest norms of a change at a setting. */
export function normsOf({ changes, dimension, sensitivity }) {
  return CHANGES[changes ?? "ball"].norms(dimension, sensitivity);
}

/** How many counts one individual changes by 1 at a setting; 0 if the value is not of counts. */
export function movedCounts({ changes, dimension }) {
  return CHANGES[changes ?? "ball"].moved?.(dimension) ?? 0;
}

/** The set and the size that an address names: { changes, size }, size as text; null if it names none that is known. */
export function changesFrom(given) {
  const text = given.get("changes");
  if (text === null) return given.has("sensitivity") ? { changes: "ball", size: given.get("sensitivity") } : null;
  const relation = given.get("neighbours") ?? "add/remove";
  if (text === "counts" && relation === "add/remove") return { changes: "counts", size: null };
  if (text === "counts" && relation === "replace") return { changes: "moved", size: null };
  const [, entries] = /^ball:([^,]+),norm=inf$/.exec(text) ?? [];
  if (entries !== undefined) return { changes: "entries", size: entries };
  const [, corner] = /^corner:([^,]+)$/.exec(text) ?? [];
  return corner === undefined ? null : { changes: "corner", size: corner };
}
