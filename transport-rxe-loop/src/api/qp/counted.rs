//! A queue pair with the completion queues that it uses: it counts among [those](crate::api::cq::demand) whose requests
//! complete there, as long as any may.

use std::sync::Arc;

use cq_verbs::setup::QpCaps;

use crate::api::cq::Queue;
use crate::api::srq::Shared;

/// The queues of a queue pair.
#[derive(Debug)]
pub struct Counted {
    cqs: [Arc<Queue>; 2],
    srq: Option<Arc<Shared>>,
    caps: QpCaps,
}

impl Counted {
    /// A queue pair with these completion queues for its sends and its receives, and with receives of its own or shared
    /// ones.
    pub fn new(cqs: [&Arc<Queue>; 2], srq: Option<&Arc<Shared>>, caps: QpCaps) -> Self {
        let [send_cq, recv_cq] = cqs;
        send_cq.users.add(caps.max_send_wr);
        match srq {
            None => recv_cq.users.add(caps.max_recv_wr),
            Some(srq) => {
                recv_cq.users.share(srq.number, srq.capacity());
                srq.completes_in(recv_cq);
            }
        }
        Self { cqs: cqs.map(Arc::clone), srq: srq.map(Arc::clone), caps }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let [send_cq, recv_cq] = &self.cqs;
        // A forked child may have inherited the locks as taken.
        if !send_cq.engine.shm.is_ours() {
            return;
        }
        send_cq.users.remove(self.caps.max_send_wr);
        match &self.srq {
            None => recv_cq.users.remove(self.caps.max_recv_wr),
            Some(srq) => {
                recv_cq.users.unshare(srq.number);
                srq.no_longer_completes_in(recv_cq);
            }
        }
    }
}
