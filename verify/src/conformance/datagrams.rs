//! Datagrams: what arrives, and its completions (C5–C7, N3, Q6, Q9, Q11). Those that are dropped or fail are in
//! `datagram_failures`.

use std::thread;

use super::stand::*;
use super::way::*;
use crate::device::Address;

include!(concat!(env!("OUT_DIR"), "/datagrams.rs"));

fn c05_the_immediate_of_a_datagram_arrives_as_it_was_sent<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 512);
    b.recv(2, 0, 512);
    a.send_to(&way, SendWr::send_inline(3, b"x").with_imm([1, 2, 3, 0xfe]));
    a.send_to(&way, SendWr::send_inline(4, b"x"));
    let got = b.expect_received(&all(1..3, S::SUCCESS));
    assert_eq!(got[0].result().unwrap().imm(), Some([1, 2, 3, 0xfe]));
    assert_eq!(got[1].result().unwrap().imm(), None);
}

fn c06_a_datagram_is_told_by_its_opcodes<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 512);
    a.post_to(&way, SendWr::send_inline(2, b"x"));
    let sent = a.expect_sent(&[(2, S::SUCCESS)])[0];
    assert_eq!(sent.result().unwrap().opcode(), WcOpcode::SEND);
    let received = b.expect_received(&[(1, S::SUCCESS)])[0];
    assert_eq!(received.result().unwrap().opcode(), WcOpcode::RECV);
}

fn c07_byte_len_of_a_datagram_counts_forty_bytes_more<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    for length in [0, 1, 8, 100, 1024] {
        b.recv(1, 0, 2048);
        a.send_to(&way, SendWr::send(2, &[a.sge(0, length)]).with_imm([9; 4]));
        let got = b.expect_received(&[(1, S::SUCCESS)])[0];
        assert_eq!(got.result().unwrap().byte_len(), length + GRH as u32);
    }
}

fn c07_a_datagram_names_its_sender_and_its_route<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.mr.write(0, &[0xee; 64]);
    b.recv(1, 0, 64);
    a.send_to(&way, SendWr::send_inline(2, b"x"));
    let got = b.expect_received(&[(1, S::SUCCESS)])[0];
    let done = got.result().unwrap();
    assert_eq!(done.src_qp(), a.qp.number());
    assert!(done.flags().contains(WcFlags::GRH), "the handle has a route");
    assert_ne!(b.bytes(0, GRH), [0xee; GRH], "it is written");
}

fn c07_a_datagram_without_a_route_leaves_its_forty_bytes_alone<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    let ah = offered(a.device.create_ah(&a.pd, Address { port: 1, global: false }));
    let way = Way { ah, ..way };
    b.mr.write(0, &[0xee; 64]);
    let split = [b.sge(0, 7), b.sge(7, 33), b.sge(40, 1), b.sge(41, 23)];
    b.qp.post_recv(&[RecvWr::new(1, &split)]).unwrap();
    a.send_to(&way, SendWr::send_inline(2, b"local"));
    let got = b.expect_received(&[(1, S::SUCCESS)])[0];
    let done = got.result().unwrap();
    assert_eq!((done.byte_len(), done.src_qp()), (45, a.qp.number()));
    assert!(!done.flags().contains(WcFlags::GRH));
    assert_eq!(b.bytes(0, 46), [&[0xee; GRH], b"local".as_slice(), &[0xee]].concat());
    // The source can be answered nevertheless.
    let ah = offered(b.device.ah_from_wc(&b.pd, &got, &[0; GRH]));
    let back = Way::<D> { ah, qp_num: done.src_qp(), qkey: QKEY };
    a.recv(3, 0, 64);
    b.send_to(&back, SendWr::send_inline(4, b"back"));
    a.expect_received(&[(3, S::SUCCESS)]);
}

fn c08_unsignaled_datagrams_complete_only_at_their_receiver<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    (0..4).for_each(|id| b.recv(id, 0, 64));
    for id in 0..4 {
        a.post_to(&way, SendWr::send_inline(id, b"x").unsignaled());
    }
    b.expect_received(&all(0..4, S::SUCCESS));
    a.expect_silence();
}

fn n03_a_solicited_datagram_wakes_who_waits_for_it<D: Device>() {
    let plan = Plan { channel: true, ..Plan::of(QpType::UD) };
    let (mut a, mut b, way) = strangers_with::<D>(&plan, &plan);
    let key = b.received.key();
    arm(&mut b.received, Notify::Solicited);
    b.recv(1, 0, 64);
    b.recv(2, 0, 64);
    a.send_to(&way, SendWr::send_inline(3, b"x"));
    b.expect_no_event();
    a.send_to(&way, SendWr::send_inline(4, b"x").solicited());
    b.expect_event(key);
    b.expect_received(&all(1..3, S::SUCCESS));
}

