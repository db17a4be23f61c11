use cq_core::wc::WcStatus;

use super::*;

fn post<const N: usize>(receives: &mut Receives<u32, Array<N>>, token: u32) -> Wc {
    let mut wr_id = 0;
    let post = |list: &[RecvWr<'_>]| {
        wr_id = list[0].wr_id;
        Ok(())
    };
    receives.post_by(&[], token, post).unwrap();
    Wc::new(wr_id, WcStatus::SUCCESS, 7)
}

/// Each slot is used 2³¹ times, or as often as the bits beside the index allow, before its numbers repeat.
fn repeats_after<const N: usize>(uses: u32) {
    let mut receives = Receives::<u32, Array<N>>::fixed(Generation::new(1));
    let first = post(&mut receives, 0);
    assert!(receives.retire(&first).is_some());
    receives.slots[0].turn = uses.wrapping_mul(2).wrapping_sub(2);
    for round in [1, 2] {
        // The other slots come first.
        for token in 1..N as u32 {
            let wc = post(&mut receives, token);
            assert!(receives.retire(&first).is_none() && receives.retire(&wc).is_some());
        }
        let wc = post(&mut receives, 0);
        assert_eq!(wc.wr_id() == first.wr_id(), round == 2, "round {round}");
        assert_eq!(receives.retire(&first).is_some(), round == 2);
        assert_eq!(receives.retire(&wc).is_some(), round == 1);
    }
}

#[test]
fn numbers_of_receives_repeat_after_2_to_the_31() {
    repeats_after::<1>(1 << 31);
    repeats_after::<2>(1 << 30);
    repeats_after::<128>(1 << 24);
    repeats_after::<1024>(1 << 21);
    // Not a power of two.
    repeats_after::<100>(1 << 24);
}
