//! Sizes and times for which verbs has numbers.

use core::fmt;
use core::time::Duration;

/// A path MTU, in one of the five sizes that there are. It is serialized as its bytes.
///
/// ```
/// use cq_verbs::setup::Mtu;
///
/// let mtu = Mtu::try_from(1024)?;
/// assert_eq!((mtu, mtu.bytes(), mtu.number()), (Mtu::MTU_1024, 1024, 3));
/// assert_eq!(mtu.min(Mtu::MTU_256), Mtu::MTU_256);
/// assert!(Mtu::try_from(1500).is_err());
/// # Ok::<(), cq_verbs::setup::MtuError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u32", into = "u32"))]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[doc(alias = "ibv_mtu")]
pub struct Mtu(u32);

impl Mtu {
    /// 256 bytes.
    pub const MTU_256: Self = Self(1);
    /// 512 bytes.
    pub const MTU_512: Self = Self(2);
    /// 1024 bytes.
    pub const MTU_1024: Self = Self(3);
    /// 2048 bytes.
    pub const MTU_2048: Self = Self(4);
    /// 4096 bytes.
    pub const MTU_4096: Self = Self(5);

    /// The size, in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        128 << self.0
    }

    /// Its number in `enum ibv_mtu`: 1 to 5.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// That of this number in `enum ibv_mtu`. `None` if there is none.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            1..=5 => Some(Self(number)),
            _ => None,
        }
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

impl From<Mtu> for u32 {
    /// The bytes.
    fn from(mtu: Mtu) -> Self {
        mtu.bytes()
    }
}

impl TryFrom<u32> for Mtu {
    type Error = MtuError;

    /// That of so many bytes.
    fn try_from(bytes: u32) -> Result<Self, MtuError> {
        let mtu = Self::from_number((bytes / 128).checked_ilog2().unwrap_or(0));
        mtu.filter(|mtu| mtu.bytes() == bytes).ok_or(MtuError(bytes))
    }
}

/// There is no path MTU of so many bytes.
///
/// ```
/// use cq_verbs::setup::{Mtu, MtuError};
///
/// assert_eq!(Mtu::try_from(1500), Err(MtuError(1500)));
/// assert_eq!(MtuError(1500).to_string(), "1500 is not an MTU: 256, 512, 1024, 2048 or 4096 bytes");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{0} is not an MTU: 256, 512, 1024, 2048 or 4096 bytes")]
pub struct MtuError(pub u32);

/// A timer's number has five bits.
///
/// ```
/// use cq_verbs::setup::{AckTimeout, TimerError};
///
/// assert_eq!(AckTimeout::try_from(32), Err(TimerError(32)));
/// assert_eq!(TimerError(32).to_string(), "32 is not the number of a timer: 0 to 31");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[error("{0} is not the number of a timer: 0 to 31")]
pub struct TimerError(pub u8);

/// Times whose numbers grow from 1 to 31, and then comes 0. `$nanos` has the time of number 0 by 32.
macro_rules! timer {
    ($(#[$doc:meta])* $name:ident, $(#[$longest:meta])* |$number:ident| $nanos:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(try_from = "u8", into = "u8"))]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        pub struct $name(u8);

        impl $name {
            $(#[$longest])*
            #[must_use]
            pub const fn at_least(time: Duration) -> Self {
                let mut number = 1;
                while number < 32 && Self::nanos(number) < time.as_nanos() {
                    number += 1;
                }
                Self(number % 32)
            }

            /// That of this number, of five bits. `None` if it has more.
            #[must_use]
            pub const fn from_number(number: u8) -> Option<Self> {
                if number < 32 { Some(Self(number)) } else { None }
            }

            /// The number that verbs has for it.
            #[must_use]
            pub const fn number(self) -> u8 {
                self.0
            }

            const fn nanos($number: u8) -> u128 {
                $nanos
            }
        }

        impl From<$name> for u8 {
            fn from(timer: $name) -> Self {
                timer.0
            }
        }

        impl TryFrom<u8> for $name {
            type Error = TimerError;

            fn try_from(number: u8) -> Result<Self, TimerError> {
                Self::from_number(number).ok_or(TimerError(number))
            }
        }
    };
}

timer!(
    /// The time to wait for an answer before a request is sent again: 4.096 µs · 2^n for the numbers 1 to 31, which is up to
    /// 2.4 hours, or no limit. It is serialized as its number.
    ///
    /// ```
    /// use core::time::Duration;
    /// use cq_verbs::setup::AckTimeout;
    ///
    /// let timeout = AckTimeout::at_least(Duration::from_millis(60));
    /// assert_eq!((timeout.number(), timeout.duration()), (14, Some(Duration::from_nanos(4096 << 14))));
    /// assert_eq!(AckTimeout::UNLIMITED.duration(), None);
    /// ```
    AckTimeout,
    /// The shortest time of at least this length. Where that is more than 2.4 hours, it is without a limit.
    |number| 4096 << number
);

impl AckTimeout {
    /// No limit: an answer is waited for without end. Its number is 0.
    pub const UNLIMITED: Self = Self(0);

    /// The time. `None` if it is without a limit.
    #[must_use]
    pub const fn duration(self) -> Option<Duration> {
        match self.0 {
            0 => None,
            number => Some(Duration::from_nanos(Self::nanos(number) as u64)),
        }
    }
}

timer!(
    /// The time that a peer waits before it sends again where no receive is posted: one of the 32 from 0.01 ms to 655.36 ms,
    /// each from 0.04 ms on twice the one before the last. It is serialized as its number: 1 is the shortest, 31 is 491.52 ms,
    /// 0 is 655.36 ms.
    ///
    /// ```
    /// use core::time::Duration;
    /// use cq_verbs::setup::RnrTimer;
    ///
    /// let timer = RnrTimer::at_least(Duration::from_micros(500));
    /// assert_eq!((timer.number(), timer.duration()), (12, Duration::from_micros(640)));
    /// ```
    RnrTimer,
    /// The shortest time of at least this length, and 655.36 ms for what is longer.
    |number| 10_000 * (((2 + number as u128 % 2) << (number / 2)) / 2)
);

impl RnrTimer {
    /// The time.
    #[must_use]
    pub const fn duration(self) -> Duration {
        let number = if self.0 == 0 { 32 } else { self.0 };
        Duration::from_nanos(Self::nanos(number) as u64)
    }
}
