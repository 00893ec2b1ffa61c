// Adaptive integration (Gauss-Kronrod, 7 and 15 points) and roots of falling functions.

const KRONROD_NODES = [
  0.9914553711208126, 0.9491079123427585, 0.8648644233597691, 0.7415311855993945, 0.5860872354676911,
  0.4058451513773972, 0.2077849550078985,
];
const KRONROD_WEIGHTS = [
  0.02293532201052922, 0.06309209262997855, 0.1047900103222502, 0.1406532597155259, 0.1690047266392679,
  0.1903505780647854, 0.2044329400752989,
];
const KRONROD_CENTRE = 0.2094821410847278;
const GAUSS_SEVEN = [0.1294849661688697, 0.2797053914892767, 0.3818300505051189];
const GAUSS_SEVEN_CENTRE = 0.4179591836734694;

/** One panel: the 15-point value, and its distance from the 7-point value as a cautious error. */
function panel(integrand, start, end) {
  const centre = 0.5 * (start + end);
  const half = 0.5 * (end - start);
  const middle = integrand(centre);
  let fine = KRONROD_CENTRE * middle;
  let coarse = GAUSS_SEVEN_CENTRE * middle;
  for (let i = 0; i < 7; i += 1) {
    const offset = half * KRONROD_NODES[i];
    const pair = integrand(centre - offset) + integrand(centre + offset);
    fine += KRONROD_WEIGHTS[i] * pair;
    if (i % 2 === 1) coarse += GAUSS_SEVEN[(i - 1) / 2] * pair;
  }
  return { start, end, value: half * fine, error: half * Math.abs(fine - coarse) };
}

/** Integral over the cells of a grid; cells are halved until the total error is within the relative tolerance. */
export function integrate(integrand, grid, tolerance) {
  let panels = [];
  for (let i = 0; i + 1 < grid.length; i += 1) panels.push(panel(integrand, grid[i], grid[i + 1]));
  for (let round = 0; round < 40; round += 1) {
    let total = 0;
    let error = 0;
    for (const { value, error: own } of panels) {
      total += value;
      error += own;
    }
    if (error <= tolerance * total || panels.length > 2000) return total;
    const allowance = (0.5 * tolerance * total) / panels.length;
    const next = [];
    for (const cell of panels) {
      const middle = 0.5 * (cell.start + cell.end);
      if (cell.error <= allowance) next.push(cell);
      else next.push(panel(integrand, cell.start, middle), panel(integrand, middle, cell.end));
    }
    panels = next;
  }
  return panels.reduce((sum, { value }) => sum + value, 0);
}

/** The x at which a falling function crosses 0, by false position (Illinois) in a bracket grown around a start. */
export function fallingRoot(excess, start, tolerance) {
  let low = start;
  let high = start;
  let atLow = excess(start);
  let atHigh = atLow;
  for (let step = 0.5; atLow <= 0 && step < 1e4; step *= 1.6) {
    [high, atHigh] = [low, atLow];
    low -= step;
    atLow = excess(low);
  }
  for (let step = 0.5; atHigh > 0 && step < 1e4; step *= 1.6) {
    [low, atLow] = [high, atHigh];
    high += step;
    atHigh = excess(high);
  }
  let [weightLow, weightHigh] = [atLow, atHigh];
  for (let i = 0; i < 200 && high - low > tolerance; i += 1) {
    const finite = Number.isFinite(weightLow) && Number.isFinite(weightHigh);
    const share = finite ? weightLow / (weightLow - weightHigh) : 0.5;
    const middle = low + (high - low) * Math.min(Math.max(share, 1e-9), 1 - 1e-9);
    const value = excess(middle);
    if (Math.abs(value) < 0.01 * tolerance) return middle;
    if (value > 0) {
      [low, weightLow] = [middle, value];
      weightHigh *= 0.5;
    } else {
      [high, weightHigh] = [middle, value];
      weightLow *= 0.5;
    }
  }
  return high;
}
