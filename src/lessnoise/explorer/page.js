// The page: from controls to numbers, pictures and, where a server is there, certified answers.

import { CHANGES, FOR_COUNTS, movedCounts } from "./changes.js";
import {
  FIELDS,
  FIRST_SETTING,
  command,
  complaint,
  fromAddress,
  nearestIndex,
  neighbour,
  toAddress,
} from "./controls.js";
import { SHOWN, labelOf, mechanismsAt } from "./mechanisms.js";
import { curvePoints, drawPlot, windowOf } from "./plot.js";
import { certifiedRows, watchServer } from "./server.js";
import { fillBars, fillCurveTable, fillTable } from "./tables.js";
import { faithful, summary } from "./words.js";

const DRAWN_LAST = ["l2", "r1smg-published", "least-noise"]; // broken lines, over the solid ones

/** Bring one explorer to life. */
export function start(root) {
  const find = (selector) => root.querySelector(selector);
  const hidden = new Set();
  let setting = fromAddress(location.hash, FIRST_SETTING) ?? { ...FIRST_SETTING };
  let rows = [];
  let curves = [];
  let frame = 0;
  let curveTimer = 0;
  let wordsTimer = 0;

  // Controls.

  function showControls(except) {
    for (const name of Object.keys(FIELDS)) {
      const [slider, box] = [find(`[data-slider=${name}]`), find(`[data-box=${name}]`)];
      const value = faithful(setting[name]);
      if (slider !== except) slider.value = nearestIndex(name, setting[name]);
      slider.setAttribute("aria-valuetext", value);
      if (box !== except) box.value = name === "dimension" ? String(setting.dimension) : value;
      box.removeAttribute("aria-invalid");
    }
    find(".lnx-complaint").textContent = "";
    showChanges();
  }

  /** The choice of a set, the words of the box for its size, and what is for counts alone. */
  function showChanges() {
    const { field } = CHANGES[setting.changes];
    find("[data-changes]").value = setting.changes;
    const holder = find("[data-box=sensitivity]").parentElement;
    holder.hidden = !field;
    if (field) holder.querySelector("label").replaceChildren(field[0], small(field[1]));
    if (field) find("[data-slider=sensitivity]").setAttribute("aria-label", field[0]);
    const choice = find(".lnx-choice");
    const moved = movedCounts(setting);
    const fitting = FOR_COUNTS.filter((name) => (name === "geometric" ? moved > 0 : moved === 1));
    const possible = (name) => fitting.includes(name) || !FOR_COUNTS.includes(name);
    for (const button of root.querySelectorAll(".lnx-legend button")) button.hidden = !possible(button.dataset.m);
    for (const option of choice.options) option.hidden = option.disabled = !possible(option.value);
    if (choice.selectedOptions[0]?.disabled) choice.value = "analytic-gaussian";
  }

  function small(text) {
    const made = document.createElement("small");
    made.textContent = text;
    return made;
  }

  function change(values, except) {
    setting = { ...setting, ...values };
    showControls(except);
    try {
      history.replaceState(null, "", toAddress(setting));
    } catch {
      // A page inside a frame may not change its address; the explorer works all the same.
    }
    schedule();
  }

  function wireField(name) {
    const [slider, box] = [find(`[data-slider=${name}]`), find(`[data-box=${name}]`)];
    slider.max = FIELDS[name].values.length - 1;
    slider.addEventListener("input", () => change({ [name]: FIELDS[name].values[slider.value] }, slider));
    box.addEventListener("input", () => {
      const reason = complaint(name, box.value);
      if (reason === "") return change({ [name]: Number(box.value) }, box);
      box.setAttribute("aria-invalid", "true");
      find(".lnx-complaint").textContent = reason;
    });
    box.addEventListener("change", () => showControls());
    box.addEventListener("keydown", (event) => {
      const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!direction) return;
      event.preventDefault();
      change({ [name]: neighbour(name, setting[name], direction) });
    });
  }

  // Numbers first, curves right after, the spoken summary when the hand rests.

  function schedule() {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      rows = mechanismsAt(setting);
      root.dataset.state = "page";
      showRows();
      server.ask(setting);
    });
  }

  function showRows() {
    const shown = [...rows].sort((a, b) => SHOWN.indexOf(a.name) - SHOWN.indexOf(b.name));
    fillTable(find(".lnx-table tbody"), rows, labelOf);
    fillBars(
      find(".lnx-bars"),
      shown.filter(({ name }) => SHOWN.includes(name)),
      labelOf,
    );
    find(".lnx-summary").textContent = summary(setting, rows, labelOf);
    showCommand();
    clearTimeout(curveTimer);
    curveTimer = setTimeout(showCurves, 0);
    clearTimeout(wordsTimer);
    wordsTimer = setTimeout(() => {
      find(".lnx-spoken").textContent = find(".lnx-summary").textContent;
      if (find(".lnx-numbers").open) showCurveTable();
    }, 500);
  }

  function showCurves() {
    const view = windowOf(setting);
    curves = rows
      .filter((row) => row.delta || row.points)
      .sort((a, b) => DRAWN_LAST.indexOf(a.name) - DRAWN_LAST.indexOf(b.name))
      .map((row) => ({ ...row, points: row.points ?? curvePoints(row, view, setting.epsilon) }));
    redraw();
    root.dataset.drawn = toAddress(setting);
  }

  function redraw() {
    const title = `Curves of δ against ε around ε = ${faithful(setting.epsilon)}; the tables below hold the numbers.`;
    drawPlot(
      find(".lnx-plot"),
      setting,
      curves.filter(({ name }) => !hidden.has(name)),
      title,
    );
  }

  function showCurveTable() {
    fillCurveTable(find(".lnx-curve-table"), rows, setting, labelOf);
  }

  function showCommand() {
    find(".lnx-command").textContent = command(find(".lnx-choice").value, setting);
  }

  // Everything else that can be pressed.

  function wireButtons() {
    const select = find("[data-changes]");
    select.addEventListener("change", () => change({ changes: select.value }, select));
    for (const button of root.querySelectorAll("[data-preset]")) {
      button.addEventListener("click", () => change(fromAddress(`#explore?${button.dataset.preset}`, FIRST_SETTING)));
    }
    for (const button of root.querySelectorAll(".lnx-legend button")) {
      button.addEventListener("click", () => {
        const name = button.dataset.m;
        if (!hidden.delete(name)) hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        redraw();
      });
    }
    find(".lnx-choice").addEventListener("change", showCommand);
    find(".lnx-numbers").addEventListener("toggle", showCurveTable);
    find(".lnx-copy").addEventListener("click", async () => {
      await copy(find(".lnx-command"));
      find(".lnx-copied").textContent = "copied";
      setTimeout(() => (find(".lnx-copied").textContent = ""), 2000);
    });
  }

  const server = watchServer(root, {
    useMechanisms(answer) {
      rows = certifiedRows(answer, rows, labelOf);
      showRows();
    },
    useCurve({ name, points }) {
      rows = rows.map((row) => (row.name === name ? { ...row, points } : row));
      showCurves();
    },
  });
  for (const name of Object.keys(FIELDS)) wireField(name);
  wireButtons();
  addEventListener("hashchange", () => {
    const given = fromAddress(location.hash, setting);
    if (given) change(given);
  });
  new ResizeObserver(() => curves.length && redraw()).observe(find(".lnx-plot").parentElement);
  showControls();
  schedule();
  // A shared link leads to the explorer, wherever in a longer page it is.
  if (fromAddress(location.hash, setting) && root.offsetTop > innerHeight) root.scrollIntoView();
}

/** To the clipboard; where the browser refuses, the text is selected for the reader to copy. */
async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
  } catch {
    getSelection().selectAllChildren(element);
    document.execCommand("copy");
  }
}
