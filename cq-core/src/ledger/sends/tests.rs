use super::*;
use crate::testing::fake::{Call, Script};
use crate::transport::CqKey;
use crate::wc::WcStatus;

#[test]
fn numbers_of_sends_repeat_after_2_to_the_32() {
    let script = Script::<16>::new(CqKey { index: 0, generation: 1 });
    let mut sends = Sends::<u32, 4>::new(Generation::new(1));
    sends.number = u32::MAX - 1;
    for token in 0..4 {
        sends.post(&mut &script, SendWr::send(0, &[]), token).unwrap();
    }
    let [first, .., last] = &script.calls()[..] else { unreachable!() };
    let [Call::Send { wr_id: first, .. }, Call::Send { wr_id: last, .. }] = [first, last] else {
        unreachable!()
    };
    assert_eq!([*first as u32, *last as u32], [u32::MAX - 1, 1]);
    let wc = |wr_id| Wc::new(wr_id, WcStatus::SUCCESS, 7);
    assert!(sends.retire(&wc(*first)).map(|sent| sent.token).eq([0]));
    assert!(sends.retire(&wc(*last)).map(|sent| sent.token).eq(1..4));
    assert_eq!((sends.retire(&wc(*first)).count(), sends.outstanding()), (0, 0));
}
