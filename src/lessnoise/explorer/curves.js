// The exact delta(epsilon) of Gaussian, Laplace and radial noise, and the scales that meet a target.

import { erfc, erfcx, erfcxSlope, logGammaPeak } from "./special.js";
import { gaussTen, lune, unitBall } from "./lune.js";
import { fallingRoot, integrate } from "./quadrature.js";

// The library stops a little below the target, so that its proved upper end keeps it; so does the page.
const BELOW_TARGET = 1 - 3e-5;
const FINE = 1e-8;

/**
 * Gaussian noise, mu = D/sigma (Balle & Wang 2018, Theorem 8): with a, b = (eps/mu -+ mu/2)/sqrt(2),
 * delta = [erfc(a) - e^eps erfc(b)]/2 = e^(-a^2) [erfcx(a) - erfcx(b)]/2.
 */
export function gaussianDelta(mu, epsilon) {
  const centre = (epsilon / mu) * Math.SQRT1_2;
  const half = 0.5 * mu * Math.SQRT1_2;
  const a = centre - half;
  const b = centre + half;
  if (a < -2) return 0.5 * erfc(a) - 0.5 * Math.exp(-a * a) * erfcx(b);
  const drop = half > 0.15 ? erfcx(a) - erfcx(b) : gaussTen(erfcxSlope, centre, half);
  return 0.5 * Math.exp(-a * a) * drop;
}

/** The smallest sigma of Gaussian noise for sensitivity 1. */
export function gaussianSigma(epsilon, delta) {
  const goal = Math.log(delta);
  const excess = (x) => Math.log(gaussianDelta(Math.exp(-x), epsilon)) - goal;
  const start = Math.log((Math.sqrt(-2 * Math.log(delta)) + Math.sqrt(2 * epsilon)) / (2 * epsilon));
  return Math.exp(fallingRoot(excess, start, 1e-13));
}

/** Laplace noise of scale b against an l1 shift D: delta = 1 - e^((eps - D/b)/2), 0 from eps = D/b on. */
export function laplaceDelta(ratio, epsilon) {
  return epsilon >= ratio ? 0 : -Math.expm1(0.5 * (epsilon - ratio));
}

/**
 * Radial noise: radius of density proportional to r^(k-1) exp(-(r/s)^p), 0 < k <= M. The curve is an average of lunes,
 * delta = E_u[ fraction of B(0, u) outside B(-v, Y(u)) ], with u = s G^(1/p), G ~ Gamma(k/p) with probability
 * (M-k)/M and Gamma(k/p + 1) otherwise, and ln(Y/u) = y from (M-k) y + G (e^(py) - 1) = eps.
 * scale is in units of the sensitivity. slack = 1 - eps s/D serves the l2 mechanism (k = M, p = 1): its balls are
 * tangent at slack 0, where it is pure.
 */
export function radialDelta({ ball, k, p, scale, epsilon, slack = 1 - epsilon * scale }, tolerance = FINE) {
  const dimension = ball.dimension;
  const pole = dimension - k;
  const isL2 = pole === 0 && p === 1;
  if (isL2 && slack <= 0) return 0;
  if (isL2 && dimension === 1) return -Math.expm1((-0.5 * slack) / scale);
  if (pole === 0 && p === 2) return gaussianDelta(Math.SQRT2 / scale, epsilon);
  const shape = k / p;
  const logShape = Math.log(shape);
  const logKappaOrigin = -Math.log(scale) - logShape / p;
  const peak = logGammaPeak(shape) - Math.log(dimension);

  // The density of xi = ln(G p/k) under the mixture.
  const logWeight = (xi) => {
    const factor = pole === 0 ? Math.log(p) + logShape + xi : Math.log(pole + p * Math.exp(logShape + xi));
    return peak - shape * (Math.expm1(xi) - xi) + factor;
  };
  const fraction = (xi) => {
    const gamma = Math.exp(logShape + xi);
    const y = partnerRadius(gamma, pole, p, epsilon);
    const growth = Math.expm1(y);
    const kappa = Math.exp(logKappaOrigin - xi / p);
    return lune(ball, kappa, y, growth, isL2 ? kappa * slack : kappa - growth);
  };
  const grid = supportGrid(logWeight, fraction, shape);
  if (grid.cells.length === 0) return 0;
  const integrand = (xi) => {
    const part = fraction(xi);
    return part > 0 ? part * Math.exp(logWeight(xi) - grid.level) : 0;
  };
  return Math.min(integrate(integrand, grid.cells, tolerance) * Math.exp(grid.level), 1);
}

