//! Sixteen f32 lanes: the operations of all floating-point arithmetic of the encoder, and their scalar form.
//!
//! An operation gives the same bits on every processor: additions, products, fused products and divisions are
//! rounded as IEEE 754 says, and the order of every sum is specified here or where the sum is computed. `mul_add`
//! rounds once everywhere; where the processor has no such instruction the scalar form is slow but correct.
#![expect(unsafe_code, reason = "the trait has a condition, which is stated there")]

use super::Line;

/// Numbers in a line.
pub(crate) const LANES: usize = 16;

/// 1.5 · 2²³: a number below 2²² added to it is rounded to an integer, which is then in the low bits.
pub(super) const WHOLE: f32 = 12_582_912.0;

/// Sixteen numbers in registers.
///
/// # Safety
/// An implementation with instructions that not every processor has may be used only in the functions of a kernel,
/// which are compiled for these instructions and called only after a check that the processor has them.
pub(super) unsafe trait Lanes: Copy {
    /// The same number in all lanes.
    fn splat(x: f32) -> Self;
    fn load(line: &[f32; LANES]) -> Self;
    fn store(self, line: &mut [f32; LANES]);
    /// Rounded to the nearest f32.
    fn of_sums(sums: &[i32; LANES]) -> Self;
    fn of_bytes(bytes: &[i8; LANES]) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// `self · factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// The larger one; not for NaN.
    fn max(self, other: Self) -> Self;
    /// The smaller one; not for NaN.
    fn min(self, other: Self) -> Self;
    fn abs(self) -> Self;
    /// `self · 2ⁿ` for the integer n that was added to [`WHOLE`]; the result must be a normal number.
    fn times_power_of_two(self, whole: Self) -> Self;
    /// The lowest eight bits of each lane: for `WHOLE + n`, those of n.
    fn low_bytes(self) -> [u8; LANES];

    /// The sum of all lanes: lane i plus lane i + 8, of these i plus i + 4, then 2, then 1.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lane = [0.0; LANES];
        self.store(&mut lane);
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lane[i] += lane[i + half];
            }
        }
        lane[0]
    }

    /// The largest lane.
    #[inline(always)]
    fn peak(self) -> f32 {
        let mut lane = [0.0; LANES];
        self.store(&mut lane);
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                lane[i] = if lane[i] > lane[i + half] { lane[i] } else { lane[i + half] };
            }
        }
        lane[0]
    }
}

/// One operation on each lane. It is a macro because a closure would not be compiled for the kernel's instructions.
macro_rules! each {
    ($lane:ident => $value:expr) => {{
        let mut out = [0.0f32; LANES];
        for $lane in 0..LANES {
            out[$lane] = $value;
        }
        Line(out)
    }};
}

// SAFETY: plain Rust.
unsafe impl Lanes for Line {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Line([x; LANES])
    }
    #[inline(always)]
    fn load(line: &[f32; LANES]) -> Self {
        Line(*line)
    }
    #[inline(always)]
    fn store(self, line: &mut [f32; LANES]) {
        *line = self.0;
    }
    #[inline(always)]
    fn of_sums(sums: &[i32; LANES]) -> Self {
        each!(i => sums[i] as f32)
    }
    #[inline(always)]
    fn of_bytes(bytes: &[i8; LANES]) -> Self {
        each!(i => f32::from(bytes[i]))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        each!(i => self.0[i] + other.0[i])
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        each!(i => self.0[i] - other.0[i])
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        each!(i => self.0[i] * other.0[i])
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        each!(i => self.0[i].mul_add(factor.0[i], term.0[i]))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        each!(i => if self.0[i] > other.0[i] { self.0[i] } else { other.0[i] })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        each!(i => if self.0[i] < other.0[i] { self.0[i] } else { other.0[i] })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        each!(i => self.0[i].abs())
    }
    #[inline(always)]
    fn times_power_of_two(self, whole: Self) -> Self {
        each!(i => f32::from_bits(self.0[i].to_bits().wrapping_add(whole.0[i].to_bits() << 23)))
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; LANES] {
        let mut out = [0; LANES];
        for i in 0..LANES {
            out[i] = self.0[i].to_bits() as u8;
        }
        out
    }
}
