//! What goes wrong with a SEND, beyond what the conformance suite tries: Q7.

use crate::common::failing::{expect_failure, good, run};
use crate::common::{self, ALL, End, S};
use cq_core::wr::Sge;
use transport_rxe_loop::QpState;

/// No byte of a message arrives where its receive, or a part of it that the message would not reach, can't be
/// written.
#[test]
fn q07_a_bad_receive_buffer_is_left_alone() {
    let pd = common::open().alloc_pd().unwrap();
    let elsewhere = pd.allocate(64, ALL).unwrap();
    let of_another_domain = elsewhere.sge(0, 64).unwrap();
    let protection = (S::REM_OP_ERR, S::LOC_PROT_ERR);
    type Piece<'a> = &'a dyn Fn(&End) -> Sge;
    let bad: [(Piece<'_>, _); 7] = [
        (&|b| b.region.sge(0, 15).unwrap(), (S::REM_INV_REQ_ERR, S::LOC_LEN_ERR)),
        (&|b| Sge { lkey: b.region.lkey() ^ 1, ..good(b) }, protection),
        (&|b| Sge { addr: b.region.addr() + 8192 - 16, length: 17, ..good(b) }, protection),
        (&|b| Sge { addr: b.region.addr() + 8192 - 15, ..good(b) }, protection),
        (&|b| Sge { addr: b.region.addr() - 1, ..good(b) }, protection),
        (&|b| Sge { addr: u64::MAX - 3, ..good(b) }, protection),
        (&|_| of_another_domain, protection),
    ];
    for (sge, (ours, theirs)) in bad {
        let (mut a, mut b) = run(sge, |a, _| {
            a.region.write(0, &[0xee; 16]).unwrap();
            a.send(1, 0, 16);
        });
        expect_failure((&mut a, &mut b), (ours, QpState::ERR), (Some(theirs), QpState::ERR));
        assert_eq!(b.bytes(0, 8192), [0; 8192]);
    }
    let mut bytes = [1; 64];
    elsewhere.read(0, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 64]);
}

#[test]
fn q07_a_number_that_nobody_has() {
    let mut a = End::new();
    a.qp.connect_to(0).unwrap();
    a.send(1, 0, 8);
    a.expect(&[(1, S::RETRY_EXC_ERR)]);
}
