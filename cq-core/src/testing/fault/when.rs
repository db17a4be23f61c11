//! When a fault comes: by count or by chance; and the dice, which fall alike for the same seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// When a fault comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When(Pick);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pick {
    /// The one of this number, from 1.
    Nth(u64),
    /// So many of 2³².
    Chance(u64),
}

impl When {
    /// Once: the `n`th time that it could, of which the first is 1. A request that the transport refuses
    /// could not be refused here, nor could a completion fail that has failed already.
    ///
    /// # Panics
    /// There is no 0th.
    #[must_use]
    #[track_caller]
    pub const fn nth(n: u64) -> Self {
        assert!(n > 0, "the first is the 1st, there is no 0th");
        Self(Pick::Nth(n))
    }

    /// Each time that it could, with this probability.
    ///
    /// # Panics
    /// A probability is from 0 to 1.
    #[must_use]
    #[track_caller]
    pub fn chance(probability: f64) -> Self {
        assert!((0.0..=1.0).contains(&probability), "a probability is from 0 to 1");
        Self(Pick::Chance((probability * (1_u64 << 32) as f64) as u64))
    }

    /// Each time that it could.
    #[must_use]
    pub const fn always() -> Self {
        Self(Pick::Chance(1 << 32))
    }

    /// Only completions of this queue pair, which are counted for themselves.
    #[must_use]
    pub const fn of_qp(self, qp_num: u32) -> Which {
        Which { when: self, qp: Some(qp_num) }
    }
}

/// Which completions a fault hits: [`When`], and maybe of which queue pair.
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

/// Which, and how often it could have been. For transports that have faults of their own, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occasion {
    which: Which,
    seen: u64,
}

impl Occasion {
    /// It has not been yet.
    #[must_use]
    pub fn new(which: impl Into<Which>) -> Self {
        Self { which: which.into(), seen: 0 }
    }

    /// Counts another one, which is of `qp` if that is known; whether the fault comes.
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

/// Numbers in no order, the same for the same seed. For transports that have faults of their own, too.
#[derive(Clone, Debug)]
pub struct Dice(Xoshiro256PlusPlus);

impl Dice {
    /// From this seed on.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Others, which have nothing in common with these.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(Xoshiro256PlusPlus::from_rng(&mut self.0))
    }

    /// A number below `end`, which is at most 2³² and not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // Of 32 bits, the product's upper half is as good as even.
        (u64::from(self.0.next_u32()) * end) >> 32
    }
}
