//! What the cases of shared receive queues are written with: an end with two queue pairs on one shared receive queue,
//! and a peer of each.

use super::stand::*;

/// The plan of an end with a shared receive queue.
pub fn sharing() -> Plan {
    Plan { srq: Some(SrqInit::new(15).max_sge(2)), ..Plan::default() }
}

/// Two connected queue pairs on one shared receive queue.
pub struct Shared<D: Device> {
    /// The peer of the first.
    pub a: End<D>,
    /// The end of the first; the second one uses its completion queues, too.
    pub b: End<D>,
    /// The peer of the second.
    pub c: End<D>,
    /// The second.
    pub second: D::Qp,
}

/// Two queue pairs that share their receives, with a peer each.
pub fn shared<D: Device>() -> Shared<D> {
    let (a, b) = pair_with::<D>(&Plan::default(), &sharing());
    let (mut c, mut second) = (End::<D>::near(&Plan::default()), b.second());
    connect(&mut second, c.qp.number());
    c.connect(&second);
    Shared { a, b, c, second }
}

impl<D: Device> Shared<D> {
    /// The peer of the first or of the second queue pair.
    pub fn sender(&mut self, nth: usize) -> &mut End<D> {
        if nth == 0 { &mut self.a } else { &mut self.c }
    }

    /// The completions of their receives, once there are `count`, each with the number of its queue pair.
    #[track_caller]
    pub fn received(&mut self, count: usize) -> Vec<(u64, S, u32)> {
        let got = settle(&self.b.device, &mut self.b.received, count);
        got.iter().map(|wc| (wc.wr_id(), wc.status(), wc.qp_num())).collect()
    }
}