fn q06_a_datagram_arrives_behind_forty_bytes<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.mr.write(0, &[0xee; 100]);
    b.recv(1, 0, 100);
    a.send_to(&way, SendWr::send_inline(2, b"hello"));
    b.expect_received(&[(1, S::SUCCESS)]);
    assert_eq!(b.payload(0, 6), b"hello\xee", "and nothing behind it");
}

fn q06_a_receive_of_a_datagram_may_be_split_anywhere<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    for cuts in [[1, 2], [20, 40], [39, 40], [40, 41], [40, 45], [39, 44], [43, 43], [10, 50]] {
        b.mr.write(0, &[0; 4096]);
        // Three SGEs that are not adjacent.
        let [first, second] = cuts;
        let sges = [b.sge(0, first), b.sge(1024, second - first), b.sge(2048, 64 - second)];
        b.qp.post_recv(&[RecvWr::new(1, &sges)]).unwrap();
        a.send_to(&way, SendWr::send_inline(2, b"split anywhere"));
        let got = b.expect_received(&[(1, S::SUCCESS)])[0];
        assert_eq!(got.result().unwrap().byte_len(), 54);
        let length = |sge: Sge| sge.length as usize;
        let all = [
            b.bytes(0, length(sges[0])),
            b.bytes(1024, length(sges[1])),
            b.bytes(2048, length(sges[2])),
        ];
        assert_eq!(&all.concat()[GRH..54], b"split anywhere", "split at {cuts:?}");
    }
}

fn q06_a_datagram_gathers_and_may_be_inline<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 100);
    b.recv(2, 200, 100);
    a.mr.write(0, b"gath");
    a.mr.write(500, b"ered");
    a.send_to(&way, SendWr::send(3, &[a.sge(0, 4), a.sge(100, 0), a.sge(500, 4)]));
    let mut bytes = *b"inline";
    a.post_to(&way, SendWr::send_inline(4, &bytes));
    bytes.fill(0);
    a.expect_sent(&[(4, S::SUCCESS)]);
    b.expect_received(&all(1..3, S::SUCCESS));
    assert_eq!((b.payload(0, 8), b.payload(200, 6)), (b"gathered".to_vec(), b"inline".to_vec()));
    assert_eq!(bytes, [0; 6]);
}

fn q06_a_datagram_may_have_no_bytes<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    let garbage = [Sge { addr: u64::MAX, length: 0, lkey: 0xdead_beef }];
    b.recv(1, 0, 40);
    b.recv(2, 0, 40);
    a.send_to(&way, SendWr::send(3, &[]));
    a.send_to(&way, SendWr::send(4, &garbage));
    for wc in b.expect_received(&all(1..3, S::SUCCESS)) {
        assert_eq!(wc.result().unwrap().byte_len(), 40);
    }
}

fn q06_a_datagram_may_fill_a_packet<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    a.mr.write(0, &[7; 4096]);
    b.recv(1, 0, 4136);
    a.send_to(&way, SendWr::send(2, &[a.sge(0, 4096)]));
    let got = b.expect_received(&[(1, S::SUCCESS)])[0];
    assert_eq!(got.result().unwrap().byte_len(), 4136);
    assert_eq!(b.payload(0, 4096), [7; 4096]);
}

fn q06_a_datagram_is_answered_by_where_it_came_from<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 100);
    a.send_to(&way, SendWr::send_inline(2, b"who is there"));
    let got = b.expect_received(&[(1, S::SUCCESS)])[0];
    let grh = b.bytes(0, GRH).try_into().unwrap();
    let ah = offered(b.device.ah_from_wc(&b.pd, &got, &grh));
    let back = Way::<D> { ah, qp_num: got.result().unwrap().src_qp(), qkey: QKEY };
    a.recv(3, 0, 100);
    b.send_to(&back, SendWr::send_inline(4, b"it is me"));
    let got = a.expect_received(&[(3, S::SUCCESS)])[0];
    assert_eq!(got.result().unwrap().src_qp(), b.qp.number());
    assert_eq!(a.payload(0, 8), b"it is me");
}

fn q06_a_datagram_goes_where_each_says<D: Device>() {
    let (mut a, mut b, to_b) = strangers::<D>();
    let mut c = End::<D>::far(&Plan::of(QpType::UD));
    c.connect(&a.qp);
    let to_c = way(&a, &c);
    for id in 0..6 {
        b.recv(id, 0, 64);
        c.recv(id, 0, 64);
    }
    for id in 0..6 {
        a.send_to(if id % 2 == 0 { &to_b } else { &to_c }, SendWr::send_inline(id, &[id as u8]));
    }
    b.expect_received(&all(0..3, S::SUCCESS));
    c.expect_received(&all(0..3, S::SUCCESS));
    assert_eq!((b.payload(0, 1), c.payload(0, 1)), (vec![4], vec![5]));
}

