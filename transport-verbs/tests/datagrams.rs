//! Queue pairs that are no reliable connection: UD and UC.

mod common;

use common::{End, QKEY, S, device, pair_of};
use cq_core::transport::{Post, PostError, Refused};
use cq_core::wc::{Wc, WcFlags, WcOpcode};
use cq_core::wr::{RemoteAddr, SendWr};
use transport_verbs::{AddressHandle, AddressVector, Destination, QpType};

/// The global route before a datagram's bytes.
const GRH: usize = 40;

#[track_caller]
fn refused(result: Result<(), PostError>, why: Refused) {
    assert_eq!(result, Err(PostError { posted: 0, why }));
}

/// Two ends for datagrams, and the way from the first to the second.
fn ends() -> Option<(End, End, AddressHandle)> {
    let context = device()?;
    let [mut a, mut b] = [(); 2].map(|()| End::new(&context, QpType::Ud));
    a.qp.activate(&a.port, QKEY).unwrap();
    b.qp.activate(&b.port, QKEY).unwrap();
    let to_b = AddressVector::of(&a.port, b.port.gid(), b.port.lid());
    let ah = a.pd.create_ah(&to_b).unwrap();
    Some((a, b, ah))
}

#[test]
fn c07_a_datagram_arrives_behind_forty_bytes_and_is_answered() {
    let Some((mut a, mut b, _)) = ends() else { return };
    // Without a local identifier, as all of Ethernet is, it takes the global route.
    for lid in [b.port.lid(), 0] {
        b.region.write(0, &[0; 512]).unwrap();
        arrives_and_is_answered(&mut a, &mut b, lid);
    }
}

fn arrives_and_is_answered(a: &mut End, b: &mut End, lid: u16) {
    b.recv(1, 0, 512);
    let way = AddressVector::of(&a.port, b.port.gid(), lid);
    let ah = a.pd.create_ah(&way).unwrap();
    let to_b = Destination { ah: &ah, qp_num: b.qp.number(), qkey: QKEY };
    let hello = SendWr::send_inline(2, b"hello").with_imm([0, 0, 0, 7]);
    a.qp.to(&to_b).post_send(&[hello]).unwrap();
    a.expect(&[(2, S::SUCCESS)]);
    let got = b.expect(&[(1, S::SUCCESS)])[0];
    let done = got.result().unwrap();
    assert_eq!((done.opcode(), done.byte_len()), (WcOpcode::RECV, 5 + GRH as u32));
    assert_eq!((done.src_qp(), done.imm()), (a.qp.number(), Some([0, 0, 0, 7])));
    assert_eq!(done.flags().contains(WcFlags::GRH), way.route.is_some());
    assert_eq!(b.bytes(GRH, 5), b"hello");

    let mut grh = [0; GRH];
    b.region.read(0, &mut grh).unwrap();
    let back = b.pd.ah_from_wc(&b.port, &got, &grh).unwrap();
    // As it would stand after a failure.
    let failed = Wc::new(1, S::WR_FLUSH_ERR, got.qp_num()).with_flags(WcFlags::GRH);
    assert_eq!(b.pd.ah_from_wc(&b.port, &failed, &grh).unwrap_err().errno(), 22);
    a.recv(3, 0, 512);
    let to_a = Destination { ah: &back, qp_num: done.src_qp(), qkey: QKEY };
    b.qp.to(&to_a).post_send(&[SendWr::send_inline(4, b"and back")]).unwrap();
    b.expect(&[(4, S::SUCCESS)]);
    assert_eq!(a.expect(&[(3, S::SUCCESS)])[0].result().unwrap().byte_len(), 8 + GRH as u32);
    assert_eq!(a.bytes(GRH, 8), b"and back");
}

