//! How the device works inside: its parts, its layers, what happens to a message, and where in the source each rule is.
//! Programs need none of it. `cargo doc --document-private-items` renders the modules that it names.
//!
//! # The device
//! ```text
//!        process A                      the fabric, in /dev/shm                     process B
//!  .----------------------.    .------------------------------------------.    .----------------------.
//!  | handles              |    | tables: queue pairs, completion queues,  |    | handles              |
//!  | threads that post    |----| shared receive queues, regions, windows, |----| threads that post    |
//!  | and poll             |    | channels, attached processes             |    | and poll             |
//!  | one service thread   |    | rings: send, receive, shared receive     |    | one service thread   |
//!  | private: own keys,   |    | and completion queues                    |    | private: own keys,   |
//!  | ownership of send    |    | stages: bytes that a process copies      |    | ownership of send    |
//!  | queues, alarms       |    | for another                              |    | queues, alarms       |
//!  |                      |    | beside it: a file for each region that   |    |                      |
//!  |                      |    | the device allocated                     |    |                      |
//!  '----------------------'    '------------------------------------------'    '----------------------'
//! ```
//! The thread that posts a request carries it out, up to the completion at the peer, unless another thread of its process
//! owns the send queue: then that one does. The service thread does what no caller is there for: retries and timeouts,
//! what other processes request of this one, and the cleanup after processes that died.
//!
//! # Layers
//! From top to bottom. Each uses those below it and none above, which `cargo verify layers` checks.
//!
//! | folder | what it does | state of a process |
//! |---|---|---|
//! | `observe` | looking at a fabric from outside, without attaching: what there is, and what waits for what. Each layer reads its own tables for it, in `view` | |
//! | `api` | what a program holds: contexts, protection domains, regions, windows, completion queues, channels, queue pairs, shared receive queues, address handles; validates arguments, once | handles |
//! | `lifecycle` | opening, the service thread, recovery from the death of processes | `Device`: all of the following, and the list of tables whose entries die with their process |
//! | `engine` | requests: ownership of send queues, the requester and its operations, the responder and its receives, retry, flush, errors | `Engine`: queue pairs, shared receive queues, alarms, remote requests |
//! | `policy` | decisions as data: injected faults, where behaviour is by the contract or like Soft-RoCE, and where it is strict | `Policy`: faults, and counts of those injected |
//! | `completion` | completion queues from the producers' side, event channels, asynchronous events | `Completions`: completion queues, channels, moderated queues |
//! | `memory` | from keys to bytes, rights, windows; copying within and between processes | `Memory`: region entries, access paths, the copier |
//! | `connections` | connecting by addresses: the fabric's ports, what carries requests, queues of events | `Connections`: channels, identifiers |
//! | `addresses` | this machine's addresses: which there are, whether one is its own, and who may bind to it | |
//! | `shm` | the fabric's file, attaching, allocation, tables, locks, liveness; knows no verbs | `Shm`: the attachment |
//! | `protocol` | the words that processes share, each with its states; loom models run the same code | |
//! | `sync`, `error` | all atomics, [memory orderings and fences](orderings); errors that several layers return | |
//!
//! # A SEND, step by step
//! ```text
//!  post_send           api/qp                     validates the request, writes it to the send queue, publishes it
//!     |                engine/send_queue          enters the send queue and marks copies as in flight, in one word: the copy
//!     v                                           guard; or leaves the work to the owner
//!  run                 engine/requester           takes requests in order
//!   |  usual           engine/requester/message   judges and moves one: keys in memory/copy_guard, the peer and its receive in
//!   |                                             engine/responder, bytes in memory/bytes
//!   |  any             engine/requester/twosided  the same with all that can be different: spans of several SGEs, a receive of an
//!   |                                             SRQ, memory of another process in memory/copy; onesided, datagram, local
//!  complete receive    completion/push            takes the lock of the peer's completion queue, publishes; returns the event
//!     |                                           that is due
//!  complete send       completion/push            at once, if the own completion queue is free; else clears the mark, then
//!     |                                           takes the lock
//!  wake                engine/send_queue          raises the event of the receive, with the send queue given back
//!     v
//!  poll                api/cq                     no lock; counts, by which posting finds free slots of the send queue
//! ```
//!
//! # The protocol in twelve lines
//! 1. Posting writes the request to the send queue, publishes its position, and tries to enter the send queue.
//! 2. One thread owns it at a time. Another one that finds it owned marks it as rescheduled and returns; the owner checks
//!    again before it gives it back. Only its own process runs a queue pair: others leave it a remote request, and wake
//!    its service thread.
//! 3. The owner takes requests in order. A copy guard marks the queue pair's copies as in flight: the thread that posts
//!    opens it as it enters, any other owner for each run. Only then are keys and the peer's identity read. What was
//!    validated of a connection holds as long as both identities, with their epochs, are the same.
//! 4. A SEND, or a WRITE with immediate, uses the peer's next receive, which is in flight while the guard is open. One of
//!    a shared receive queue is taken under that queue's lock, and marked with the queue pair that it is for. A datagram
//!    takes its receive under a lock of the receiver.
//! 5. The owner copies the bytes and pushes the peer's completions. A single completion of its own is pushed with the guard
//!    open, if its queue is ordinary and has space and no channel, and its lock is free or not needed; for anything else it
//!    closes the guard first.
//! 6. If an RC peer has no receive, the owner marks it as starved and checks again. The thread that posts a receive sees
//!    the mark, and reschedules the sender.
//! 7. An RC request that its peer does not take waits until the queue pair is rescheduled, or until its alarm, at which
//!    the service thread runs the queue pair. A UC or UD message is lost.
//! 8. A failure first changes the state of the queue pairs concerned, to ERR, or to SQE for a sender of type UC or UD;
//!    then it completes the request; then it reschedules the queue pairs to be flushed.
//! 9. Receives are not flushed while the peer's guard is open. The peer sees ERR after it has closed the guard, and
//!    reschedules the queue pair.
//! 10. A completion is pushed under the lock of its completion queue, which no poller takes; a queue pair that is the only
//!     producer needs none while its guard is open. The tag of a receive's has the position up to which receives are done.
//!     Who pushes does not wake: the event of a receive is raised once the completion of the send is stored, too, a failed
//!     one as well (N13), with no lock held. If the queue overruns, the queue pairs that use it go to ERR.
//! 11. Polling counts. By that count, and by where each send's completion was pushed, posting finds which slots are free.
//! 12. A lock whose holder died is taken over. The ring is the log: the tags of all completions that were published are
//!     applied again, which changes nothing where they were.
//!
//! Only RESET, destroying and leaving SQE wait to own a send queue, and no thread owns two. No lock of the fabric is held
//! while bytes move, except those of an atomic and of the receiver of a datagram. Apart from these, only ERR, RESET,
//! destroying, deregistering, deallocating a memory window and LOCAL_INV wait for copies in flight, and so does whatever ends
//! a queue pair's being the only producer of a completion queue: another queue pair that is made for it, resizing, moderation.
//!
//! # Where each rule is
//! Paths are relative to `src`. `engine/requester/{twosided, onesided}.rs` list the status of each error.
//!
//! | rule | file |
//! |---|---|
//! | states, and the attributes of each transition | `cq_verbs::setup::QpState::rule`, `api/qp/change.rs` |
//! | what posting refuses | `api/qp/validate.rs`, `api/qp/post.rs` |
//! | signaled and unsignaled sends | `engine/requester/mod.rs` (`sent`); `sq_sig_all`: `engine/ring.rs`; a failed one always completes: `engine/flush.rs` |
//! | who works on a send queue | `engine/send_queue.rs`, `protocol/ownership.rs` |
//! | send queue slots given back | `protocol/send_slots.rs` |
//! | the usual SEND, WRITE and READ, from the queue to the moved bytes | `engine/requester/message.rs`; both completions: `engine/requester/mod.rs` (`run`) |
//! | the only producer of a completion queue | `protocol/sole.rs` |
//! | SEND, WRITE with immediate | `engine/requester/twosided.rs` |
//! | WRITE, READ, FLUSH | `engine/requester/onesided.rs` |
//! | what of a connection is validated once | `engine/connection.rs`, `engine/responder.rs` (`validate`); the epoch: `protocol/identity.rs` |
//! | atomics, atomic writes | `engine/requester/onesided.rs`, `memory/atomics.rs`; carried out once: `engine/pending_atomic.rs` |
//! | datagrams | `engine/requester/datagram.rs`; Q_Key check: `engine/responder.rs` (`takes`), the sender's own key: `policy/imitation.rs` (`start`); GRH: `engine/requester/grh.rs` |
//! | RNR retry | `engine/retry.rs`; a starved peer: `protocol/receives.rs` |
//! | timeouts | `engine/retry.rs`, `engine/alarms.rs` |
//! | RESET, destroying | `engine/queue_pair.rs` |
//! | flush on ERR, last WQE reached | `engine/flush.rs` |
//! | SQE of UC and UD | `engine/requester/mod.rs` (`failed`), by `policy/imitation.rs` (`failing`); errors of a UC peer are ignored: `engine/requester/unreliable.rs` |
//! | SQD, and SQ_DRAINED | `engine/send_queue.rs` |
//! | shared receive queues, limit event | `engine/shared_receives.rs`, `protocol/pool.rs` (`reaches_limit`) |
//! | completion queue overrun | `completion/push.rs`; its queue pairs: `engine/overrun.rs` |
//! | event arming | `api/cq.rs`, and the arm word in `cq-core/src/queue/arm.rs`; events: `completion/channel.rs`, `protocol/channel.rs` |
//! | who is woken, and when | what is due: `completion/wakeup.rs`; once it may be raised: `engine/rescheduled.rs` (`wake`), `engine/send_queue.rs` |
//! | solicited events | the flag: `engine/requester/{twosided, datagram}.rs`; which completions count: `cq-core/src/queue/completion.rs` (`is_urgent`) |
//! | resizing, moderation | `api/cq/resize.rs`, `protocol/moderation.rs` |
//! | asynchronous events | `api/async_event.rs`, `completion/async_event.rs`, `engine/events.rs` |
//! | key, range and rights of a region | `memory/copy_guard.rs`, `memory/region.rs`; rights of a queue pair: `engine/responder.rs` (`rights`) |
//! | memory windows: bind, invalidate | `memory/binding.rs`, `engine/requester/local.rs` |
//! | waiting for copies in flight | `engine/in_flight.rs`, `protocol/in_flight.rs` |
//! | copying between processes | `memory/paths.rs` (which path), `memory/remote.rs` (system calls), `memory/copier.rs` (by the owner) |
//! | a dead process | noticed: `shm/liveness.rs`; cleanup: `lifecycle/deaths.rs`, and the `DeathRecovery` of each table, as in `engine/recovery.rs` |
//! | lock takeover, waiting for a lock | `shm/lock.rs`; repair of a completion queue: `completion/lock.rs`, `protocol/fanin.rs` |
//! | queue pair numbers | `engine/identity.rs`, from `shm/table.rs` (`claim`) |
//! | a new table, and its entries at a death | `lifecycle/device.rs` (`place`, the list of `DeathRecovery`), `shm/table.rs` (`entries!`), `shm/recovery.rs` |
//! | numbers read from shared memory are in range | tables: `shm/table.rs` (`at`); offsets: `shm/mod.rs` (`in_arena`); queues: `engine/ring.rs` (`of`, `has_any`) |
//! | observing, and counted polls | `observe.rs`, `shm/reader.rs`, `view.rs` of each layer; `api/cq/counting.rs` |
//! | descriptors that the program has closed | the fabric's: `shm/registry.rs`, `shm/attachment.rs`; all others: `shm/descriptor.rs`, `connections/channel.rs` |
//! | memory that is not mapped any more | whose it is: `memory/remote.rs` (`is_usable`); what that fails: `engine/requester/{twosided, onesided, datagram}.rs` |
//! | what ThreadSanitizer is told | `shm/sanitizer.rs`; the C ABI's tables for it: `../verbs-abi/src/exports/tables.rs` |
//! | waking the service thread | `shm/thread.rs`; what it does: `lifecycle/service.rs` |
//! | fault injection | `policy/faults.rs`, `policy/faults/plan.rs`; carried out: `engine/requester/faults.rs` |
//! | imitation of Soft-RoCE | `policy/imitation.rs`; its completion queues: `completion/soft_roce.rs` |
//! | a strict device | `policy/strict.rs`; requests: `engine/requester/strict.rs`; completion queues: `completion/queue.rs` (`ring`); receives: `api/qp/recv_slots.rs`, `api/srq.rs` |
//! | what a completion queue's users can have outstanding | `api/cq/demand.rs`, `api/qp/counted.rs` |

#[doc = include_str!("internals/connecting.md")]
pub mod connecting {}
#[doc = include_str!("internals/orderings.md")]
pub mod orderings {}
