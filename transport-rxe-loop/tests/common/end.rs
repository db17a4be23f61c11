//! An end of a connection, or for datagrams: a queue pair with all that it needs.

use super::*;

/// A queue pair with a completion queue and a region of its own.
pub struct End {
    pub qp: QueuePair,
    pub cq: Cq,
    pub region: OwnedRegion,
    pub pd: ProtectionDomain,
    pub context: Context,
}

impl End {
    pub fn new() -> Self {
        Self::with(CAPS)
    }

    pub fn with(caps: QpCaps) -> Self {
        Self::of(QpType::RC, caps)
    }

    pub fn of(qp_type: QpType, caps: QpCaps) -> Self {
        Self::on(&open(), qp_type, caps)
    }

    /// One of this opening of the device.
    pub fn on(context: &Context, qp_type: QpType, caps: QpCaps) -> Self {
        Self::completing_in(context, context.cq(64).create().unwrap(), qp_type, caps)
    }

    /// One whose requests complete in this queue.
    pub fn completing_in(context: &Context, cq: Cq, qp_type: QpType, caps: QpCaps) -> Self {
        let pd = context.alloc_pd().unwrap();
        let qp = pd.qp(&cq).qp_type(qp_type).caps(caps).create().unwrap();
        let region = pd.allocate(8192, ALL).unwrap();
        Self { qp, cq, region, pd, context: context.clone() }
    }

    /// One that is its own peer.
    pub fn to_itself() -> Self {
        let mut end = Self::new();
        end.qp.connect_to(end.qp.number()).unwrap();
        end
    }

    /// From RESET to where it sends and receives datagrams.
    pub fn activate(&mut self) {
        self.qp.activate(&Port::new(1), QKEY).unwrap();
    }

    /// Posts a receive of `len` bytes at `offset`.
    pub fn recv(&mut self, wr_id: u64, offset: usize, len: usize) {
        let sge = self.region.sge(offset..offset + len).unwrap();
        self.qp.post_recv(&[RecvWr::new(wr_id, &[sge])]).unwrap();
    }

    /// Posts a signaled SEND of `len` bytes at `offset`.
    pub fn send(&mut self, wr_id: u64, offset: usize, len: usize) {
        let sge = self.region.sge(offset..offset + len).unwrap();
        self.qp.post_send(&[SendWr::send(wr_id, &[sge])]).unwrap();
    }

    /// Posts requests, of datagrams to the queue pair with this number.
    #[track_caller]
    pub fn post_to(&mut self, peer: u32, list: &[SendWr<'_>]) {
        if self.qp.qp_type() != QpType::UD {
            return self.qp.post_send(list).unwrap();
        }
        let ah = self.pd.create_ah(&address(&self.context)).unwrap();
        self.qp.to(&Destination::new(&ah, peer, QKEY)).post_send(list).unwrap();
    }

    /// Destroys its queue pair, and makes another one like it.
    pub fn destroy_qp(&mut self) {
        let (qp_type, caps) = (self.qp.qp_type(), self.qp.caps());
        let fresh = self.pd.qp(&self.cq).qp_type(qp_type).caps(caps).create().unwrap();
        std::mem::replace(&mut self.qp, fresh).destroy();
    }

    /// Changes its state, with no other attribute.
    #[track_caller]
    pub fn to(&mut self, state: QpState) {
        self.qp.modify(&QpAttr::new().state(state)).unwrap();
    }

    pub fn state(&self) -> QpState {
        self.qp.state().unwrap()
    }

    /// Posts one request.
    pub fn post<'a>(&mut self, wr: SendWr<'a>) {
        self.qp.post_send(&[wr]).unwrap();
    }

    pub fn word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.region.read(offset, &mut bytes).unwrap();
        u64::from_ne_bytes(bytes)
    }

    pub fn set_word(&self, offset: usize, value: u64) {
        self.region.write(offset, &value.to_ne_bytes()).unwrap();
    }

    pub fn bytes(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.region.read(offset, &mut bytes).unwrap();
        bytes
    }

    /// What it completed: exactly these, in this order.
    #[track_caller]
    pub fn expect(&mut self, wanted: &[(u64, S)]) -> Vec<Wc> {
        let number = self.qp.number();
        let got = settle(&mut self.cq, wanted.len());
        assert_eq!(outcomes(&got), wanted);
        assert!(got.iter().all(|wc| wc.qp_num() == number));
        self.expect_nothing();
        got
    }

    #[track_caller]
    pub fn expect_nothing(&mut self) {
        assert_eq!(take(&mut self.cq), []);
    }
}
