// The mechanisms at one setting: scale, expected loss, claim, exact delta. Radii and scales follow docs/theory/exact-curves.md.

import { erfcInverse, logGammaRatio } from "./special.js";
import { movedCounts, normsOf } from "./changes.js";
import { leastCountNoise, pureGeometric } from "./geometric.js";
import { gaussianDelta, gaussianSigma, l2Scale, laplaceDelta, radialDelta, radialScale, unitBall } from "./curves.js";

/** Names, labels and sources are those of the library's catalogue. */
const LABELS = {
  "least-noise": "Least noise",
  "analytic-gaussian": "Analytic Gaussian",
  l2: "l2 mechanism",
  laplace: "Laplace",
  "least-count-noise": "Least count noise",
  geometric: "Geometric",
  "zhao-gaussian-1": "Zhao Gaussian",
  "classic-gaussian": "Classic Gaussian",
  r1smg: "R1SMG, exact",
  "r1smg-published": "R1SMG, published",
};
export const SHOWN = Object.keys(LABELS);
export const labelOf = (name) => LABELS[name] ?? name;

/** Independent normal entries of standard deviation sigma: E||n||^2 = M sigma^2. */
function gaussian(name, { dimension, sensitivity }, sigma, more) {
  return {
    name,
    scale: `σ = `,
    scaleValue: sigma * sensitivity,
    loss: dimension * (sigma * sensitivity) ** 2,
    delta: (epsilon) => gaussianDelta(1 / sigma, epsilon),
    ...more,
  };
}

/** sigma = sqrt(2 ln(1.25/delta))/eps, stated for eps < 1 (Dwork & Roth 2014, Theorem A.1). */
function classic(setting) {
  const sigma = Math.sqrt(2 * Math.log(1.25 / setting.delta)) / setting.epsilon;
  const note = setting.epsilon >= 1 ? "stated for ε < 1 only" : "";
  return gaussian("classic-gaussian", setting, sigma, { note });
}

/** sigma = (a + sqrt(a^2 + eps))/(eps sqrt 2) with erfc(a) = 2 delta (Zhao et al. 2019, Mechanism 1). */
function zhao(setting) {
  const a = erfcInverse(2 * setting.delta);
  return gaussian(
    "zhao-gaussian-1",
    setting,
    (a + Math.sqrt(a * a + setting.epsilon)) / (setting.epsilon * Math.SQRT2),
  );
}

/**
 * Scale D1/eps, D1 being the largest l1 norm of a change (sqrt(M) D for any change of length D): pure, so delta = 0.
 * Below that epsilon the curve is that of all changes of this l1 norm; those of a set may be hidden better.
 */
function laplace({ dimension, epsilon, l1 }) {
  const scale = l1 / epsilon;
  return {
    name: "laplace",
    scale: "b = ",
    scaleValue: scale,
    loss: 2 * dimension * scale ** 2,
    claimed: 0,
    delta: (at) => laplaceDelta(epsilon, at),
  };
}

/** Integer noise, where the value is of counts: pure, and the optimum where one count changes by 1. */
function integers(setting) {
  const { dimension, epsilon, delta } = setting;
  const moved = movedCounts(setting);
  if (moved === 0) return [];
  const row = (name, law, more) => ({ name, loss: dimension * law.variance, delta: law.delta, ...more });
  const pure = pureGeometric(epsilon, moved);
  const found = [row("geometric", pure, { scale: "rate = ", scaleValue: pure.rate, claimed: 0 })];
  if (moved === 1) {
    const least = leastCountNoise(epsilon, delta);
    found.push(row("least-count-noise", least, { scale: "at most ", scaleValue: least.reach + 1 }));
  }
  return found;
}

/** Density proportional to exp(-|n|/s): |n| ~ s Gamma(M), so E||n||^2 = M (M+1) s^2. */
function l2(setting, ball) {
  const { scale, slack } = l2Scale({ ball, ...setting });
  const { dimension, sensitivity, epsilon } = setting;
  return {
    name: "l2",
    scale: "s = ",
    scaleValue: scale * sensitivity,
    loss: dimension * (dimension + 1) * (scale * sensitivity) ** 2,
    // 1 - eps' s/D for another eps' = r eps, without cancellation at r = 1.
    delta: (at, tolerance) =>
      radialDelta(
        { ball, k: dimension, p: 1, scale, epsilon: at, slack: 1 - at / epsilon + (at / epsilon) * slack },
        tolerance,
      ),
  };
}

/** One normal variable of variance sigma_* along a random direction: k = 1, p = 2, s = sqrt(2 sigma_*), E||n||^2 = sigma_*. */
function rankOne(name, { sensitivity }, ball, scale, more) {
  const eigenvalue = 0.5 * (scale * sensitivity) ** 2;
  return {
    name,
    scale: "σ∗ = ",
    scaleValue: eigenvalue,
    loss: eigenvalue,
    delta: (epsilon, tolerance) => radialDelta({ ball, k: 1, p: 2, scale, epsilon }, tolerance),
    ...more,
  };
}

/**
 * sigma_* = 2 D^2/(eps psi), psi = (delta Gamma((M-1)/2)/(sqrt(pi) Gamma(M/2)))^(2/(M-2)), for M > 2
 * (Ji & Li 2024, Theorem 5); the paper states it for eps < 1/M.
 */
function publishedRankOne(setting, ball) {
  const { dimension, epsilon, delta } = setting;
  const logPsi =
    (2 / (dimension - 2)) * (Math.log(delta) - logGammaRatio((dimension - 1) / 2, 0.5) - 0.5 * Math.log(Math.PI));
  const scale = Math.sqrt(4 / (epsilon * Math.exp(logPsi)));
  return rankOne("r1smg-published", setting, ball, scale, {
    note: epsilon * dimension >= 1 ? "stated for ε < 1/M only" : "",
  });
}

/**
 * Every mechanism that fits the setting { dimension, epsilon, delta, sensitivity, changes }, with its exact delta there.
 * Isotropic noise hides all changes of one length alike: of a set of changes, only the largest l2 norm counts for it.
 */
export function mechanismsAt(given) {
  const { l1, l2: sensitivity } = normsOf(given);
  const setting = { ...given, sensitivity, l1 };
  const { dimension, epsilon, delta } = setting;
  const ball = unitBall(dimension);
  const found = [
    gaussian("analytic-gaussian", setting, gaussianSigma(epsilon, delta)),
    l2(setting, ball),
    laplace(setting),
    ...integers(setting),
    zhao(setting),
    classic(setting),
    rankOne("r1smg", setting, ball, radialScale({ ball, k: 1, p: 2, epsilon, delta })),
    ...(dimension > 2 ? [publishedRankOne(setting, ball)] : []),
  ];
  const reference = found[0].loss;
  return found.map((mechanism) => {
    const exact = mechanism.delta(epsilon);
    const claimed = mechanism.claimed ?? delta;
    return {
      note: "",
      ...mechanism,
      claimed,
      exact,
      // The closed-form calibration solves exact = claimed; 1e-9 is its rounding.
      holds: exact <= claimed * (1 + 1e-9),
      relative: mechanism.loss / reference,
      spread: Math.sqrt(mechanism.loss / dimension),
    };
  });
}
