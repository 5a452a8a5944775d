// p(r) is the probability that two documents of resemblance r fold at a threshold. A reply's curve has the probability that one
// position of two sketches agrees (matching) and the standard error of an agreement (errors), at r = 0, 0.01 … 1.

const at = (list, r) => {
  const x = Math.min(Math.max(r, 0), 1) * (list.length - 1)
  const i = Math.min(Math.floor(x), list.length - 2)
  return list[i] + (list[i + 1] - list[i]) * (x - i)
}

// slope is how fast the probability that a position agrees rises with r.
const slope = (list, r) => {
  const steps = list.length - 1
  const i = Math.min(Math.floor(Math.min(Math.max(r, 0), 1) * steps), steps - 1)
  return (list[i + 1] - list[i]) * steps
}

// atLeast is the probability that at least a number of independent positions agree, each with probability q. It adds the terms of
// the binomial distribution, from the side where they decrease.
export function atLeast (q, matches, positions) {
  q = Math.min(Math.max(q, 0), 1)
  if (matches <= 0) return 1
  if (matches > positions) return 0
  if (matches > q * positions) return tail(q, matches, positions)
  return 1 - tail(1 - q, positions - matches + 1, positions)
}

function tail (q, matches, positions) {
  if (q <= 0) return 0
  if (q >= 1) return 1
  let log = matches * Math.log(q) + (positions - matches) * Math.log1p(-q)
  for (let i = 1; i <= positions - matches; i++) log += Math.log1p(matches / i)
  let term = Math.exp(log)
  let sum = term
  for (let k = matches; k < positions && sum + term !== sum; k++) {
    term *= (((positions - k) / (k + 1)) * q) / (1 - q)
    sum += term
  }
  return Math.min(sum, 1)
}

// matches is how many positions must agree at a threshold; 0 if agreements are not counted in positions.
export function matches (curve, threshold) {
  return curve.positions ? Math.ceil(curve.positions * at(curve.matching, threshold) - 1e-9) : 0
}

// folds returns p as a function of r.
export function folds (curve, threshold) {
  if (curve.positions) {
    const needed = matches(curve, threshold)
    return r => atLeast(at(curve.matching, r), needed, curve.positions)
  }
  return r => below((r - threshold) / Math.max(1e-9, at(curve.errors, r)))
}

// below is the normal distribution (Abramowitz and Stegun 7.1.26, off by less than 1.5e-7).
function below (x) {
  const z = Math.abs(x) / Math.SQRT2
  const t = 1 / (1 + 0.3275911 * z)
  const rest =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429)))) * Math.exp(-z * z)
  return x > 0 ? 1 - rest / 2 : rest / 2
}

// deviation is the standard error of an agreement, as in sketch.Estimate: half a position is added to either side, so that it is
// never 0 if positions are counted.
export function deviation (curve, agreement) {
  if (!curve.positions) return at(curve.errors, agreement)
  const share = (curve.positions * at(curve.matching, agreement) + 0.5) / (curve.positions + 1)
  return Math.sqrt((share * (1 - share)) / curve.positions) / slope(curve.matching, agreement)
}

// doubt returns the resemblances between which chance decides: where one pair in twenty folds, and where nineteen do.
export function doubt (curve, threshold) {
  const p = folds(curve, threshold)
  const where = share => {
    let low = 0
    let high = 1
    if (p(high) < share) return 1
    for (let i = 0; i < 40; i++) {
      const middle = (low + high) / 2
      if (p(middle) < share) low = middle
      else high = middle
    }
    return high
  }
  return { from: where(0.05), to: where(0.95) }
}
