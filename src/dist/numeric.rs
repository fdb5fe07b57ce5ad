//! Quadrature, root finding and the normal law: the numbers behind the exact figures of this room.

use std::f64::consts::SQRT_2;

use statrs::function::erf::{erfc, erfc_inv};

/// `e^x` to within two units of the last place for `|x| <= 700`, clamped beyond. It is four times as fast as the
/// platform's, and gives the same bits on every platform, so that a seed's figures don't depend on the C library.
///
/// `x = k ln 2 + r` with `|r| <= ln 2 / 2`, the Taylor polynomial of degree 13 for `e^r` (remainder below 5e-18),
/// times `2^k`.
#[inline(always)]
#[allow(clippy::inline_always)]
pub(super) fn exp(x: f64) -> f64 {
    /// Adding and subtracting it rounds to a whole number.
    const ROUNDER: f64 = 6_755_399_441_055_744.0;
    let x = x.clamp(-700.0, 700.0);
    let shifted = x * std::f64::consts::LOG2_E + ROUNDER;
    let k = shifted - ROUNDER;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let (r2, c) = (r * r, |n: usize| INVERSE_FACTORIALS[n]);
    let r4 = r2 * r2;
    // Estrin's scheme: short chains of dependent operations
    let low = (c(0) + r) + r2 * (c(2) + r * c(3)) + r4 * ((c(4) + r * c(5)) + r2 * (c(6) + r * c(7)));
    let high = (c(8) + r * c(9)) + r2 * (c(10) + r * c(11)) + r4 * (c(12) + r * c(13));
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    (low + r4 * r4 * high) * scale
}

const LN2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `1 / n!`
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut table = [1.0; 14];
    let (mut n, mut factorial) = (1, 1.0);
    while n < 14 {
        factorial *= n as f64;
        table[n] = 1.0 / factorial;
        n += 1;
    }
    table
};

pub(super) fn normal_cdf(z: f64) -> f64 {
    erfc(-z / SQRT_2) / 2.0
}

pub(super) fn normal_sf(z: f64) -> f64 {
    erfc(z / SQRT_2) / 2.0
}

pub(super) fn normal_quantile(p: f64) -> f64 {
    -SQRT_2 * erfc_inv(2.0 * p)
}

/// The smallest x with F(x) >= p, to the last bits: doubling from `start`, then bisection. In the upper half the
/// survival function decides, which keeps its digits there.
pub(super) fn bisect_quantile(p: f64, start: f64, cdf: impl Fn(f64) -> f64, sf: impl Fn(f64) -> f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let reached = |x: f64| if p > 0.5 { sf(x) <= 1.0 - p } else { cdf(x) >= p };
    let mut high = start.max(f64::MIN_POSITIVE);
    while !reached(high) {
        high *= 2.0;
        if !high.is_finite() {
            return f64::INFINITY;
        }
    }
    let mut low = 0.0;
    if reached(high / 2.0) {
        let mut below = high / 2.0;
        while below > 0.0 && reached(below) {
            high = below;
            below /= 2.0;
        }
        low = below;
    }
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if reached(middle) { high = middle } else { low = middle }
    }
    high
}

/// Nodes and weights of the 10-point Gauss–Legendre rule on -1..1 (Abramowitz and Stegun, table 25.4), positive half.
#[allow(clippy::excessive_precision)] // as printed in the table
const NODES: [(f64, f64); 5] = [
    (0.148_874_338_981_631_21, 0.295_524_224_714_752_87),
    (0.433_395_394_129_247_19, 0.269_266_719_309_996_36),
    (0.679_409_568_299_024_41, 0.219_086_362_515_982_04),
    (0.865_063_366_688_984_51, 0.149_451_349_150_580_59),
    (0.973_906_528_517_171_72, 0.066_671_344_308_688_14),
];

