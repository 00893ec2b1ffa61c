// Certified answers from `lessnoise explore`, where the page is served by it.

const PAUSE = 250; // milliseconds of rest before the library is asked

/** Ask for the newest setting only: earlier questions are dropped, and so are their answers. */
export function watchServer(root, use) {
  const { endpoint } = root.dataset;
  const status = root.querySelector(".lnx-status");
  let timer = 0;
  let running = null;

  async function fetchAnswer(setting) {
    running = new AbortController();
    const { signal } = running;
    const query = new URLSearchParams({
      shape: setting.dimension,
      epsilon: setting.epsilon,
      delta: setting.delta,
      sensitivity: setting.sensitivity,
    });
    try {
      const response = await fetch(`${endpoint}?${query}`, { signal });
      const answer = await response.json();
      if (signal.aborted) return;
      if (!response.ok) throw new Error(answer.error);
      use(answer);
      root.dataset.state = "certified";
      status.textContent = "Brackets certified by the library; both ends are proved.";
    } catch (error) {
      if (signal.aborted) return;
      root.dataset.state = "page";
      status.textContent =
        error instanceof TypeError
          ? "The server has ended; the numbers are computed in the page."
          : `No certified answer: ${error.message}`;
    }
  }

  return {
    ask(setting) {
      if (!endpoint) return;
      clearTimeout(timer);
      running?.abort();
      root.dataset.state = "computing";
      status.textContent = "Computing the certified brackets; meanwhile the numbers are those of the page.";
      timer = setTimeout(fetchAnswer, PAUSE, setting);
    },
  };
}

/** The library's rows in the page's form. Curves that the page can compute itself are kept. */
export function certifiedRows(answer, pageRows, labelOf) {
  const own = new Map(pageRows.map((row) => [row.name, row]));
  const reference = answer.mechanisms.find(({ name }) => name === "analytic-gaussian").expected_loss;
  return answer.mechanisms.map((found) => ({
    ...own.get(found.name),
    name: found.name,
    label: own.has(found.name) ? labelOf(found.name) : found.label,
    certified: true,
    note: found.notes.join(" "),
    claimed: found.claimed_delta,
    exact: found.delta.upper,
    bracket: found.bracket,
    holds: found.holds,
    unproved: !found.holds && !found.refuted,
    loss: found.expected_loss,
    spread: found.standard_deviation,
    relative: found.expected_loss / reference,
    ...(found.curve ? { points: found.curve } : {}),
  }));
}
