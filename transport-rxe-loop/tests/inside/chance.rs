//! Pseudorandom numbers for tests: the same for the same seed.

/// The state of the generator.
pub struct Chance(u64);

impl Chance {
    /// The numbers of a seed. Those of neighbouring seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        // An odd factor, so that only one seed gives 0, the state from which all numbers are 0.
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).max(1))
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// True once in `many` calls, on average.
    pub fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }
}
