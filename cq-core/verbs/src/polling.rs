//! Completion queues of completions: [`PollCq`] and [`Arm`] of any entry, for [`Wc`].
//!
//! ```
//! use cq_core::cq::CompletionQueue;
//! use cq_core::transport::PollError;
//! use cq_core::wc::Wc;
//! use cq_verbs::polling::PollWc;
//!
//! /// How many requests have failed, of those that a queue of any transport has completed.
//! fn failures(cq: &mut CompletionQueue<impl PollWc>) -> Result<usize, PollError> {
//!     let mut buffer = [Wc::default(); 16];
//!     Ok(cq.poll(&mut buffer)?.iter().filter(|wc| wc.result().is_err()).count())
//! }
//!
//! /// Any of several transports' queues.
//! type AnyCq<'a> = CompletionQueue<&'a mut dyn PollWc>;
//! # let mut storage = cq_core::queue::SoftCq::<4>::new();
//! # let (mut producer, mut consumer) = storage.split();
//! # producer.push(&Wc::new(7, cq_core::wc::WcStatus::WR_FLUSH_ERR, 5))?;
//! # assert_eq!(failures(&mut AnyCq::new(&mut consumer)), Ok(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use cq_core::transport::{Arm, PollCq};
use cq_core::wc::Wc;

/// [`PollCq`] of completions. Implemented for every type that polls completions, and not by hand.
pub trait PollWc: PollCq<Entry = Wc> {}

impl<T: PollCq<Entry = Wc> + ?Sized> PollWc for T {}

/// [`Arm`] of a queue of completions. Implemented for every type that is armed for completions, and not by hand.
pub trait ArmWc: Arm<Entry = Wc> {}

impl<T: Arm<Entry = Wc> + ?Sized> ArmWc for T {}
