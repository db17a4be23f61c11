//! When a fault is injected, by count or by chance; and the random numbers for it.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// When a fault is injected. An occasion is a call or a completion that the fault could hit.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(Pick);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// The occasion of this number, from 1.
    Nth(u64),
    /// The probability times 2³².
    Chance(u64),
}

impl When {
    /// Once, at the `n`th occasion, counted from 1. A request that the transport refuses, and a completion that has
    /// failed already, are no occasions.
    ///
    /// # Panics
    /// `n` is 0.
    #[track_caller]
    pub const fn nth(n: u64) -> Self {
        assert!(n > 0, "the first is the 1st, there is no 0th");
        Self(Pick::Nth(n))
    }

    /// At each occasion, with this probability.
    ///
    /// # Panics
    /// `probability` is not from 0 to 1.
    #[track_caller]
    pub fn chance(probability: f64) -> Self {
        assert!((0.0..=1.0).contains(&probability), "a probability is from 0 to 1");
        Self(Pick::Chance((probability * (1_u64 << 32) as f64) as u64))
    }

    /// At each occasion.
    pub const fn always() -> Self {
        Self(Pick::Chance(1 << 32))
    }

    /// Only for completions of this queue pair. Only those are counted.
    pub const fn of_qp(self, qp_num: u32) -> Which {
        Which { when: self, qp: Some(qp_num) }
    }
}

/// Which completions a fault hits: [`When`], and optionally of one queue pair.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    when: When,
    qp: Option<u32>,
}

impl From<When> for Which {
    fn from(when: When) -> Self {
        Self { when, qp: None }
    }
}

/// Counts the occasions of a fault. Also for transports that inject faults themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occasion {
    which: Which,
    seen: u64,
}

impl Occasion {
    /// No occasion is counted yet.
    #[must_use]
    pub fn new(which: impl Into<Which>) -> Self {
        Self { which: which.into(), seen: 0 }
    }

    /// Counts an occasion, of queue pair `qp` if known. Returns whether the fault is injected.
    pub fn comes(&mut self, qp: Option<u32>, dice: &mut Dice) -> bool {
        if self.which.qp.is_some() && self.which.qp != qp {
            return false;
        }
        self.seen += 1;
        match self.which.when.0 {
            Pick::Nth(n) => self.seen == n,
            Pick::Chance(of) => dice.below(1 << 32) < of,
        }
    }
}

/// A seeded pseudorandom number generator. Also for transports that inject faults themselves.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A new generator, seeded from this one. Their numbers are independent.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(Xoshiro256PlusPlus::from_rng(&mut self.0))
    }

    /// A number below `end`. `end` is at most 2³² and not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The upper half of a product with 32 random bits is close to uniform.
        (u64::from(self.0.next_u32()) * end) >> 32
    }
}
