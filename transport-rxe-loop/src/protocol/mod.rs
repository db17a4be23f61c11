//! Protocols on words that several threads change, most of them in shared memory, where several processes do and each
//! may be killed at any step. Everything takes the words by reference and needs no fabric, so that the loom models of
//! `verify/loom` run the same code.
//!
//! | module | owns |
//! |---|---|
//! | [`lock`] | locks that record their holder, and taking them over from a dead one |
//! | [`fanin`] | pushing to a completion queue under its lock, repairing and resizing it |
//! | [`sole`] | the queue pair that pushes to a completion queue without its lock, being alone |
//! | [`mode`] | flags of a completion queue that change how completions are pushed |
//! | [`moderation`] | completion events that are delayed to stand for several completions |
//! | [`tag`] | tags of completions: which queue, and up to which position |
//! | [`send_slots`] | slots of a send queue: when each can be used again |
//! | [`receives`] | positions of a receive queue, posted and consumed without a lock |
//! | [`pool`] | receives that several queue pairs share, taken under a lock |
//! | [`retired`] | values that copies use without a lock, freed once no copy can |
//! | [`in_flight`] | the in-flight markers: copying against state changes and invalidated keys |
//! | [`identity`] | number and state of a queue pair in one word |
//! | [`number`] | numbers, indices and positions, each of its own type |
//! | [`life`] | which attachment owns a table entry |
//! | [`arena`] | memory that passes from one process to another |
//! | [`stage`] | requests to another process to move bytes itself |
//! | [`ownership`] | which thread works on a queue pair's queues, and whether it is copying |
//! | [`requests`] | remote requests to run a queue pair |
//! | [`channel`] | event channels: sources with unread events, without a lock |
//! | `cm` | the connection manager: states of identifiers and messages of connections, without sockets; not for the models |
//! | [`steps`] | points at which a test kills or stops a process |

pub mod arena;
pub mod channel;
#[cfg(not(loom))]
pub mod cm;
pub mod fanin;
pub mod identity;
pub mod in_flight;
pub mod life;
pub mod lock;
pub mod mode;
pub mod moderation;
pub mod number;
pub mod ownership;
pub mod pool;
pub mod receives;
pub mod requests;
pub mod retired;
pub mod send_slots;
pub mod sole;
pub mod stage;
pub mod steps;
pub mod tag;
