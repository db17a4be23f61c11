//! Which memory orderings accounting uses, and why. Every atomic operation of the crate is one of the named operations below.
//! Outside this module the crate names no ordering, and takes its atomic types from here.
//!
//! # Pairs
//!
//! | operation | side | pairs with | what the pair makes visible |
//! |---|---|---|---|
//! | `ask` (Release) | a thread that drops or discards a [reservation](crate::budget) | `see_asked` (Acquire), the poller | every completion of the queue pair that was destroyed or went to RESET |
//! | `give` (Release) | the poller, after a poll that found the queue empty | `take` (Acquire), a thread that reserves | that the entries were removed from the queue |
//! | `answer` (Release) | the poller, likewise | `see_answer` (Acquire), a thread that discarded | likewise |
//!
//! # What is Relaxed
//!
//! | load | why a stale value does no harm |
//! |---|---|
//! | the free entries of a budget, by `Budget::available` | the compare-and-swap of `take` checks them |
//! | the capacity of a budget | it only says whether a reservation that was refused can ever succeed; the thread that resizes the queue decides when others learn of it |
//! | the [counters](crate::counters) of a queue | only its recorder stores them; nothing is decided by what a reader sees |
//!
//! # Counters
//! What each count of the crate does at its end. None of them panics there.
//!
//! | count | bits | at its end |
//! |---|---|---|
//! | [generations](crate::ledger::Generation) of ledgers, those of `Generation::unique` among them | 31 | wraps; a completion of a ledger can retire a request of one that was made exactly 2³¹ generations later |
//! | sends of a [ledger](crate::ledger) | 32 | wraps; a completion that was given already would have to be given again 2³² sends later to retire a request |
//! | uses of a slot of [`Receives`](crate::ledger::Receives) | 31, less those of the slot's index | wraps; a completion that was given already, given again exactly so many uses later, retires another receive. Free slots are used in turn |
//! | requests of a [budget](crate::budget) that were asked and answered | 32 | wraps; exact as long as there are fewer than 2³² requests between two polls that find the queue empty |
//! | entries that were released to a budget | 32 | wraps; only the difference since the last such poll counts, which is at most the capacity |
//! | free entries of a budget | 32 | not reached: they are at most the capacity |
//! | numbers of the queues, channels and descriptors of a set | 64 | not reached: one for each that is added |
//! | the value of an eventfd, of `descriptor` and stop handles | 64, the kernel's | a write fails, and the descriptor is readable already |
//! | rounds of a wait set between two checks | 32 | not reached: they start anew with each check |
//! | [counters](crate::counters) | 64; 32 on targets without 64-bit atomics | wrap; events not yet explained, which become spurious ones, saturate at 2³² − 1 |
//!
//! # How it is checked
//! As [the engine's](cq_core::sync#how-it-is-checked).

#[cfg(target_has_atomic = "32")]
mod credit;
#[cfg(target_has_atomic = "32")]
mod site;

#[cfg(target_has_atomic = "32")]
pub(crate) use self::credit::{answer, ask, give, see_answer, see_asked, take, unique_number};
#[cfg(all(loom, target_has_atomic = "32"))]
pub use self::site::{Site, weaken};
#[cfg(target_has_atomic = "32")]
pub(crate) use cq_core::sync::{AtomicU32, load_u32, store_u32};
pub(crate) use cq_core::sync::{AtomicWord, Word, load, store};
