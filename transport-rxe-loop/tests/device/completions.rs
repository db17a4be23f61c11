//! What completions have besides what C4 says, and those of a queue pair that is its own peer.

use crate::common::{End, S, pair};
use transport_rxe_loop::QpState;

#[test]
fn c04_undefined_fields_of_a_failure_are_poisoned() {
    let (mut a, mut b) = pair();
    b.recv(1, 0, 4);
    a.send(2, 0, 8);
    a.send(3, 0, 8);
    let failures = [
        a.expect(&[(2, S::REM_INV_REQ_ERR), (3, S::WR_FLUSH_ERR)]),
        b.expect(&[(1, S::LOC_LEN_ERR)]),
    ];
    for wc in failures.concat() {
        let bytes = wc.to_bytes();
        assert_eq!(bytes[12..16], [0xa5; 4], "opcode");
        assert_eq!(bytes[16..20], [0; 4], "vendor_err is defined");
        assert_eq!(bytes[20..28], [0xa5; 8], "byte_len and imm_data");
        assert_eq!(bytes[32..36], [0xa5; 4], "src_qp");
        assert_eq!(bytes[40..46], [0xa5; 6], "path");
        assert!(wc.result().is_err());
    }
}

#[test]
fn a_queue_pair_connected_to_itself_works() {
    let mut a = End::new();
    let number = a.qp.number();
    a.qp.connect_to(number).unwrap();
    a.region.write(0, b"to myself").unwrap();
    a.recv(1, 100, 64);
    a.send(2, 0, 9);
    a.expect(&[(1, S::SUCCESS), (2, S::SUCCESS)]);
    assert_eq!(a.bytes(100, 9), b"to myself");

    a.recv(3, 0, 4);
    a.recv(4, 0, 4);
    a.send(5, 0, 9);
    a.expect(&[(3, S::LOC_LEN_ERR), (5, S::REM_INV_REQ_ERR), (4, S::WR_FLUSH_ERR)]);
    assert_eq!(a.qp.state().unwrap(), QpState::ERR);
}
