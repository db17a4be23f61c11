use std::vec::Vec;

use cq_core::wc::WcStatus;

use super::*;
use crate::wr::RecvWr;

/// The `wr_id` of each request.
struct Posted(Vec<u64>);

impl Post for Posted {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.0.extend(list.iter().map(|wr| wr.wr_id));
        Ok(())
    }

    fn post_recv(&mut self, _: &[RecvWr<'_>]) -> Result<(), PostError> {
        unreachable!()
    }

    fn quiesce(&mut self) -> bool {
        true
    }
}

#[test]
fn numbers_of_sends_repeat_after_2_to_the_32() {
    let mut qp = Posted(Vec::new());
    let mut sends = Sends::<u32, Array<4>>::fixed(Generation::new(1));
    sends.number = u32::MAX - 1;
    for token in 0..4 {
        sends.post(&mut qp, SendWr::send(0, &[]), token).unwrap();
    }
    let [first, .., last] = &qp.0[..] else { unreachable!() };
    assert_eq!([*first as u32, *last as u32], [u32::MAX - 1, 1]);
    let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 7);
    assert!(sends.retire(&wc(*first)).map(|sent| sent.token).eq([0]));
    assert!(sends.retire(&wc(*last)).map(|sent| sent.token).eq(1..4));
    assert_eq!((sends.retire(&wc(*first)).count(), sends.outstanding()), (0, 0));
}
