// Certified answers from `lessnoise explore`, where the page is served by it.

import { changeWords } from "./controls.js";

const PAUSE = 250; // milliseconds of rest before the library is asked

/** Ask for the newest setting only: earlier questions are dropped, and so are their answers. */
export function watchServer(root, { useMechanisms, useCurve }) {
  const { endpoint } = root.dataset;
  const status = root.querySelector(".lnx-status");
  let timer = 0;
  let running = new AbortController();

  async function question(name, setting, signal) {
    const { dimension: shape, epsilon, delta } = setting;
    const query = new URLSearchParams({ shape, epsilon, delta, ...changeWords(setting) });
    const response = await fetch(`${endpoint}${name}?${query}`, { signal });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  async function fetchAnswers(setting) {
    const { signal } = running;
    try {
      const answer = await question("mechanisms", setting, signal);
      useMechanisms(answer);
      root.dataset.state = "certified";
      status.textContent =
        "Certified by the library: the exact δ lies between the two ends, and both are proved. " +
        `One individual changes: ${answer.changes}.`;
      useCurve(await question("curve", setting, signal));
    } catch (error) {
      if (signal.aborted) return;
      root.dataset.state = "page";
      status.textContent =
        error instanceof TypeError
          ? "The server does not answer, so the numbers are computed in the page."
          : `There is no certified answer: ${error.message}`;
    }
  }

  return {
    ask(setting) {
      if (!endpoint) return;
      clearTimeout(timer);
      running.abort();
      running = new AbortController();
      root.dataset.state = "computing";
      status.textContent = "The certified brackets are being computed. Until then the numbers are those of the page.";
      timer = setTimeout(fetchAnswers, PAUSE, setting);
    },
  };
}

/** The library's rows in the page's form; what the page knows itself (scale, curve, remark) is kept. */
export function certifiedRows(answer, pageRows, labelOf) {
  const own = new Map(pageRows.map((row) => [row.name, row]));
  const reference = answer.mechanisms.find(({ name }) => name === "analytic-gaussian").expected_loss;
  return answer.mechanisms.map((found) => ({
    note: found.remark,
    ...own.get(found.name),
    name: found.name,
    label: own.has(found.name) ? labelOf(found.name) : found.label,
    certified: true,
    claimed: found.claimed_delta,
    exact: found.delta.upper,
    bracket: found.bracket.replace(/e\+?(-?)0*/g, "e$1"), // 1e-07 is 1e-7 here
    holds: found.holds,
    unproved: !found.holds && !found.refuted,
    loss: found.expected_loss ?? Infinity,
    spread: found.standard_deviation ?? Infinity,
    relative: (found.expected_loss ?? Infinity) / reference,
  }));
}
