use super::*;

const REMOTE: RemoteAddr = RemoteAddr { addr: 0x0123_4567_89ab_cdef, rkey: 0xfedc_ba98 };

/// One of each operation, with numbers of which every byte is another.
fn all() -> Vec<SendOp> {
    let (imm, placement) = (Some([1, 2, 3, 4]), Placement::PERSISTENT);
    let flush =
        |selectivity| SendOp::Flush { remote: REMOTE, length: 0x1020_3040, placement, selectivity };
    vec![
        SendOp::Send { imm: None },
        SendOp::Send { imm },
        SendOp::SendInvalidate { rkey: 0x1234_5678 },
        SendOp::Write { remote: REMOTE, imm: None },
        SendOp::Write { remote: REMOTE, imm },
        SendOp::Read { remote: REMOTE },
        SendOp::CompareSwap { remote: REMOTE, compare: u64::MAX - 1, swap: 1 << 63 },
        SendOp::FetchAdd { remote: REMOTE, add: 0xaabb_ccdd_eeff_0011 },
        SendOp::AtomicWrite { remote: REMOTE },
        flush(Selectivity::Range),
        flush(Selectivity::Region),
        SendOp::BindWindow(WindowBind {
            window: 0x1111_2222,
            rkey: 0x3333_4444,
            lkey: 0x5555_6666,
            addr: 0x7777_8888_9999_aaaa,
            length: 0xbbbb_cccc_dddd_eeee,
            access: Access::REMOTE | Access::FLUSH_GLOBAL,
        }),
        SendOp::LocalInvalidate { rkey: 0x9abc_def0 },
    ]
}

#[test]
fn q06_every_operation_comes_back_as_it_was_posted() {
    for op in all() {
        assert_eq!(SendOp::from(WireOp::of(&op).unwrap()), op);
    }
}

#[test]
fn x04_any_words_are_an_operation() {
    for code in 0..=u8::MAX {
        for operands in [None, Some([0; OPERANDS]), Some([u64::MAX; OPERANDS])] {
            let (addr, low, high) = (u64::MAX, u32::MAX, u32::MAX);
            let op = SendOp::from(WireOp { code, addr, low, high, operands });
            assert!(WireOp::of(&op).is_some());
        }
    }
}
