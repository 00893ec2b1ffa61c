// The part of a unit ball outside another ball: the geometry behind the curve of every radial mechanism.
//
// Unit ball at the origin of R^M, a second ball of radius e^y at distance kappa. The spheres meet at the axial distance
// d = ((e^(2y) - 1)/kappa - kappa)/2 from the first centre, and at t = (d + kappa)/e^y in units of the second radius.
// With C(x) the fraction of the unit ball beyond the plane at x,
//
//     lune = C(d) - e^(My) C(t) = [C(d) - C(t)] - (1 - e^(-My)) e^(My) C(t).

import { logGammaRatio } from "./special.js";

// Gauss-Legendre rule of ten points on [-1, 1]: the positive nodes, and the weights.
const GAUSS_NODES = [
  0.1488743389816312, 0.4333953941292472, 0.6794095682990244, 0.8650633666889845, 0.9739065285171717,
];
const GAUSS_WEIGHTS = [
  0.2955242247147529, 0.2692667193099963, 0.219086362515982, 0.1494513491505806, 0.0666713443086881,
];

/** Integral of a smooth function over [centre - half, centre + half], ten points. */
export function gaussTen(integrand, centre, half) {
  let total = 0;
  for (let i = 0; i < 5; i += 1) {
    const offset = half * GAUSS_NODES[i];
    total += GAUSS_WEIGHTS[i] * (integrand(centre - offset) + integrand(centre + offset));
  }
  return half * total;
}

/** What depends on the dimension alone. The constant is vol(ball of R^(M-1)) / vol(ball of R^M). */
export function unitBall(dimension) {
  const logConstant = logGammaRatio((dimension + 1) / 2, 0.5) - 0.5 * Math.log(Math.PI);
  return { dimension, a: 0.5 * (dimension + 1), logConstant, constant: Math.exp(logConstant) };
}

/** Continued fraction of the incomplete beta function I_z(a, 1/2) (DLMF 8.17.22), by Lentz's method. */
function betaFraction(a, z) {
  let c = 1;
  let d = 1 / (1 - ((a + 0.5) * z) / (a + 1));
  let value = d;
  for (let m = 1; m < 5000; m += 1) {
    const even = (m * (0.5 - m) * z) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / (1 + even * d);
    c = 1 + even / c;
    value *= c * d;
    const odd = (-(a + m) * (a + 0.5 + m) * z) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / (1 + odd * d);
    c = 1 + odd / c;
    const factor = c * d;
    value *= factor;
    if (Math.abs(factor - 1) < 1e-15) break;
  }
  return value;
}

/** Near the centre C(x) is computed from 1/2 downwards, elsewhere from its own continued fraction. */
function isCentral(ball, x) {
  return x * x < 0.5 && ball.a * x * x < 3;
}

/** 1/2 - C(x) = constant x (1 - x^2)^a sum over n of (a + 1/2)_n/(3/2)_n x^(2n) (DLMF 8.17.8, 15.8.1). */
function centralPart(ball, x) {
  const square = x * x;
  let term = 1;
  let sum = 1;
  for (let n = 0; n < 300 && term > 1e-17 * sum; n += 1) {
    term *= ((ball.a + 0.5 + n) / (1.5 + n)) * square;
    sum += term;
  }
  return ball.constant * x * Math.exp(ball.a * Math.log1p(-square)) * sum;
}

/** ln(1 - x^2), given the product (1 - x)(1 + x) for x near 1. */
function logComplement(x, complement) {
  return x * x < 0.25 ? Math.log1p(-x * x) : Math.log(complement);
}

/** C(x) for x >= 0; complement = 1 - x^2. */
function cap(ball, x, complement) {
  if (isCentral(ball, x)) return 0.5 - centralPart(ball, x);
  if (complement <= 0) return 0;
  const power = Math.exp(ball.a * logComplement(x, complement) + ball.logConstant);
  return (power * x * betaFraction(ball.a, complement)) / (2 * ball.a);
}

/** e^(My) C(t). Since 1 - t^2 = b^2 e^(-2y), b^2 = 1 - d^2, the powers join into e^(-y) b^(M+1). */
function secondCap(ball, y, d, baseSquared, t, complement) {
  if (isCentral(ball, t)) return Math.exp(ball.dimension * y) * (0.5 - centralPart(ball, t));
  if (baseSquared <= 0) return 0;
  const power = Math.exp(ball.a * logComplement(d, baseSquared) - y + ball.logConstant);
  return (power * t * betaFraction(ball.a, complement)) / (2 * ball.a);
}

/** The lune's fraction of the unit ball; growth = e^y - 1, gap = kappa - growth, which callers know without cancellation. */
export function lune(ball, kappa, y, growth, gap) {
  if (gap <= 0) return 0;
  if (kappa >= 2 + growth) return 1;
  const radius = 1 + growth;
  const oneMinusD = (gap * (2 + kappa + growth)) / (2 * kappa);
  const onePlusD = ((growth + kappa) * (2 + growth - kappa)) / (2 * kappa);
  const oneMinusT = (gap * (2 + growth - kappa)) / (2 * kappa * radius);
  const onePlusT = ((growth + kappa) * (2 + growth + kappa)) / (2 * kappa * radius);
  const width = (gap * (kappa + growth) * (2 + growth)) / (2 * kappa * radius);
  const d = (((2 + growth) * growth) / kappa - kappa) / 2;
  const t = (d + kappa) / radius;
  const halfPower = ball.a - 1;
  const second = secondCap(ball, y, d, oneMinusD * onePlusD, t, oneMinusT * onePlusT);
  const excess = -Math.expm1(-ball.dimension * y) * second;

  const nearestPole = Math.min(oneMinusD, onePlusD, oneMinusT);
  const steepest = (2 * halfPower * Math.max(Math.abs(d), t)) / Math.max(nearestPole, 1e-300);
  let band;
  if (width * steepest <= 2 && width * Math.sqrt(halfPower) <= 1 && width <= 0.5 * nearestPole) {
    // A narrow band is integrated: the difference of two caps would cancel.
    const density = (x) => Math.exp(halfPower * (x * x < 0.25 ? Math.log1p(-x * x) : Math.log((1 - x) * (1 + x))));
    band = ball.constant * gaussTen(density, d + 0.5 * width, 0.5 * width);
  } else {
    const first = cap(ball, Math.abs(d), oneMinusD * onePlusD);
    band = (d < 0 ? 1 - first : first) - cap(ball, t, oneMinusT * onePlusT);
  }
  return Math.min(Math.max(band - excess, 0), 1);
}
