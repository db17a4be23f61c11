//! Guides. Rules are cited from the [contract](cq_core::contract).
//!
//! | to | read |
//! |---|---|
//! | send a first message | [`first_program`] |
//! | port a C program from libibverbs or librdmacm (`cm`) | [`from_c`] |
//! | poll without sleeping, as with DPDK; use an SRQ | [`poll_mode`] |
//! | sleep: completion channels, epoll, tokio | [`events`] |
//! | serve many clients in one thread | [`server`] |
//! | serve many clients in tasks of tokio | `tasks` |
//! | choose capacities, signaling and memory; avoid overruns and RNR | [`sizing`] |
//! | reconnect after a failure, an overrun or a dead peer; keepalive | [`recovery`] |

#[doc(alias = "epoll")]
pub mod events;
pub mod first_program;
pub mod from_c;
#[doc(alias("backpressure", "DPDK", "mbuf", "mempool", "rte_mbuf", "rte_ring", "SRQ"))]
pub mod poll_mode;
#[doc(alias = "keepalive")]
pub mod recovery;
pub mod server;
#[doc(alias("credits", "RNR", "SRQ"))]
pub mod sizing;
#[cfg(feature = "tokio")]
#[doc(alias = "tokio")]
pub mod tasks;
