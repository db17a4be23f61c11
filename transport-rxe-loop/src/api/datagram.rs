//! Datagrams: sends of a UD queue pair to a destination.

use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::wr::{RecvWr, SendWr};

use crate::api::ah::Destination;
use crate::api::qp::QueuePair;

/// A queue pair with the destination of its datagrams, made by [`QueuePair::to`].
///
/// ```
/// use transport_rxe_loop::{Access, AddressVector, Context, Destination, QpType, RecvWr, SendWr, Wc};
///
/// let context = Context::open("loop0")?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let mut cq = context.cq(16).create()?;
/// let init = pd.qp(&cq).qp_type(QpType::UD);
/// let (mut alice, mut bob) = (init.create()?, init.create()?);
/// alice.activate(&port, 0x1111)?;
/// bob.activate(&port, 0x1111)?;
///
/// let region = pd.allocate(4096, Access::LOCAL_WRITE)?;
/// bob.post_recv(&[RecvWr::new(1, &[region.sge(..40 + 64)?])])?;
/// let ah = pd.create_ah(&AddressVector::new(&port, port.gid, port.lid))?;
/// let to_bob = Destination::new(&ah, bob.number(), 0x1111);
/// alice.to(&to_bob).post_send(&[SendWr::send_inline(2, b"hello")])?;
///
/// let (mut wcs, mut polled) = ([Wc::default(); 2], 0);
/// while polled < wcs.len() {
///     polled += cq.poll(&mut wcs[polled..])?.len();
/// }
/// wcs.sort_by_key(Wc::wr_id);
/// let received = wcs[0].result()?;
/// assert_eq!((received.byte_len(), received.src_qp()), (40 + 5, alice.number()));
/// let mut back = [0; 5];
/// region.read(40, &mut back)?;
/// assert_eq!(&back, b"hello");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Directed<'a> {
    qp: &'a mut QueuePair,
    destination: Destination<'a>,
}

impl QueuePair {
    /// Sets the destination of the datagrams that are posted through the result. A queue key whose highest bit is set
    /// selects the queue key of the sending queue pair.
    ///
    /// # Errors of datagrams
    ///
    /// | condition | sender | receiver |
    /// |---|---|---|
    /// | the message exceeds the port's [MTU](crate::Port::mtu) | LOC_LEN, SQE | |
    /// | a bad key or range of the sender | LOC_PROT, SQE | |
    /// | no UD queue pair has the number, or it can't receive in its state | SUCCESS | |
    /// | the queue key is not the receiver's | SUCCESS | |
    /// | no receive is posted, or the receiver's process is suspended and has to act itself | SUCCESS | |
    /// | the receive buffer is smaller than the message and the 40 bytes before it | SUCCESS | LOC_LEN, ERR |
    /// | a bad key, range or right of the receive | SUCCESS | LOC_PROT, ERR |
    ///
    /// # Global routing header
    /// The first 40 bytes of a receive buffer are reserved for the GRH. If the address handle has a global route, they
    /// hold it and the completion has the GRH flag; otherwise they are not written. The message follows them, across
    /// SGEs, and the completion's length includes them ([C7](cq_core::contract#c7)). On
    /// [Ethernet](crate::manual#ethernet) every handle has a route, and an IP header is in place of the GRH.
    ///
    /// The result does not outlive the address handle:
    /// ```compile_fail,E0505
    /// # use transport_rxe_loop::{AddressHandle, Destination, QueuePair};
    /// # fn outlive(qp: &mut QueuePair, ah: AddressHandle) {
    /// let mut directed = qp.to(&Destination::new(&ah, 1, 2));
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
    /// A datagram is a SEND, with or without immediate data. Other operations are refused.
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

    fn quiesce(&mut self) -> bool {
        self.qp.quiesce()
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.qp.validate_send_to(wr, &self.destination)
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.qp.check_recv(wr)
    }
}
