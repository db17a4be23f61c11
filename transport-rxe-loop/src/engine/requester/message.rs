//! A message's way: what the usual SEND, WRITE and READ do from the send queue to the moved bytes; [`run`](Requester::run)
//! then pushes the completions. Each is of one SGE or of inline bytes, between memory that is mapped here, on a connection that
//! was [validated](crate::engine::connection).
//!
//! | step | SEND | WRITE | READ |
//! |---|---|---|---|
//! | judge | the peer's identity, its next receive; both keys | the peer's identity and right; both keys | the same |
//! | land | the bytes, into the receive | the bytes, the last eight last | the bytes, into the own SGE |
//! | complete | the receive, and the send if it is signaled | the send, if it is signaled | the same |
//!
//! [`usual`](Requester::usual) changes nothing before everything is judged, and says `None` to whatever it does not know:
//! another operation, several SGEs or an empty one, a shared receive queue, memory of another process that is not mapped, a
//! memory window, a wrong key, no right, no receive, one that is too small, a WRITE onto itself, a peer that is to be validated
//! anew. The same request then takes the [long way](Requester::unusual), which knows all of it, and which error comes first.
//!
//! # What each message checks
//! With the in-flight marker set:
//!
//! | check | against | where |
//! |---|---|---|
//! | the identity of the own queue pair | a change of its state | `send_queue.rs`, and after each request `mod.rs` |
//! | operation, number of SGEs, length | whatever is not usual; a ring that another process corrupted | `ring.rs` (`read_one`) |
//! | the peer's identity, its type, and that both are connected to each other | a change of its state or rights, another connection, its end; that it and its senders judge by the same words | `responder.rs` (`is_current`) |
//! | posted and completed positions of the receive queue, and the receive's number of SGEs | there is no receive; positions and SGEs that another process corrupted | `responder.rs` (`usual_receive`), `ring.rs` (`read_one_recv`) |
//! | the right of the peer's queue pair, as validated | a WRITE or READ that it does not allow | here |
//! | both keys, with ranges and rights | deregistered memory | `copy_guard.rs` (`here`) |
//! | the length against the receive's, where a WRITE lies | a receive that is too small; bytes that are moved onto themselves | here, `bytes.rs` |
//! | location, mode, channel and space of both completion queues | a queue that was resized, moderated or failed, or is full | `push.rs` (`push_one`) |

use cq_core::queue::Tagged;
use cq_verbs::setup::Access;
use cq_verbs::wr::{RemoteAddr, SendFlags, SendOp};

use super::onesided::remote_sge;
use super::{Requester, Sent};
use crate::engine::complete::{self, ReceivedOp};
use crate::engine::ring::{OneRequest, OneSge};
use crate::memory::bytes::Here;
use crate::memory::copy_guard::CopyGuard;
use crate::protocol::number::Position;
use crate::protocol::tag;

impl Requester<'_> {
    /// Carries out the request at a position, if it is usual; returns its length.
    #[inline(always)]
    pub fn usual(
        &mut self,
        guard: &CopyGuard<'_>,
        position: Position,
        sent: &mut Sent,
    ) -> Option<u64> {
        let OneRequest { wr_id, op, flags, data } = self.connection.ring.read_one(position)?;
        let len = match op {
            SendOp::Send { imm } => self.usual_send(guard, data, flags, imm)?,
            SendOp::Write { remote, imm: None } => self.usual_write(guard, data, remote)?,
            SendOp::Read { remote } => self.usual_read(guard, data, remote)?,
            _ => return None,
        };
        self.sent(sent, wr_id, &op, flags, position, len.into());
        Some(len.into())
    }

    /// Prefetches the buffer of the receive that the next message will take, if that is known to be posted. Its request is
    /// read for that, and so in the cache, too.
    #[inline]
    pub fn look_ahead(&self, guard: &CopyGuard<'_>) {
        let peer = &self.connection.peer;
        if let Some(sge) = peer.known_receive() {
            if let Some(to) = guard.here_mut(peer.local_keys(), sge, Access::LOCAL_WRITE) {
                to.prefetch();
            }
        }
    }

    #[inline(always)]
    fn usual_send(
        &mut self,
        guard: &CopyGuard<'_>,
        data: OneSge,
        flags: SendFlags,
        imm: Option<[u8; 4]>,
    ) -> Option<u32> {
        let from = self.usual_source(guard, data)?;
        let receive = self.connection.peer.usual_receive(self.received.len() as u64)?;
        if from.len() > receive.sge.length {
            return None;
        }
        let domain = self.connection.peer.local_keys();
        guard.here_mut(domain, receive.sge, Access::LOCAL_WRITE)?.write(&from);
        let (number, op) = (self.connection.peer.number, ReceivedOp::Send { imm });
        let wc = complete::received(receive.wr_id, number, from.len() as usize, op);
        let solicited = flags.contains(SendFlags::SOLICITED);
        let tag = tag::of_recv(receive.position.next());
        self.add_received(Tagged { wc, tag, solicited });
        Some(from.len())
    }

    #[inline(always)]
    fn usual_write(
        &mut self,
        guard: &CopyGuard<'_>,
        data: OneSge,
        remote: RemoteAddr,
    ) -> Option<u32> {
        let from = self.usual_source(guard, data)?;
        let rights = self.connection.peer.usual_rights()?;
        let target = remote_sge(remote, from.len().into());
        let is_granted = rights.access.contains(Access::REMOTE_WRITE);
        let to = guard.here_mut(rights.whose, target, Access::REMOTE_WRITE);
        to.filter(|_| is_granted)?.write_last_word_late(&from).then(|| from.len())
    }

    #[inline(always)]
    fn usual_read(
        &mut self,
        guard: &CopyGuard<'_>,
        data: OneSge,
        remote: RemoteAddr,
    ) -> Option<u32> {
        let OneSge::Sge(sge) = data else { return None };
        let rights = self.connection.peer.usual_rights()?;
        let is_granted = rights.answers && rights.access.contains(Access::REMOTE_READ);
        let source = remote_sge(remote, sge.length.into());
        let from = guard.here(rights.whose, source, Access::REMOTE_READ).filter(|_| is_granted)?;
        guard.here_mut(self.connection.local_keys, sge, Access::LOCAL_WRITE)?.write(&from);
        Some(from.len())
    }

    /// The bytes that a request sends.
    #[inline(always)]
    fn usual_source<'w>(&self, guard: &'w CopyGuard<'_>, data: OneSge) -> Option<Here<'w>> {
        match data {
            OneSge::Inline(words, len) => Some(Here::of_words(words, len)),
            OneSge::Sge(sge) => guard.here(self.connection.local_keys, sge, Access::empty()),
        }
    }
}
