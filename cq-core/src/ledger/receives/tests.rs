use super::*;
use crate::wc::WcStatus;

fn post<const N: usize>(receives: &mut Receives<u32, N>, token: u32) -> Wc {
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
    let mut receives = Receives::<u32, N>::new(Generation::new(1));
    let first = post(&mut receives, 0);
    assert!(receives.retire(&first).is_some());
    receives.turns[0] = uses.wrapping_mul(2).wrapping_sub(2);
    for token in [1, 2] {
        let wc = post(&mut receives, token);
        assert_eq!(wc.wr_id() == first.wr_id(), token == 2, "token {token}");
        assert_eq!(receives.retire(&first).is_some(), token == 2);
        assert_eq!(receives.retire(&wc).is_some(), token == 1);
    }
}

#[test]
fn numbers_of_receives_repeat_after_2_to_the_31() {
    repeats_after::<1>(1 << 31);
    repeats_after::<2>(1 << 30);
    repeats_after::<128>(1 << 24);
    // Not a power of two.
    repeats_after::<100>(1 << 24);
}
