//! Lists of requests that differ in flags, immediate data or length (C5, C7, C8, N3, Q6). Single requests are tested by the
//! other modules.

use super::stand::*;
use super::way::*;

include!(concat!(env!("OUT_DIR"), "/lists.rs"));

/// Requests of a list.
const COUNT: u64 = 5;

/// Posts lists with one SOLICITED request at each position, and a list without one: a queue armed for solicited
/// completions raises one event, or none.
#[track_caller]
fn one_is_solicited<D: Device>(
    a: &mut End<D>,
    b: &mut End<D>,
    make: impl Fn(u64, &End<D>) -> SendWr<'static>,
    post: impl Fn(&mut End<D>, &[SendWr<'_>]),
) {
    let key = b.received.key();
    for solicited in 0..=COUNT {
        for id in 0..COUNT {
            b.recv(id, 64 * id, 64);
        }
        arm(&mut b.received, Notify::Solicited);
        let make = |id| {
            let wr = make(id, b);
            if id == solicited { wr.solicited() } else { wr }
        };
        let list: Vec<_> = (0..COUNT).map(make).collect();
        post(a, &list);
        a.expect_sent(&all(0..COUNT, S::SUCCESS));
        let raised = if solicited == COUNT { &[][..] } else { &[key][..] };
        let channel = b.channel.as_mut().expect("it was made with a channel");
        let got = events(&b.device, channel, raised.len());
        assert_eq!(got, raised, "where request {solicited} of {COUNT} is SOLICITED");
        b.expect_received(&all(0..COUNT, S::SUCCESS));
    }
}

fn n03_any_of_a_list_may_be_the_solicited_one<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    one_is_solicited(&mut a, &mut b, |id, _| SendWr::send_inline(id, b"x"), End::post_all);
}

fn n03_any_of_unreliable_sends_may_be_the_solicited_one<D: Device>() {
    let plan = Plan { channel: true, ..Plan::of(QpType::UC) };
    let (mut a, mut b) = pair_with::<D>(&plan, &plan);
    one_is_solicited(&mut a, &mut b, |id, _| SendWr::send_inline(id, b"x"), End::post_all);
}

fn n03_any_of_a_list_of_datagrams_may_be_the_solicited_one<D: Device>() {
    let plan = Plan { channel: true, ..Plan::of(QpType::UD) };
    let (mut a, mut b, way) = strangers_with::<D>(&plan, &plan);
    let make = |id, _: &End<D>| SendWr::send_inline(id, b"x");
    one_is_solicited(&mut a, &mut b, make, |a, list| posted(a.try_post_to(&way, list)));
}

fn n03_any_write_of_a_list_may_be_the_solicited_one<D: Device>() {
    let (mut a, mut b) = with_channels::<D>();
    let make = |id: u64, b: &End<D>| {
        SendWr::write_inline(id, b"x", b.remote(4096)).with_imm([id as u8; 4])
    };
    one_is_solicited(&mut a, &mut b, make, End::post_all);
}

/// The immediate data of these messages, different for odd and even numbers.
fn imm(id: u64) -> Option<[u8; 4]> {
    (id % 2 == 1).then_some([id as u8, 0xfe, 0, 0x80 | id as u8])
}

/// The request with its immediate data.
fn marked(wr: SendWr<'_>) -> SendWr<'_> {
    imm(wr.wr_id).map_or(wr, |imm| wr.with_imm(imm))
}

#[track_caller]
fn bears_its_own(received: &[Wc]) {
    for wc in received {
        assert_eq!(wc.result().unwrap().imm(), imm(wc.wr_id()), "of message {}", wc.wr_id());
    }
}

fn c05_each_of_a_list_carries_its_own_immediate<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    (0..8).for_each(|id| b.recv(id, 0, 64));
    // A WRITE without immediate data consumes no receive.
    let write = |id| SendWr::write_inline(id, b"y", b.remote(4096));
    let plain = write(100).unsignaled();
    let list = [0, 1, 2, 3].map(|id| marked(SendWr::send_inline(id, b"x")));
    let writes = [5, 7].map(|id| marked(write(id)));
    let send = |id| marked(SendWr::send_inline(id, b"x"));
    let list = [list.as_slice(), &[send(4), writes[0], plain, send(6), writes[1]]].concat();
    a.post_all(&list);
    bears_its_own(&b.expect_received(&all(0..8, S::SUCCESS)));
    a.expect_sent(&all(0..8, S::SUCCESS));
}

fn c05_each_datagram_of_a_list_carries_its_own_immediate<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    (0..6).for_each(|id| b.recv(id, 0, 64));
    let list: Vec<_> = (0..6).map(|id| marked(SendWr::send_inline(id, b"x"))).collect();
    posted(a.try_post_to(&way, &list));
    bears_its_own(&b.expect_received(&all(0..6, S::SUCCESS)));
}