fn gauss(f: &impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    let (middle, half) = (f64::midpoint(a, b), (b - a) / 2.0);
    half * NODES.iter().map(|(x, w)| w * (f(middle - half * x) + f(middle + half * x))).sum::<f64>()
}

/// The integral of `f` over `a..b`: ten-point Gauss–Legendre on panels that are halved until two levels agree to
/// 1e-11 of the whole (at most 40 levels).
pub fn integrate(f: impl Fn(f64) -> f64, a: f64, b: f64) -> f64 {
    if b <= a {
        return 0.0;
    }
    let whole = gauss(&f, a, b);
    let mut scale = whole.abs();
    let (mut sum, mut open) = (0.0, vec![(a, b, whole, 0_u32)]);
    while let Some((low, high, rough, level)) = open.pop() {
        let middle = f64::midpoint(low, high);
        let (left, right) = (gauss(&f, low, middle), gauss(&f, middle, high));
        scale = scale.max((left + right).abs());
        // a jump takes a panel a level, so this many are enough for any law; a value that isn't finite ends the search
        let exhausted = level >= 40 || open.len() > 500 || !(left + right).is_finite();
        if exhausted || (left + right - rough).abs() <= 1e-11 * scale {
            sum += left + right;
        } else {
            open.push((low, middle, left, level + 1));
            open.push((middle, high, right, level + 1));
        }
    }
    sum
}

/// `E[min(X, limit)] = ∫ sf` from 0 to `limit` (infinity for the plain mean). `kinks` are points where `sf` jumps or
/// bends.
pub fn survival_integral(sf: impl Fn(f64) -> f64, quantile: impl Fn(f64) -> f64, kinks: &[f64], limit: f64) -> f64 {
    tail_integral(sf, quantile, kinks, 0.0, limit)
}

/// `∫ f` from `from` to `to`, where `f` falls like a survival function whose quantiles are known: split at the kinks
/// and at powers of the scale, on a logarithmic axis beyond the median, until the rest is below 1e-15 of the sum.
pub(super) fn tail_integral(
    f: impl Fn(f64) -> f64,
    quantile: impl Fn(f64) -> f64,
    kinks: &[f64],
    from: f64,
    to: f64,
) -> f64 {
    let mut cuts: Vec<f64> = [1e-9, 1e-3, 0.05, 0.5, 0.95, 1.0 - 1e-3, 1.0 - 1e-6, 1.0 - 1e-9]
        .into_iter()
        .map(&quantile)
        .chain(kinks.iter().copied())
        .filter(|x| x.is_finite() && *x > from && *x < to)
        .collect();
    cuts.sort_by(f64::total_cmp);
    cuts.dedup();
    let (mut sum, mut low) = (0.0, from);
    for high in cuts {
        sum += panel(&f, low, high);
        low = high;
    }
    if to.is_finite() {
        return sum + panel(&f, low, to);
    }
    if low <= 0.0 {
        low = quantile(0.5).max(1e-12);
        sum += panel(&f, 0.0, low);
    }
    // beyond the last cut: decades, until one adds nothing
    for _ in 0..300 {
        let part = panel(&f, low, low * 10.0);
        sum += part;
        low *= 10.0;
        if part <= 1e-16 * sum {
            break;
        }
    }
    sum
}

/// One piece, on a logarithmic axis where it spans more than a factor of two.
fn panel(f: &impl Fn(f64) -> f64, low: f64, high: f64) -> f64 {
    if low > 0.0 && high > 2.0 * low {
        integrate(|y| f(y.exp()) * y.exp(), low.ln(), high.ln())
    } else {
        integrate(f, low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::exp;

    /// Units of the last place between two neighbouring positive numbers.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    #[test]
    fn exp_is_the_platforms_to_two_units() {
        for i in -350_000..350_000 {
            let x = f64::from(i) * 0.002 + 0.000_37;
            assert!(ulps(exp(x), x.exp()) <= 2, "exp {x}");
        }
        assert!(exp(1e9).is_finite() && exp(-1e9) > 0.0);
    }
}
