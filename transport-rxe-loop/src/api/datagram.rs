//! Datagrams: sends of a queue pair of kind UD, each of which says where it goes.
//!
//! ```
//! use cq_core::transport::{PollCq, Post};
//! use cq_core::wc::Wc;
//! use cq_core::wr::{RecvWr, SendWr};
//! use transport_rxe_loop::{Access, AddressVector, Context, Destination, QpInit, QpType};
//!
//! let context = Context::open("loop0")?;
//! let (here, pd) = (context.attributes(), context.alloc_pd());
//! let mut cq = context.create_cq(16, None)?;
//! let init = QpInit { qp_type: QpType::Ud, ..QpInit::new(&cq) };
//! let (mut alice, mut bob) = (pd.create_qp(&init)?, pd.create_qp(&init)?);
//! alice.activate(0x1111)?;
//! bob.activate(0x1111)?;
//!
//! let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
//! bob.post_recv(&[RecvWr::new(1, &[region.sge(0, 40 + 64)?])])?;
//! let ah = pd.create_ah(&AddressVector::of(here.gid, here.lid))?;
//! let to_bob = Destination { ah: &ah, qp_num: bob.number(), qkey: 0x1111 };
//! alice.to(&to_bob).post_send(&[SendWr::send_inline(2, b"hello")])?;
//!
//! let mut room = [Wc::default(); 4];
//! assert_eq!(cq.poll(&mut room)?, 2);
//! let received = room[0].result()?;
//! assert_eq!((received.byte_len(), received.src_qp()), (40 + 5, alice.number()));
//! let mut back = [0; 5];
//! region.read(40, &mut back)?;
//! assert_eq!(&back, b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What becomes of a datagram
//!
//! | what is wrong | sender | receiver |
//! |---|---|---|
//! | more bytes than the port's [packets](crate::DeviceAttr::max_mtu) have | LOC_LEN, SQE | |
//! | a key or a range of the sender's own | LOC_PROT, SQE | |
//! | nobody has the number, or not for datagrams; it is not in RTR, or has failed | SUCCESS | |
//! | the queue key is not the receiver's | SUCCESS | |
//! | no receive is posted, or the receiver's process is stopped and has to do something itself | SUCCESS | |
//! | the receive has less room than the bytes and the forty before them | SUCCESS | LOC_LEN, ERR |
//! | a key, a range, or a right of the receive's | SUCCESS | LOC_PROT, ERR |
//!
//! A queue key whose highest bit is set stands for that of the sending queue pair.
//!
//! # The forty bytes
//! The first forty bytes of a receive are for the datagram's global route: they hold it, and the completion
//! says so (GRH), if the address handle has one; otherwise they are left alone. What was sent begins behind
//! them, wherever the pieces end, and the completion counts them (C7).

use cq_core::transport::{Post, PostError};
use cq_core::wr::{RecvWr, SendWr};

use crate::api::ah::Destination;
use crate::api::qp::QueuePair;

/// A queue pair whose datagrams go to one destination: what [`QueuePair::to`] makes of it.
#[derive(Debug)]
pub struct Directed<'a> {
    qp: &'a mut QueuePair,
    destination: Destination<'a>,
}

impl QueuePair {
    /// Where datagrams go: what is posted through the result is sent there.
    ///
    /// What it returns does not outlive the address:
    /// ```compile_fail,E0505
    /// # use cq_core::transport::Post;
    /// # use transport_rxe_loop::{AddressHandle, Destination, QueuePair};
    /// # fn outlive(qp: &mut QueuePair, ah: AddressHandle) {
    /// let mut directed = qp.to(&Destination { ah: &ah, qp_num: 1, qkey: 2 });
    /// ah.destroy();
    /// directed.post_send(&[]);
    /// # }
    /// ```
    #[inline]
    pub const fn to<'a>(&'a mut self, destination: &Destination<'a>) -> Directed<'a> {
        Directed { qp: self, destination: *destination }
    }
}

impl Post for Directed<'_> {
    /// Datagrams carry SEND, with or without immediate data; everything else is refused.
    #[inline]
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        let mut batch = self.qp.batch();
        let mut put = |(posted, wr)| {
            let refused = |why| PostError { posted, why };
            batch.put_to(wr, &self.destination).map_err(refused)
        };
        let result = list.iter().enumerate().try_for_each(&mut put);
        batch.post();
        result
    }

    #[inline]
    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.qp.post_recv(list)
    }
}