fn c07_each_receive_of_a_list_has_its_own_length<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    const LENGTHS: [u32; 6] = [3, 0, 64, 1, 33, 8];
    for id in 0..6 {
        b.recv(id, 64 * id, 64);
    }
    let sges = LENGTHS.map(|length| [a.sge(0, length)]);
    let list: Vec<_> = (0..).zip(&sges).map(|(id, sges)| SendWr::send(id, sges)).collect();
    a.post_all(&list);
    let received = b.expect_received(&all(0..6, S::SUCCESS));
    let lengths: Vec<_> = received.iter().map(|wc| wc.result().unwrap().byte_len()).collect();
    assert_eq!(lengths, LENGTHS);
    a.expect_sent(&all(0..6, S::SUCCESS));
}

fn c07_each_of_a_list_tells_what_it_was<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    (0..2).for_each(|id| b.recv(id, 0, 64));
    let [five, nine, word] = [5, 9, 8].map(|length| [a.sge(0, length)]);
    let (to, x) = (b.remote(4096), b"x");
    a.post_all(&[
        SendWr::read(0, &five, to),
        SendWr::send_inline(1, x),
        SendWr::fetch_add(2, &word, to, 1),
        SendWr::write_inline(3, x, to),
        SendWr::read(4, &nine, to),
        SendWr::write_inline(5, x, to).with_imm([1; 4]),
        SendWr::compare_swap(6, &word, to, 1, 2),
    ]);
    let sent = a.expect_sent(&all(0..7, S::SUCCESS));
    let opcodes: Vec<_> = sent.iter().map(|wc| wc.result().unwrap().opcode()).collect();
    let [read, write] = [WcOpcode::RDMA_READ, WcOpcode::RDMA_WRITE];
    let (add, swap) = (WcOpcode::FETCH_ADD, WcOpcode::COMP_SWAP);
    assert_eq!(opcodes, [read, WcOpcode::SEND, add, write, read, write, swap]);
    // The length of the others is undefined.
    let lengths = [0, 2, 4, 6].map(|at: usize| sent[at].result().unwrap().byte_len());
    assert_eq!(lengths, [5, 8, 9, 8]);
    let received = b.expect_received(&all(0..2, S::SUCCESS));
    let opcodes = [0, 1].map(|at: usize| received[at].result().unwrap().opcode());
    assert_eq!(opcodes, [WcOpcode::RECV, WcOpcode::RECV_RDMA_WITH_IMM]);
}

