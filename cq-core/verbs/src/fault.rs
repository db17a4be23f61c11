//! When a fault is injected, by count or by chance; and the random numbers for it. For devices that inject faults
//! themselves, and for injectors of any transport, as that of `cq_testing::fault`.
//!
//! ```
//! use cq_verbs::fault::{Dice, Occasion, When};
//!
//! let (mut third, mut dice) = (Occasion::new(When::nth(3)), Dice::new(7));
//! let injected: Vec<_> = (1..=5).filter(|_| third.comes(None, &mut dice)).collect();
//! assert_eq!(injected, [3]);
//! ```

/// When a fault is injected. An occasion is a call or a completion that the fault could hit.
///
/// ```
/// use cq_verbs::fault::{Dice, Occasion, When};
///
/// let (mut second, mut dice) = (Occasion::new(When::nth(2).of_qp(7)), Dice::new(1));
/// let hits = [7, 6, 7, 7].map(|qp_num| second.comes(Some(qp_num), &mut dice));
/// assert_eq!(hits, [false, false, true, false]);
/// ```
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct When(Pick);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Which {
    when: When,
    qp: Option<u32>,
}

impl From<When> for Which {
    fn from(when: When) -> Self {
        Self { when, qp: None }
    }
}

/// Counts the occasions of a fault.
///
/// ```
/// use cq_verbs::fault::{Dice, Occasion, When};
///
/// let (mut fault, mut dice) = (Occasion::new(When::chance(0.25)), Dice::new(7));
/// let hits = (0..1000).filter(|_| fault.comes(None, &mut dice)).count();
/// assert!((200..300).contains(&hits));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// A seeded pseudorandom number generator: SplitMix64, of Steele, Lea and Flood, *Fast Splittable Pseudorandom Number
/// Generators* (2014).
///
/// ```
/// use cq_verbs::fault::Dice;
///
/// let (mut dice, mut same) = (Dice::new(7), Dice::new(7));
/// assert!((0..100).all(|_| dice.below(6) == same.below(6)));
/// assert_eq!(dice.fork().below(1 << 32), same.fork().below(1 << 32));
/// ```
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A new generator, seeded from this one. Their numbers are independent.
    #[must_use]
    pub const fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// A number below `end`. `end` is at most 2³² and not 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        // The upper half of a product with 32 random bits is close to uniform.
        ((self.next() >> 32) * end) >> 32
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
