//! What several processes do to the same words, and may be killed in the midst of: words by reference, no
//! fabric, so that the loom models of `verify/loom` work on the same code.
//!
//! ```
//! use cq_core::queue::raw::Slot;
//! use cq_core::queue::{Control, Entry, NoChannel};
//! use cq_core::testing::raw_queue;
//! use cq_core::transport::PollCq;
//! use cq_core::wc::{Wc, WcStatus};
//! use transport_rxe_loop::protocol::fanin::Fanin;
//! use transport_rxe_loop::protocol::lock::Owner;
//!
//! let (control, slots) = (Control::new(), [const { Slot::new() }; 4]);
//! let queue = || raw_queue(&control, &slots, &[], 4).unwrap();
//! let fanin = Fanin::new();
//! let (dead, me) = (Owner::new(0, 1), Owner::new(1, 1));
//! let entry = |wr_id| Entry { wc: Wc::new(wr_id, WcStatus::SUCCESS, 5), ..Entry::default() };
//!
//! // Published, and killed: neither settled nor kept.
//! assert!(fanin.lock.try_enter(dead));
//! fanin.producer(queue(), NoChannel).push(&entry(1))?;
//!
//! // Somebody else sees that it is dead, and goes on.
//! let mut settled = 0;
//! assert!(fanin.lock.inherit(dead, me));
//! let _state = fanin.repair(&queue(), |_, _| settled += 1);
//! let mut producer = fanin.producer(queue(), NoChannel);
//! fanin.push(&mut producer, &entry(2), |_, _| settled += 1)?;
//! fanin.lock.leave();
//!
//! assert_eq!(settled, 2);
//! assert_eq!(queue().into_consumer(0, NoChannel).poll(&mut [Wc::default(); 4])?, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | owns |
//! |---|---|
//! | [`lock`] | who holds a lock, and how it is inherited |
//! | [`fanin`] | pushing to a completion queue under its lock, repairing and resizing it |
//! | [`mode`] | what is out of the ordinary about pushing to a completion queue |
//! | [`moderation`] | events that are held back to stand for several completions |
//! | [`tag`] | what the tag of a completion says, and the position that it settles |
//! | [`receives`] | the positions of a receive queue, handed over without a lock |
//! | [`pool`] | receives that several queue pairs share, taken under a lock |
//! | [`visits`] | what is looked at without a lock, and kept until nobody does |
//! | [`window`] | moving bytes against changing states and killing keys |
//! | [`identity`], [`state`] | number and state of a queue pair in one word |
//! | [`life`] | which process has an entry of a table |
//! | [`arena`] | memory that is handed from one process to another |
//! | [`stage`] | a request for memory that another process moves itself |
//! | [`ownership`] | which thread works on a queue pair's queues |
//! | [`requests`] | queue pairs that their process is asked to run |
//! | [`channel`] | the sources of a channel that have events, told without a lock |
//! | [`steps`] | the instants at which a test kills a process |

pub mod arena;
pub mod channel;
pub mod fanin;
pub mod identity;
pub mod life;
pub mod lock;
pub mod mode;
pub mod moderation;
pub mod ownership;
pub mod pool;
pub mod receives;
pub mod requests;
pub mod stage;
pub mod state;
pub mod steps;
pub mod tag;
pub mod visits;
pub mod window;
