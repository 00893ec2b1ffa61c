// Special functions in double precision: gamma-function ratios at any size, the scaled complementary error function.

const STIRLING_FROM = 30;
const TWO_OVER_SQRT_PI = 2 / Math.sqrt(Math.PI);

/** ln Gamma(a) - [(a - 1/2) ln a - a + ln(2 pi)/2] for a >= 30 (DLMF 5.11.1). */
function stirlingRemainder(a) {
  const i = 1 / (a * a);
  return (1 / 12 - i * (1 / 360 - i * (1 / 1260 - i * (1 / 1680 - i / 1188)))) / a;
}

/** ln Gamma(a), a > 0: Gamma(a) = Gamma(a + n) / (a (a+1) ... (a+n-1)), then Stirling's series. */
export function logGamma(a) {
  let factor = 1;
  let x = a;
  for (; x < STIRLING_FROM; x += 1) factor *= x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + stirlingRemainder(x) - Math.log(factor);
}

/** ln Gamma(a + shift) - ln Gamma(a), without the cancellation of two huge log-gammas. */
export function logGammaRatio(a, shift) {
  if (Math.min(a, a + shift) < STIRLING_FROM) return logGamma(a + shift) - logGamma(a);
  return (
    (a + shift - 0.5) * Math.log1p(shift / a) +
    shift * (Math.log(a) - 1) +
    stirlingRemainder(a + shift) -
    stirlingRemainder(a)
  );
}

/** a ln a - a - ln Gamma(a): the log-density of ln G at its mode, for G ~ Gamma(a). */
export function logGammaPeak(a) {
  if (a < STIRLING_FROM) return a * Math.log(a) - a - logGamma(a);
  return 0.5 * Math.log(a / (2 * Math.PI)) - stirlingRemainder(a);
}

/** The tail of the continued fraction sqrt(pi) erfcx(x) = 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + ...)))) (DLMF 7.9.1). */
function erfcxTail(x, last) {
  let tail = x;
  for (let n = 60; n > last; n -= 1) tail = x + (0.5 * n) / tail;
  return tail;
}

/** e^(x^2) erfc(x). Below 2: e^(x^2) minus a series of positive terms (DLMF 7.6.2). */
export function erfcx(x) {
  if (x >= 2) return (0.5 * TWO_OVER_SQRT_PI) / erfcxTail(x, 0);
  if (x < -2) return 2 * Math.exp(x * x) - erfcx(-x);
  let term = x;
  let sum = x;
  for (let n = 1; n < 60; n += 1) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return Math.exp(x * x) - TWO_OVER_SQRT_PI * sum;
}

/** -erfcx'(x) = 2/sqrt(pi) - 2 x erfcx(x), without its cancellation for large x. */
export function erfcxSlope(x) {
  if (x < 2) return TWO_OVER_SQRT_PI - 2 * x * erfcx(x);
  const inner = 0.5 / erfcxTail(x, 1);
  return (TWO_OVER_SQRT_PI * inner) / (x + inner);
}

/** erfc(x), for any x. */
export function erfc(x) {
  return x < 0 ? 2 - Math.exp(-x * x) * erfcx(-x) : Math.exp(-x * x) * erfcx(x);
}

/** The x with erfc(x) = value, 0 < value < 1: Newton's method on ln erfc, which is concave. */
export function erfcInverse(value) {
  const goal = Math.log(value);
  let x = 0;
  for (let i = 0; i < 60; i += 1) {
    const scaled = erfcx(x);
    const step = ((Math.log(scaled) - x * x - goal) * scaled) / TWO_OVER_SQRT_PI;
    x += step;
    if (Math.abs(step) <= 1e-15 * (1 + x)) break;
  }
  return x;
}
