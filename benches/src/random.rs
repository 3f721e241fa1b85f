//! Random numbers, which are the same for the same seed on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014), which is good enough for choosing words.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// Shuffles a list (Fisher–Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number that is uniform between -1 and 1.
    pub(crate) fn signed(&mut self) -> f32 {
        (2.0 * self.unit() - 1.0) as f32
    }

    /// Returns a log-normal number with the given mean and sigma 0.6.
    pub(crate) fn length(&mut self, mean: usize) -> usize {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        (mean as f64 * (0.6 * normal - 0.18).exp()) as usize
    }
}