fn q06_a_datagram_may_go_to_its_own_queue_pair<D: Device>() {
    let mut a = End::<D>::near(&Plan::of(QpType::UD));
    a.bring_to(QpState::RTS, 0);
    let itself = way(&a, &a);
    a.recv(1, 0, 64);
    a.post_to(&itself, SendWr::send_inline(2, b"myself"));
    a.expect_sent(&[(2, S::SUCCESS)]);
    let got = a.expect_received(&[(1, S::SUCCESS)])[0];
    assert_eq!(got.result().unwrap().src_qp(), a.qp.number());
    assert_eq!(a.payload(0, 6), b"myself");
}

fn q06_many_may_send_datagrams_to_one<D: Device>() {
    const EACH: u64 = 4;
    let deep = Plan { cqe: 128, ..Plan::of(QpType::UD) };
    let (a, mut b, _way) = strangers_with::<D>(&Plan::of(QpType::UD), &deep);
    (0..12).for_each(|id| b.recv(id, 64 * id, 64));
    let mut ends = vec![a];
    for _ in 0..2 {
        let mut end = End::near(&Plan::of(QpType::UD));
        end.connect(&b.qp);
        ends.push(end);
    }
    let senders: Vec<_> = ends.iter().map(|end| end.qp.number()).collect();
    let ways: Vec<_> = ends.iter().map(|end| way(end, &b)).collect();
    thread::scope(|scope| {
        for (mut end, way) in ends.into_iter().zip(ways) {
            scope.spawn(move || {
                for id in 0..EACH {
                    end.send_to(&way, SendWr::send_inline(id, &id.to_ne_bytes()));
                }
                (end, way)
            });
        }
    });
    let mut next = vec![0; senders.len()];
    for wc in b.expect_received(&all(0..12, S::SUCCESS)) {
        let sender = wc.result().unwrap().src_qp();
        let nth = senders.iter().position(|name| *name == sender).expect("one of them");
        let message = b.payload(64 * wc.wr_id() as usize, 8);
        assert_eq!(u64::from_ne_bytes(message.try_into().unwrap()), next[nth], "in order");
        next[nth] += 1;
    }
    assert_eq!(next, [EACH; 3]);
}

fn q06_datagrams_of_one_sender_arrive_in_order<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    for round in 0..10 {
        (0..15).for_each(|id| b.recv(id, 64 * id, 64));
        let bytes: Vec<_> = (0..15u8).map(|id| [id ^ round]).collect();
        let list: Vec<_> = (0..).zip(&bytes).map(|(id, b)| SendWr::send_inline(id, b)).collect();
        posted(a.try_post_to(&way, &list));
        a.expect_sent(&all(0..15, S::SUCCESS));
        b.expect_received(&all(0..15, S::SUCCESS));
        for id in 0..15 {
            assert_eq!(b.payload(64 * id, 1), [id as u8 ^ round]);
        }
    }
}

fn q06_an_address_that_is_not_there_has_no_handle<D: Device>() {
    let (a, _b, _way) = strangers::<D>();
    for port in [0, 2, 99] {
        let said = a.device.create_ah(&a.pd, Address { port, global: true }).map(drop);
        assert_eq!(said, Err(Errno::EINVAL), "port {port}");
    }
}

fn q06_a_failed_completion_is_no_address<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    b.recv(1, 0, 100);
    b.recv(2, 0, 100);
    a.send_to(&way, SendWr::send_inline(3, b"x"));
    b.expect_received(&[(1, S::SUCCESS)]);
    b.to(QpState::ERR);
    let flushed = b.expect_received(&[(2, S::WR_FLUSH_ERR)])[0];
    let grh = b.bytes(0, GRH).try_into().unwrap();
    assert_eq!(b.device.ah_from_wc(&b.pd, &flushed, &grh).map(drop), Err(Errno::EINVAL));
}

fn q09_datagrams_take_shared_receives<D: Device>() {
    let srq = Some(SrqInit::new(15).max_sge(2));
    let (mut a, mut b, mut way) =
        strangers_with::<D>(&Plan::of(QpType::UD), &Plan { srq, ..Plan::of(QpType::UD) });
    a.send_to(&way, SendWr::send_inline(1, b"nobody")); // dropped
    b.recv(2, 0, 64);
    way.qkey += 1;
    a.send_to(&way, SendWr::send_inline(1, b"another key")); // dropped
    way.qkey = QKEY;
    a.send_to(&way, SendWr::send_inline(3, b"shared"));
    b.expect_received(&[(2, S::SUCCESS)]);
    assert_eq!(b.payload(0, 6), b"shared");
}

fn q11_a_handle_of_an_address_keeps_its_domain_in_use<D: Device>() {
    let device = D::open();
    let pd = device.alloc_pd();
    let ah = offered(device.create_ah(&pd, Address { port: 1, global: true }));
    let pd = pd.destroy().expect_err("a handle of an address belongs to it");
    drop(ah);
    assert!(pd.destroy().is_ok(), "nothing belongs to it any more");
}
