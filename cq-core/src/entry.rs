//! What a queue can hold: plain old data of 1 to 128 bytes, which says where its *generation* is
//! ([S8](crate::contract#s8)). The crate `bytemuck`, with its feature `derive`, checks that it is plain.
//!
//! ```
//! use core::mem::offset_of;
//!
//! use bytemuck::{Pod, Zeroable};
//! use cq_core::entry::{Entry, InArray, InEntry};
//! use cq_core::queue::SoftCq;
//!
//! /// A completion as NVMe has it. Its one phase bit is too few, so the generations are in an array apart.
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[repr(C)]
//! struct Cqe {
//!     result: u32,
//!     reserved: u32,
//!     sq_head: u16,
//!     sq_id: u16,
//!     command_id: u16,
//!     status: u16,
//! }
//!
//! impl Entry for Cqe {
//!     type Generation = InArray;
//! }
//!
//! /// An event of an application, which has four bytes to spare: generations cost no memory, and no cache line.
//! #[derive(Clone, Copy, Pod, Zeroable)]
//! #[repr(C, align(8))]
//! struct Event {
//!     session: u64,
//!     kind: u32,
//!     spare: u32,
//! }
//!
//! impl Entry for Event {
//!     type Generation = InEntry<u32, { offset_of!(Event, spare) }, 0xffff>;
//!
//!     fn is_urgent(&self) -> bool {
//!         self.kind == 0
//!     }
//! }
//!
//! let mut storage = SoftCq::<8, Event>::of_entries();
//! let (mut producer, mut consumer) = storage.split();
//! producer.push(&Event { session: 7, kind: 1, spare: 0 })?;
//! let mut events = [Event::zeroed(); 4];
//! assert_eq!(consumer.poll(&mut events).unwrap().len(), 1);
//! assert_eq!((events[0].session, events[0].spare), (7, 0));
//!
//! let mut numbers = SoftCq::<8, u32>::of_entries(); // numbers, and arrays of plain old data, are entries
//! let (mut producer, _consumer) = numbers.split();
//! producer.push(&7)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The example `nvme` of the repository has a driver and a controller, with commands of 64 bytes and completions of 16.
//!
//! # Generations
//! There is no producer index: a slot shows by its generation whether its entry is published. That is the number of the
//! ring's round in which the entry was written, in as many bits as there are, with the highest one set, so that it differs
//! from unwritten memory. The producer stores it last. The consumer knows which generation the next slot will have.
//!
//! The consumer has seen what a slot held in the round before, so it is sufficient that rounds which follow each other
//! differ; besides them, there has to be a generation that no entry has. So **two bits are enough, and one is too few**. With
//! several producers, two bits may raise a spurious event ([N5](crate::contract#n5)): a producer that checks whether the next
//! slot is published may find it two rounds behind.
//!
//! | | where | costs |
//! |---|---|---|
//! | [`InEntry`] | in spare bits of the entry, whose size and alignment are those of words | nothing: the entry's last store publishes it |
//! | [`InArray`] | in an array of bytes apart, so the entries are contiguous | a byte for each slot, and a cache line for 64 |

use core::convert::Infallible;
use core::marker::PhantomData;

use bytemuck::Pod;

use crate::queue::slot::Generation;

/// What a queue can hold. Its size is 1 to 128 bytes; [`Pod`] means that it has no padding, no invalid values and no
/// references, and is derived.
///
/// What is wrong with an entry for its queue, the compiler says where a program is built, not where it is only checked. One
/// of more bytes does not compile:
/// ```compile_fail,E0080
/// let queue = cq_core::queue::SoftCq::<4, [u64; 17]>::of_entries();
/// ```
///
/// See [the module](self) for an example.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no entry of a queue",
    note = "derive `bytemuck::Pod` and `bytemuck::Zeroable`, and implement `cq_core::entry::Entry`",
    note = "wrap a type of another crate in a `#[repr(transparent)]` structure"
)]
pub trait Entry: Pod + Send + Sync {
    /// Where its generation is: [`InEntry`] or [`InArray`].
    type Generation: Generation<Self>;

    /// Whether it raises the event of a consumer that armed for
    /// [solicited](crate::transport::Notify::Solicited) entries alone ([N3](crate::contract#n3)). By default it does not. It is
    /// called where such a consumer waits, once the entry is stored; if it panics, the event is raised.
    #[inline(always)]
    fn is_urgent(&self) -> bool {
        false
    }
}

/// The generation is in the bits of `MASK` of the field of type `F`, a `u8`, `u16` or `u32`, at byte `AT` of the entry. The
/// bits have to be adjacent, 2 to 16 of them. What a producer has in them is lost; a poll returns zeros, and in place they hold
/// the generation.
///
/// The entry's size has to be a multiple of a word's, and its alignment no less than that of an atomic word, which has 8
/// bytes, or 4 on targets without 64-bit atomics. `#[repr(C, align(8))]` serves everywhere.
///
/// One bit does not compile, nor do bits that are apart:
/// ```compile_fail,E0080
/// # use cq_core::{entry::*, queue::SoftCq};
/// # #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C, align(8))]
/// struct Event(u64);
/// impl Entry for Event {
///     type Generation = InEntry<u8, 7, 0x80>;
/// }
/// let queue = SoftCq::<4, Event>::of_entries();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct InEntry<F, const AT: usize, const MASK: u32>(Infallible, PhantomData<F>);

/// The generation is a byte of an array apart, so the entries are contiguous, and none of their bits is used.
#[derive(Clone, Copy, Debug)]
pub enum InArray {}

macro_rules! entries {
    ($($number:ty),+) => {
        $(impl Entry for $number {
            type Generation = InArray;
        })+
    };
}
entries!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64);

impl<T: Pod + Send + Sync, const N: usize> Entry for [T; N] {
    type Generation = InArray;
}
