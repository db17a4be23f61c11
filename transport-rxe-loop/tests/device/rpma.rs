//! librpma's calls on the device: which queue of a connection has which completions (R2, R3).

use std::time::Instant;

use cq_verbs::rpma::{Conn, Cq, RpmaError};

use crate::common::*;

type Opcodes = Vec<WcOpcode>;

/// Waits for completions, and returns the opcodes of all that there are.
fn opcodes(cq: &mut Cq<transport_rxe_loop::Cq, CompletionChannel>, count: usize) -> Opcodes {
    let (mut found, mut wc) = (Vec::new(), [Wc::default(); 3]);
    while found.len() < count {
        cq.wait(Some(Instant::now() + DEADLINE)).unwrap();
        found.extend(polled(cq, &mut wc));
    }
    found
}

fn polled(cq: &mut Cq<transport_rxe_loop::Cq, CompletionChannel>, wc: &mut [Wc]) -> Opcodes {
    let mut found = Vec::new();
    loop {
        match cq.get_wc(wc) {
            Ok(got) => found.extend(got.iter().map(|wc| wc.result().unwrap().opcode())),
            Err(RpmaError::NoCompletion) => return found,
            Err(error) => panic!("{error}"),
        }
    }
}

/// A queue pair that is its own peer, and has received a message and a WRITE with immediate data.
fn exchange(context: &Context, conn: &Conn<Context>) -> (QueuePair, OwnedRegion) {
    let pd = context.alloc_pd().unwrap();
    let region = pd.allocate(64, ALL).unwrap();
    let mut qp = to_itself(conn.qp(&pd));
    for wr_id in 0..2 {
        qp.post_recv(&[RecvWr::new(wr_id, &[region.sge(..64).unwrap()])]).unwrap();
    }
    let write = SendWr::write_inline(3, b"bytes", region.remote(0).unwrap()).with_imm([1; 4]);
    qp.post_send(&[SendWr::send_inline(2, b"hello"), write]).unwrap();
    (qp, region)
}

const RECEIVES: [WcOpcode; 2] = [WcOpcode::RECV, WcOpcode::RECV_RDMA_WITH_IMM];
const SENDS: [WcOpcode; 2] = [WcOpcode::SEND, WcOpcode::RDMA_WRITE];

#[test]
fn r03_the_main_queue_has_no_receives_if_there_is_a_receive_queue() {
    let context = open();
    let mut conn = Conn::new(&context, 16, 16, None).unwrap();
    let _made = exchange(&context, &conn);
    assert_eq!(opcodes(conn.get_rcq().unwrap(), 2), RECEIVES);
    assert_eq!(opcodes(conn.get_cq(), 2), SENDS);
}

#[test]
fn r03_without_a_receive_queue_the_main_one_has_all() {
    let context = open();
    let mut conn = Conn::new(&context, 16, 0, None).unwrap();
    assert!(conn.get_rcq().is_none());
    let _made = exchange(&context, &conn);
    let all = opcodes(conn.get_cq(), 4);
    for opcode in [RECEIVES, SENDS].concat() {
        assert_eq!(all.iter().filter(|of| **of == opcode).count(), 1, "{opcode}");
    }
}

#[test]
fn r02_events_of_a_shared_channel_are_the_program_s() {
    let context = open();
    let mut channel = context.create_channel().unwrap();
    let mut conn = Conn::new(&context, 16, 16, Some(&channel)).unwrap();
    let _made = exchange(&context, &conn);
    let mut found = [vec![], vec![]];
    wait_for(|| {
        assert_eq!(conn.get_cq().wait(None), Err(RpmaError::SharedChannel));
        if let Some(key) = channel.take_event().unwrap() {
            let is_rcq = conn.get_cq().took_event(key).is_err();
            if is_rcq {
                conn.get_rcq().unwrap().took_event(key).unwrap();
            }
            let cq = if is_rcq { conn.get_rcq().unwrap() } else { conn.get_cq() };
            found[usize::from(is_rcq)].extend(polled(cq, &mut [Wc::default(); 3]));
        }
        found == [SENDS, RECEIVES]
    });
}