/** y = ln(Y/u): the root of (M-k) y + G (e^(py) - 1) = eps; Newton's method falls to it from above. */
function partnerRadius(gamma, pole, p, epsilon) {
  const ceiling = Math.log1p(epsilon / gamma) / p;
  if (pole === 0) return ceiling;
  let y = Math.min(ceiling, epsilon / (pole + p * gamma));
  for (let i = 0; i < 80; i += 1) {
    const grown = gamma * Math.expm1(p * y);
    const step = (pole * y + grown - epsilon) / (pole + p * (gamma + grown));
    y -= step;
    if (Math.abs(step) <= 1e-15 * y) break;
  }
  return y;
}

/** Where the integrand matters: cells of a grid that is denser to the right, and the logarithm of its maximum. */
function supportGrid(logWeight, fraction, shape) {
  const dropped = (xi) => shape * (Math.expm1(xi) - xi) > 120;
  const unit = 1 / Math.sqrt(shape);
  let high = unit;
  while (!dropped(high)) high *= 1.2;
  let low = -unit;
  while (!dropped(low)) low *= 1.2;
  const count = 64;
  const points = [];
  const heights = [];
  for (let i = count; i >= 0; i -= 1) {
    const xi = high - (high - low) * (i / count) ** 2;
    points.push(xi);
    const part = fraction(xi);
    heights.push(part > 0 ? logWeight(xi) + Math.log(part) : -Infinity);
  }
  const level = Math.max(...heights);
  if (level === -Infinity) return { cells: [], level };
  const kept = heights.map((height) => height > level - 34);
  const first = Math.max(kept.indexOf(true) - 1, 0);
  const last = Math.min(kept.lastIndexOf(true) + 1, count);
  const cells = [];
  for (let i = first; i < last; i += 3) cells.push(points[i]);
  cells.push(points[last]);
  return { cells, level };
}

/** The smallest scale, in units of the sensitivity, at which the radial member (k, p) meets the target. */
export function radialScale({ ball, k, p, epsilon, delta }) {
  const goal = Math.log(delta * BELOW_TARGET);
  const excess = (x) => Math.log(radialDelta({ ball, k, p, scale: Math.exp(x), epsilon }, 1e-7)) - goal;
  // The pole of a member with small k holds the mass of a ball of radius about sqrt(M), that is delta.
  return Math.exp(fallingRoot(excess, 0.5 * Math.log(ball.dimension) - Math.log(delta) / k, 1e-8));
}

/**
 * The l2 mechanism's scale and its slack 1 - eps s/D. The search runs over ln((1 - slack)/slack), which is smooth both
 * near the pure scale D/eps (slack near 0) and far below it (slack near 1).
 */
export function l2Scale({ ball, epsilon, delta }) {
  const goal = Math.log(delta * BELOW_TARGET);
  const at = (x) => ({ scale: 1 / (1 + Math.exp(-x)) / epsilon, slack: 1 / (1 + Math.exp(x)) });
  const excess = (x) => Math.log(radialDelta({ ball, k: ball.dimension, p: 1, epsilon, ...at(x) }, 1e-7)) - goal;
  const guess = (gaussianSigma(epsilon, delta) * epsilon) / Math.sqrt(ball.dimension);
  return at(fallingRoot(excess, guess < 0.9 ? Math.log(guess / (1 - guess)) : 5, 1e-8));
}

export { unitBall };
