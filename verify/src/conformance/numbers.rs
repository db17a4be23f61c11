//! The layout of completions, and unknown numbers in them (C1, C2, C3, C12).

use cq_core::cq::CompletionQueue;
use cq_core::transport::PollError;
use cq_verbs::polling::PollWc;

use super::stand::*;

include!(concat!(env!("OUT_DIR"), "/numbers.rs"));

/// The offset of each field.
const STATUS: usize = 8;
const OPCODE: usize = 12;
const FLAGS: usize = 36;

/// The number at this offset of a completion.
fn number(wc: &Wc, at: usize) -> u32 {
    u32::from_ne_bytes(wc.to_bytes()[at..at + 4].try_into().unwrap())
}

fn c01_a_polled_completion_has_the_layout_of_the_header<D: Device>() {
    const ID: u64 = 0x1122_3344_5566_7788;
    assert_eq!((size_of::<Wc>(), align_of::<Wc>()), (48, 8));
    let (mut a, mut b) = pair::<D>();
    b.recv(ID, 0, 64);
    a.post(SendWr::send_inline(1, b"seven b").with_imm([0xa1, 0xb2, 0xc3, 0xd4]));
    let wc = b.expect_received(&[(ID, S::SUCCESS)])[0];
    let bytes = wc.to_bytes();
    assert_eq!(bytes[..8], ID.to_ne_bytes(), "wr_id");
    assert_eq!(number(&wc, STATUS), 0, "status");
    assert_eq!(number(&wc, OPCODE), 128, "opcode");
    assert_eq!(number(&wc, 20), 7, "byte_len");
    assert_eq!(bytes[24..28], [0xa1, 0xb2, 0xc3, 0xd4], "imm_data");
    assert_eq!(number(&wc, 28), b.qp.number(), "qp_num");
    assert_eq!(number(&wc, FLAGS) & 2, 2, "wc_flags");
    assert_eq!(bytes[46..], [0; 2], "the padding");
    assert_eq!(Wc::from_bytes(bytes), wc, "these are all its bytes");
}

fn c02_successes_have_the_numbers_of_the_header<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    let (to, word) = (b.remote(64), [a.sge(0, 8)]);
    let list = [
        (SendWr::send(0, &word), 0),
        (SendWr::write(1, &word, to), 1),
        (SendWr::read(2, &word, to), 2),
        (SendWr::compare_swap(3, &word, to, 0, 1), 3),
        (SendWr::fetch_add(4, &word, to, 1), 4),
        (SendWr::send(5, &word).with_imm([7; 4]), 0),
        (SendWr::write(6, &word, to).with_imm([8; 4]), 1),
    ];
    (0..3).for_each(|id| b.recv(id, 0, 8));
    for (wr, _) in list {
        a.post(wr);
    }
    let sent = a.expect_sent(&all(0..7, S::SUCCESS));
    for (wc, (_, opcode)) in sent.iter().zip(list) {
        let said = (number(wc, STATUS), number(wc, OPCODE));
        assert_eq!(said, (0, opcode), "status and opcode of request {}", wc.wr_id());
    }
    let received = b.expect_received(&all(0..3, S::SUCCESS));
    let numbers = received.iter().map(|wc| (number(wc, OPCODE), number(wc, FLAGS) & 0xa));
    let wanted = [(128, 0), (128, 2), (129, 2)];
    assert_eq!(numbers.collect::<Vec<_>>(), wanted, "opcode, WITH_IMM and WITH_INV");
}

/// A request that the responder refuses, and one after it, which is flushed.
fn fail<D: Device>() -> Vec<Wc> {
    let (mut a, b) = pair::<D>();
    let nowhere = RemoteAddr { rkey: 0, ..b.remote(0) };
    let list = [1, 2].map(|id| SendWr::write_inline(id, b"x", nowhere));
    a.post_all(&list);
    a.expect_sent(&[(1, S::REM_ACCESS_ERR), (2, S::WR_FLUSH_ERR)])
}

fn c02_failures_have_the_numbers_of_the_header<D: Device>() {
    let statuses: Vec<_> = fail::<D>().iter().map(|wc| number(wc, STATUS)).collect();
    assert_eq!(statuses, [10, 5], "remote access, flushed");
}

fn c12_statuses_print_as_libibverbs_has_them<D: Device>() {
    let (mut a, b) = pair::<D>();
    complete(&mut a, &b, 0..1);
    let done = a.expect_sent(&[(0, S::SUCCESS)])[0];
    let texts: Vec<_> =
        [done].iter().chain(&fail::<D>()).map(|wc| wc.status().to_string()).collect();
    assert_eq!(texts, ["success", "remote access error", "Work Request Flushed Error"]);
}

/// A transport that overwrites fields with numbers that cq-core does not know.
struct Foreign<T> {
    transport: T,
    status: u32,
}

const OPCODE_OF_ITS_OWN: u32 = 0x7654_3210;
const FLAG_OF_ITS_OWN: u32 = 1 << 30;

impl<T: PollWc> PollCq for Foreign<T> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let count = self.transport.poll_into(out)?;
        for wc in &mut out[..count] {
            let mut bytes = wc.to_bytes();
            let numbers = [
                (STATUS, self.status),
                (OPCODE, OPCODE_OF_ITS_OWN),
                (FLAGS, number(wc, FLAGS) | FLAG_OF_ITS_OWN),
            ];
            for (at, number) in numbers {
                bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
            }
            *wc = Wc::from_bytes(bytes);
        }
        Ok(count)
    }
}

fn c03_numbers_that_nobody_knows_come_through_as_they_are<D: Device>() {
    let (mut a, mut b) = pair::<D>();
    b.recv(1, 0, 8);
    b.recv(2, 0, 8);
    a.send(3);
    a.send(4);
    a.expect_sent(&all(3..5, S::SUCCESS));
    let End { received, device, .. } = b;
    let mut cq = CompletionQueue::new(Foreign { transport: received, status: 0 });
    let mut one = || {
        let (mut buffer, mut got) = ([Wc::default()], 0);
        wait_until(&device, "a receive completes", || {
            got = cq.poll(&mut buffer).expect("the queue works").len();
            got > 0
        });
        cq.get_mut().status = 999;
        buffer[0]
    };
    let (good, bad) = (one(), one());
    let done = good.result().expect("SUCCESS is SUCCESS, whatever else is told");
    assert_eq!(done.opcode(), WcOpcode(OPCODE_OF_ITS_OWN));
    assert_eq!(done.opcode().to_string(), "unknown");
    assert!(!done.is_recv(), "what is not known is no receive");
    assert!(done.flags().bits() & FLAG_OF_ITS_OWN != 0, "{:?}", done.flags());
    let failed = bad.result().expect_err("what is not SUCCESS is a failure");
    assert_eq!((failed.wr_id(), failed.status()), (2, S(999)));
    assert!(failed.status() != S::SUCCESS && S(999) > S::TM_RNDV_INCOMPLETE, "it compares");
    assert!(failed.to_string().contains("failed: unknown (status 999"), "{failed}");
}
