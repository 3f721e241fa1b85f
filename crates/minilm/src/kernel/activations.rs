//! The two activation functions, power of two (for softmax) and GELU, as polynomials.
//!
//! They do not use the platform's math library, so that the result does not depend on it.
//!
//! Both were fitted by weighted least squares with Lawson's weights on 4,001 Chebyshev nodes, which comes close to the
//! minimax polynomial. A test measures them against double precision.

use super::Line;
use super::lanes::{LANES, Lanes, WHOLE};

/// 2^f on -½ ..= ½, lowest power first: relative error below 2.2e-7, rounding included.
const POWER: [f32; 6] = [1.0000001, 0.69314694, 0.2402212, 0.055507135, 0.009675542, 0.0013276467];

/// Lower exponents are raised to this: 2^-125 is a normal number, and negligible compared with 1.
const LEAST: f32 = -125.0;

/// 2^y for y up to 127. `y = n + f` with an integer n; 2^f by the polynomial, 2^n by the exponent's bits.
#[inline(always)]
pub(super) fn power_of_two<L: Lanes>(y: L) -> L {
    let y = y.max(L::splat(LEAST));
    let whole = y.add(L::splat(WHOLE));
    let f = y.sub(whole.sub(L::splat(WHOLE)));
    polynomial(f, &POWER).times_power_of_two(whole)
}

/// Beyond this, the cumulative normal distribution is 0 or 1 to seven digits.
const EDGE: f32 = 5.0;

/// `(Φ(x) - ½) / x` as a polynomial in `2x²/25 - 1`, lowest power first.
const SHARE: [f32; 12] = [
    0.14136375,
    -0.07029823,
    0.051525395,
    -0.04039198,
    0.03135673,
    -0.02362496,
    0.016910115,
    -0.010165431,
    0.0051132967,
    -0.0038869043,
    0.0031944436,
    -0.00109634,
];

/// GELU, `x · Φ(x)` with the normal distribution's `Φ(x) = ½ (1 + erf(x / √2))`: absolute error below
/// 2.2e-6 for |x| up to 5, and below 6e-7 · |x| beyond.
#[inline(always)]
pub(super) fn gelu<L: Lanes>(x: L) -> L {
    let inside = x.min(L::splat(EDGE)).max(L::splat(-EDGE));
    let place = inside.mul(inside).mul_add(L::splat(2.0 / (EDGE * EDGE)), L::splat(-1.0));
    let share = inside.mul_add(polynomial(place, &SHARE), L::splat(0.5));
    x.mul(share)
}

/// GELU of each number, for the plain encoder that calibrates other models.
pub(crate) fn gelu_each(numbers: &mut [f32]) {
    each_line(numbers, gelu);
}

/// eˣ of each number up to 0, for the same.
pub(crate) fn exp_each(numbers: &mut [f32]) {
    each_line(numbers, |line: Line| power_of_two(line.mul(Line::splat(std::f32::consts::LOG2_E))));
}

fn each_line(numbers: &mut [f32], apply: impl Fn(Line) -> Line) {
    for part in numbers.chunks_mut(LANES) {
        let mut line = [0.0; LANES];
        line[..part.len()].copy_from_slice(part);
        part.copy_from_slice(&apply(Line(line)).0[..part.len()]);
    }
}

/// By Horner's rule.
#[inline(always)]
fn polynomial<L: Lanes, const N: usize>(x: L, terms: &[f32; N]) -> L {
    let mut sum = L::splat(terms[N - 1]);
    for i in (0..N - 1).rev() {
        sum = sum.mul_add(x, L::splat(terms[i]));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(from: f32, to: f32) -> impl Iterator<Item = f32> {
        (0..=200_000).map(move |i| from + (to - from) * (i as f32 / 200_000.0))
    }

    #[test]
    fn powers() {
        for y in numbers(-125.0, 20.0) {
            let got = f64::from(power_of_two(Line::splat(y)).0[0]);
            let expected = f64::from(y).exp2();
            assert!((got / expected - 1.0).abs() < 2.2e-7, "2^{y} = {expected}, not {got}");
        }
        assert_eq!(power_of_two(Line::splat(-1e30)).0[0], power_of_two(Line::splat(LEAST)).0[0]);
    }

    /// erf by the series without changes of sign (Abramowitz and Stegun, 7.1.6).
    fn erf(x: f64) -> f64 {
        let (mut term, mut sum) = (x, x);
        for n in 1..200 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        sum * (-x * x).exp() * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn gelus() {
        for x in numbers(-8.0, 8.0) {
            let got = f64::from(gelu(Line::splat(x)).0[0]);
            let expected = f64::from(x) * 0.5 * (1.0 + erf(f64::from(x) * std::f64::consts::FRAC_1_SQRT_2));
            let bound = if x.abs() <= 5.0 { 2.2e-6 } else { 6e-7 * f64::from(x.abs()) };
            assert!((got - expected).abs() < bound, "gelu({x}) = {expected}, not {got}");
        }
    }
}