#[test]
fn q06_datagrams_of_another_queue_key_are_dropped() {
    let Some((mut a, mut b, ah)) = ends() else { return };
    b.recv(1, 0, 512);
    for (wr_id, qkey) in [(2, QKEY + 1), (3, QKEY)] {
        let to_b = Destination { ah: &ah, qp_num: b.qp.number(), qkey };
        a.qp.to(&to_b).post_send(&[SendWr::send_inline(wr_id, &[wr_id as u8])]).unwrap();
    }
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
    b.expect(&[(1, S::SUCCESS)]);
    assert_eq!(b.bytes(GRH, 1), [3]);
}

/// What has no destination, or no place in a datagram, never gets to the device.
#[test]
fn q06_a_datagram_is_a_send_with_a_destination() {
    let Some((mut a, b, ah)) = ends() else { return };
    refused(a.qp.post_send(&[SendWr::send_inline(1, b"x")]), Refused::NoDestination);
    let nowhere = RemoteAddr { addr: 8, rkey: 1 };
    let sge = [a.region.sge(0, 8).unwrap()];
    let to_b = Destination { ah: &ah, qp_num: b.qp.number(), qkey: QKEY };
    for wr in [
        SendWr::write(1, &sge, nowhere),
        SendWr::read(1, &sge, nowhere),
        SendWr::fetch_add(1, &sge, nowhere, 1),
    ] {
        refused(a.qp.to(&to_b).post_send(&[wr]), Refused::Unsupported);
    }
    let foreign = b.pd.create_ah(&AddressVector::of(&b.port, b.port.gid(), b.port.lid())).unwrap();
    let to_b = Destination { ah: &foreign, ..to_b };
    let by_foreign = a.qp.to(&to_b).post_send(&[SendWr::send_inline(1, b"x")]);
    refused(by_foreign, Refused::NoDestination);
    a.expect_nothing();
}

#[test]
fn q11_an_address_handle_keeps_its_domain_in_use() {
    let Some((a, _, ah)) = ends() else { return };
    let End { qp, region, pd, .. } = a;
    drop((qp, region));
    let pd = pd.destroy().unwrap_err().handle;
    ah.destroy();
    pd.destroy().unwrap();
}

#[test]
fn c07_an_address_that_leads_nowhere_is_refused() {
    let Some(context) = device() else { return };
    let end = End::new(&context, QpType::Ud);
    let here = AddressVector::of(&end.port, end.port.gid(), end.port.lid());
    end.pd.create_ah(&AddressVector { port: 99, ..here }).unwrap_err();
}

#[test]
fn q06_an_unreliable_connection_sends_and_writes() {
    let Some((mut a, mut b)) = pair_of(QpType::Uc) else { return };
    b.recv(1, 0, 64);
    let (sge, to) = ([a.region.sge(0, 8).unwrap()], b.region.remote(100).unwrap());
    a.set_word(0, 77);
    a.qp.post_send(&[SendWr::write(2, &sge, to), SendWr::send(3, &sge)]).unwrap();
    a.expect(&[(2, S::SUCCESS), (3, S::SUCCESS)]);
    assert_eq!(b.expect(&[(1, S::SUCCESS)])[0].result().unwrap().byte_len(), 8);
    assert_eq!((b.word(0), b.word(100)), (77, 77));
    for wr in [SendWr::read(4, &sge, to), SendWr::compare_swap(4, &sge, to, 0, 1)] {
        refused(a.qp.post_send(&[wr]), Refused::Unsupported);
    }
}

/// A connection has its destination.
#[test]
fn q06_connections_take_no_destination() {
    let Some((mut a, _, _)) = ends() else { return };
    let Some((mut uc, _)) = pair_of(QpType::Uc) else { return };
    let here = AddressVector::of(&uc.port, uc.port.gid(), uc.port.lid());
    let ah = uc.pd.create_ah(&here).unwrap();
    let to = Destination { ah: &ah, qp_num: a.qp.number(), qkey: QKEY };
    refused(uc.qp.to(&to).post_send(&[SendWr::send_inline(1, b"x")]), Refused::Unsupported);
    a.expect_nothing();
}
