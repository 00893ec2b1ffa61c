// Integer noise for counts of which one row changes one by 1, or two: the formulas of mechanism/families/geometric.py.

const MOST_TERMS = 20000; // of a sum that is added up term by term

/** Geometric noise of pure epsilon where so many counts change by 1 each: P falls by e^a a step, a = epsilon/moved. */
export function pureGeometric(epsilon, moved) {
  const rate = epsilon / moved;
  const positive = 1 / (1 + Math.exp(-rate)); // the probability that one entry loses a, and not -a
  return {
    rate,
    variance: 0.5 / Math.sinh(0.5 * rate) ** 2,
    // All entries lose a; if one of two gains it the loss is 0, which only counts below epsilon = 0.
    delta: (at) => (at >= epsilon ? 0 : positive ** moved * -Math.expm1(at - epsilon)),
  };
}

/** The integer optimum where one count changes by 1: it falls by e^a a step up to K, and ends at K + 1 with x. */
export function leastCountNoise(epsilon, delta) {
  const ratio = Math.exp(-epsilon);
  const short = -Math.expm1(-epsilon); // 1 - r
  const threshold = (delta * (1 + ratio)) / (short + 2 * delta * ratio);
  const reach = Math.max(Math.floor(-Math.log(threshold) / epsilon), 0);
  const end = Math.exp(-epsilon * reach); // r^K
  const total = 1 + (2 * -Math.expm1(-epsilon * reach) * ratio) / short;
  const last = Math.max((end - delta * total) / (Math.expm1(epsilon) * total + 2 * end), 0); // x
  const centre = (1 - 2 * last) / total; // P(0)
  return {
    reach,
    variance: 2 * (centre * squares(ratio, short, end, reach) + last * (reach + 1) ** 2),
    delta: (at) => {
      const step = Math.max(delta + last * (Math.expm1(epsilon) - Math.exp(at)), 0);
      const inner = at < epsilon ? ((centre * (1 - end)) / short) * -Math.expm1(at - epsilon) : 0;
      return last + step + inner;
    },
  };
}

/** The sum of k^2 r^k for k = 1..K; q = 1 - r. In closed form r ((1 + r)(1 - r^K) - r^K ((K q)^2 + 2 K q))/q^3. */
function squares(ratio, short, end, reach) {
  if (reach > MOST_TERMS) {
    const y = reach * short;
    return (ratio * ((1 + ratio) * (1 - end) - end * (y * y + 2 * y))) / short ** 3;
  }
  let sum = 0;
  for (let k = 1; k <= reach; k += 1) sum += k * k * ratio ** k;
  return sum;
}
