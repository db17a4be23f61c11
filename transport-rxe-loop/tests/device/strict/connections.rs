//! What two ends have to agree on before they hear each other: packet sequence numbers, and where they are.

use super::*;
use transport_rxe_loop::{Gid, ModifyError, QpAttrMask};

/// Two queue pairs of a type, and their queue.
fn ends(context: &Context, qp_type: QpType) -> ([QueuePair; 2], Cq) {
    let (pd, cq) = (context.alloc_pd().unwrap(), context.cq(64).create().unwrap());
    let init = pd.qp(&cq).qp_type(qp_type).caps(CAPS);
    let qps = [(); 2].map(|()| init.create().unwrap());
    (qps, cq)
}

/// Connects a queue pair whose first packet has the first number, and which expects the other from its peer.
fn connect_numbered(qp: &mut QueuePair, peer: &QueuePair, port: &Port, [sq, rq]: [u32; 2]) {
    let (kind, access) = (qp.qp_type(), Access::REMOTE_WRITE);
    let to = peer.endpoint(port).psn(rq);
    let steps = [QpAttr::init(port, access), QpAttr::rtr(port, &to), impatient().sq_psn(sq)];
    steps.iter().for_each(|step| qp.modify(&step.for_type(kind)).unwrap());
}

/// How a SEND from the first to the second ends, whose first packets have a number and are expected with another.
fn sent(context: &Context, qp_type: QpType, [first, expected]: [u32; 2]) -> Vec<(u64, S)> {
    let ([mut a, mut b], mut cq) = ends(context, qp_type);
    let port = context.port(1).unwrap();
    connect_numbered(&mut a, &b, &port, [first, 7]);
    connect_numbered(&mut b, &a, &port, [7, expected]);
    b.post_recv(&[RecvWr::new(1, &[])]).unwrap();
    a.post_send(&[SendWr::send(2, &[])]).unwrap();
    let is_lost = qp_type == QpType::RC && first != expected;
    outcomes(&settle(&mut cq, if is_lost { 1 } else { 2 }))
}

#[test]
fn q07_who_expects_another_packet_number_does_not_answer() {
    let (both, lost) = ([(1, S::SUCCESS), (2, S::SUCCESS)], [(2, S::RETRY_EXC_ERR)]);
    let (strict, ordinary) = (strict(), options().open("loop0").unwrap());
    for numbers in [[0, 0], [0x12_3456, 0x12_3456], [(1 << 24) - 1; 2]] {
        assert_eq!(sent(&strict, QpType::RC, numbers), both);
    }
    for numbers in [[0, 1], [1, 0], [0x12_3456, 0x65_4321]] {
        assert_eq!(sent(&strict, QpType::RC, numbers), lost);
        // An unreliable one goes on with whatever begins a message; the ordinary device looks at no number.
        assert_eq!(sent(&strict, QpType::UC, numbers), both);
        assert_eq!(sent(&ordinary, QpType::RC, numbers), both);
    }
}

#[test]
fn q01_a_path_leads_to_the_port_of_the_fabric() {
    let (strict, ordinary) = (strict(), options().open("loop0").unwrap());
    let way = |context: &Context, change: fn(&mut AddressVector)| {
        let ([mut qp, peer], _cq) = ends(context, QpType::RC);
        let port = context.port(1).unwrap();
        qp.modify(&QpAttr::init(&port, Access::empty())).unwrap();
        let attr = QpAttr::rtr(&port, &peer.endpoint(&port));
        let mut path = attr.av.unwrap();
        change(&mut path);
        (qp.modify(&attr.av(path)), qp.state().unwrap())
    };
    for change in [
        (|path| path.lid ^= 1) as fn(&mut AddressVector),
        |path| path.lid = 0,
        |path| *path = AddressVector::new(&Port::new(1), Gid::default(), 0),
    ] {
        let (refused, state) = way(&strict, change);
        let is_path = |error: &ModifyError| {
            matches!(error, ModifyError::BadValue { attr: QpAttrMask::AV, .. })
        };
        assert!(refused.as_ref().is_err_and(is_path), "{refused:?}");
        assert_eq!(state, QpState::INIT);
        assert_eq!(way(&ordinary, change), (Ok(()), QpState::RTR));
    }
    assert_eq!(way(&strict, |_| ()), (Ok(()), QpState::RTR));
}
