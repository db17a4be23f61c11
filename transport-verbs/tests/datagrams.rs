//! Queue pairs that are no reliable connection: UD and UC.

mod common;

use common::{End, QKEY, S, device, pair_of};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::{Wc, WcFlags};
use cq_core::wr::SendWr;
use transport_verbs::{AddressError, AddressVector, Destination, QpType};

/// The global route before a datagram's bytes.
const GRH: usize = 40;

/// Two ends for datagrams.
fn ends() -> Option<(End, End)> {
    let context = device()?;
    let [mut a, mut b] = [(); 2].map(|()| End::new(&context, QpType::Ud));
    a.qp.activate(&a.port, QKEY).unwrap();
    b.qp.activate(&b.port, QKEY).unwrap();
    Some((a, b))
}

#[test]
fn c07_a_datagram_takes_the_global_route_where_there_is_no_other() {
    let Some((mut a, mut b)) = ends() else { return };
    // Without a local identifier, as all of Ethernet is, it takes the global route.
    for lid in [b.port.lid, 0] {
        b.region.write(0, &[0; 512]).unwrap();
        b.recv(1, 0, 512);
        let way = AddressVector::of(&a.port, b.port.gid, lid);
        let ah = a.pd.create_ah(&way).unwrap();
        let to_b = Destination { ah: &ah, qp_num: b.qp.number(), qkey: QKEY };
        a.qp.to(&to_b).post_send(&[SendWr::send_inline(2, b"hello")]).unwrap();
        a.expect(&[(2, S::SUCCESS)]);
        let got = b.expect(&[(1, S::SUCCESS)])[0];
        assert_eq!(got.result().unwrap().flags().contains(WcFlags::GRH), way.route.is_some());
        assert_eq!(b.bytes(GRH, 5), b"hello");

        let mut grh = [0; GRH];
        b.region.read(0, &mut grh).unwrap();
        b.pd.ah_from_wc(&b.port, &got, &grh).unwrap();
        // As it would stand after a failure.
        let failed = Wc::new(1, S::WR_FLUSH_ERR, got.qp_num()).with_flags(WcFlags::GRH);
        assert_eq!(b.pd.ah_from_wc(&b.port, &failed, &grh).unwrap_err(), AddressError::NoDatagram);
    }
}

#[test]
fn q04_a_destination_of_another_domain_of_the_same_opening_is_refused() {
    let Some((mut a, b)) = ends() else { return };
    let foreign = b.pd.create_ah(&AddressVector::of(&b.port, b.port.gid, b.port.lid)).unwrap();
    let to_b = Destination { ah: &foreign, qp_num: b.qp.number(), qkey: QKEY };
    let refused = a.qp.to(&to_b).post_send(&[SendWr::send_inline(1, b"x")]);
    assert_eq!(refused, Err(PostError { posted: 0, why: Refused::NoDestination }));
    a.expect_nothing();
}

#[test]
fn q06_an_unreliable_connection_sends_and_writes_once_it_is_connected() {
    let Some((mut a, mut b)) = pair_of(QpType::Uc) else { return };
    b.recv(1, 0, 64);
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(100).unwrap());
    a.set_word(0, 77);
    a.qp.post_send(&[SendWr::write(2, &sge, to), SendWr::send(3, &sge)]).unwrap();
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
    assert_eq!((b.word(0), b.word(100)), (77, 77));
}
