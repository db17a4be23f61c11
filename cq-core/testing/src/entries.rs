//! Entries to test what is generic in the [entry](cq_core::entry): of 16, of 8 and of 4 bytes.

use core::mem::offset_of;

use bytemuck::{Pod, Zeroable};
use cq_core::entry::{Entry, InArray, InEntry};

use crate::rules::{Kind, Numbered};

/// 16 bytes, each of which is used: the generations are in an array.
///
/// ```
/// use cq_core::queue::SoftCq;
/// use cq_testing::entries::Bytes16;
/// use cq_testing::rules::{Kind, Numbered};
///
/// let mut storage = SoftCq::<4, Bytes16>::of_entries();
/// let (mut producer, mut consumer) = storage.split();
/// producer.push(&Bytes16::pushed(Kind::Send, 7))?;
/// assert_eq!(consumer.pop()?, Some(Bytes16::polled(Kind::Send, 7)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Bytes16 {
    number: u64,
    /// Made from the number, so that a mixture of two entries equals neither.
    check: u32,
    is_urgent: u32,
}

impl Entry for Bytes16 {
    type Generation = InArray;

    fn is_urgent(&self) -> bool {
        self.is_urgent != 0
    }
}

impl Numbered for Bytes16 {
    type Pushed = Self;

    fn pushed(kind: Kind, number: u64) -> Self {
        Self { number, check: !number as u32, is_urgent: kind.is_urgent().into() }
    }

    fn number(&self) -> u64 {
        self.number
    }
}

/// 4 bytes: no more than 31 bits of a number. The generations are in an array.
///
/// ```
/// use cq_core::entry::Entry;
/// use cq_testing::entries::Bytes4;
/// use cq_testing::rules::{Kind, Numbered};
///
/// let failure = Bytes4::pushed(Kind::Failure, 7);
/// assert!(failure.is_urgent() && failure.number() == 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct Bytes4(u32);

impl Entry for Bytes4 {
    type Generation = InArray;

    fn is_urgent(&self) -> bool {
        self.0 % 2 == 1
    }
}

impl Numbered for Bytes4 {
    type Pushed = Self;

    fn pushed(kind: Kind, number: u64) -> Self {
        Self((number as u32) << 1 | u32::from(kind.is_urgent()))
    }

    fn number(&self) -> u64 {
        (self.0 >> 1).into()
    }
}

/// 8 bytes, two bits of which are spare: the narrowest generation. What is pushed has ones there.
///
/// ```
/// use cq_testing::entries::Spare2;
/// use cq_testing::rules::{Kind, Numbered};
///
/// let (pushed, polled) = (Spare2::pushed(Kind::Send, 7), Spare2::polled(Kind::Send, 7));
/// assert_ne!(pushed, polled); // in the spare bits
/// assert_eq!(pushed.number(), polled.number());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Spare2 {
    number: u32,
    /// Bit 0: whether it is urgent. Bits 7 and 8 are spare.
    flags: u32,
}

const SPARE: u32 = 0x180;

impl Entry for Spare2 {
    type Generation = InEntry<u32, { offset_of!(Spare2, flags) }, SPARE>;

    fn is_urgent(&self) -> bool {
        self.flags & 1 == 1
    }
}

impl Numbered for Spare2 {
    type Pushed = Self;

    fn pushed(kind: Kind, number: u64) -> Self {
        let Self { number, flags } = Self::polled(kind, number);
        Self { number, flags: flags | SPARE }
    }

    fn polled(kind: Kind, number: u64) -> Self {
        Self { number: number as u32, flags: !SPARE & !1 | u32::from(kind.is_urgent()) }
    }

    fn number(&self) -> u64 {
        self.number.into()
    }
}