/// Posts lists with every combination of signaled requests, and a signaled last one: exactly these complete.
#[track_caller]
fn any_is_signaled<D: Device>(a: &mut End<D>, post: impl Fn(&mut End<D>, &[SendWr<'_>])) {
    for chosen in 0..1 << COUNT {
        let is_signaled = |id: &u64| chosen >> id & 1 == 1 || *id == COUNT;
        let make = |id| {
            let wr = SendWr::send_inline(id, b"x");
            if is_signaled(&id) { wr } else { wr.unsignaled() }
        };
        let list: Vec<_> = (0..=COUNT).map(make).collect();
        post(a, &list);
        a.expect_sent(&all((0..=COUNT).filter(is_signaled), S::SUCCESS));
    }
}

fn c08_any_of_a_list_may_be_signaled<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    any_is_signaled(&mut a, |a, list| {
        // WRITEs need no receives.
        let write = |wr: &SendWr<'_>| {
            let one = SendWr::write_inline(wr.wr_id, b"x", b.remote(0));
            SendWr { flags: wr.flags, ..one }
        };
        a.post_all(&list.iter().map(write).collect::<Vec<_>>());
    });
    b.expect_nothing();
}

fn c08_any_of_a_list_of_datagrams_may_be_signaled<D: Device>() {
    let (mut a, _b, way) = strangers::<D>();
    any_is_signaled(&mut a, |a, list| posted(a.try_post_to(&way, list)));
}

/// The content of message `id`.
fn text(id: u64) -> Vec<u8> {
    vec![b'a' + id as u8; 3 + 7 * id as usize]
}

/// Posts lists with every combination of inline requests, and overwrites the inline buffers at once. After `skip` bytes
/// each message arrives as it was posted.
#[track_caller]
fn any_is_inline<D: Device>(
    a: &mut End<D>,
    b: &mut End<D>,
    skip: usize,
    post: impl Fn(&mut End<D>, &[SendWr<'_>]),
) {
    for chosen in 0u64..1 << COUNT {
        let ids = 0..COUNT;
        for id in ids.clone() {
            b.recv(id, 128 * id, 128);
            a.mr.write(64 * id as usize, &text(id));
        }
        let mut inline: Vec<_> = ids.clone().map(text).collect();
        let length = |id| text(id).len() as u32;
        let sges: Vec<_> = ids.clone().map(|id| [a.sge(64 * id, length(id))]).collect();
        let make = |id: u64| match chosen >> id & 1 {
            1 => SendWr::send_inline(id, &inline[id as usize]),
            _ => SendWr::send(id, &sges[id as usize]),
        };
        let list: Vec<_> = ids.clone().map(make).collect();
        post(a, &list);
        inline.iter_mut().for_each(|bytes| bytes.fill(0));
        a.expect_sent(&all(ids.clone(), S::SUCCESS));
        b.expect_received(&all(ids.clone(), S::SUCCESS));
        for id in ids {
            let arrived = b.bytes(128 * id as usize + skip, text(id).len());
            assert_eq!(arrived, text(id), "message {id}, where those of {chosen:#b} are inline");
        }
    }
}

fn q06_any_of_a_list_may_be_inline<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    any_is_inline(&mut a, &mut b, 0, End::post_all);
}

fn q06_any_of_a_list_of_datagrams_may_be_inline<D: Device>() {
    let (mut a, mut b, way) = strangers::<D>();
    any_is_inline(&mut a, &mut b, GRH, |a, list| posted(a.try_post_to(&way, list)));
}

fn q06_a_fence_holds_back_any_of_a_list<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (first, second, both) = ([a.sge(0, 2048)], [a.sge(2048, 2048)], [a.sge(0, 4096)]);
    for round in 1..=50u8 {
        a.mr.write(0, &[0; 4096]);
        b.mr.write(0, &[round; 4096]);
        b.recv(1, 4096, 8);
        b.recv(2, 4096, 4096);
        a.post_all(&[
            SendWr::read(10, &first, b.remote(0)).unsignaled(),
            SendWr::send_inline(11, b"x").unsignaled(),
            SendWr::read(12, &second, b.remote(2048)).unsignaled(),
            SendWr::send(13, &both).fenced(),
        ]);
        b.expect_received(&all(1..3, S::SUCCESS));
        assert!(b.bytes(4096, 4096) == [round; 4096], "the SEND waits for both READs");
        a.expect_sent(&[(13, S::SUCCESS)]);
    }
}
