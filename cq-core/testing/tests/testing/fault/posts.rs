//! Requests that are refused (Q4).

use cq_testing::fault::{FaultInjector, Faults, When};

use super::*;

const FULL: WrError = WrError::QueueFull;

fn sends<const N: usize>(first: u64) -> [SendWr<'static>; N] {
    std::array::from_fn(|nth| SendWr::send(first + nth as u64, &[]))
}

/// Keeps the numbers of each list that was posted.
#[derive(Default)]
struct Lists(Vec<Vec<u64>>);

impl Post for Lists {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.0.push(list.iter().map(|wr| wr.wr_id).collect());
        Ok(())
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.0.push(list.iter().map(|wr| wr.wr_id).collect());
        Ok(())
    }

    /// It keeps no buffer.
    fn quiesce(&mut self) -> bool {
        true
    }
}

#[test]
fn q04_of_a_list_the_device_gets_what_stands_before_the_refused_one_if_anything() {
    let (list, receives) = (sends::<4>(1), [1, 2, 3, 4].map(|wr_id| RecvWr::new(wr_id, &[])));
    for nth in 1..=4 {
        let posted = nth as usize - 1;
        let (mut expected, all) = (vec![vec![1, 2, 3, 4]; 2], vec![1, 2, 3, 4]);
        if posted > 0 {
            expected.insert(0, all[..posted].to_vec());
        }
        macro_rules! refuses {
            ($plan:ident, $post:ident, $list:ident, $other:ident, $others:ident) => {
                let plan = faults().$plan(When::nth(nth), FULL);
                let mut qp = FaultInjector::<_, 0>::new(Lists::default(), &plan);
                assert_eq!(qp.$post(&$list), Err(PostError { posted, why: FULL }));
                assert_eq!([qp.$other(&$others), qp.$post(&$list)], [Ok(()), Ok(())], "once");
                assert_eq!(qp.get_mut().0, expected);
                assert_eq!(qp.injected().to_string(), "seed 1, 1 refused");
            };
        }
        refuses!(refuse_send, post_send, list, post_recv, receives);
        refuses!(refuse_recv, post_recv, receives, post_send, list);
    }
}

#[test]
fn q04_what_the_device_refuses_is_no_occasion() {
    const INJECTED: WrError = WrError::WrongState;
    let script = Script::new(KEY).on_send(Ok(1)).on_send(Err(FULL));
    let mut qp = injector(&script, &faults().refuse_send(When::nth(3), INJECTED));
    let list = sends::<4>(1);
    assert_eq!(qp.post_send(&list), Err(PostError { posted: 1, why: FULL }));
    assert_eq!(qp.injected().refused, 0);
    let third = Err(PostError { posted: 1, why: INJECTED });
    assert_eq!(qp.post_send(&list[1..]), third, "the third that is handed over is refused still");
    assert_eq!(qp.post_send(&list[2..]), Ok(()));
}

#[test]
fn q04_the_same_requests_are_refused_whatever_the_device_refuses_besides() {
    const INJECTED: WrError = WrError::WrongState;
    let refused = |script: &Script<16>, seed| {
        let plan = Faults::seeded(seed).refuse_send(When::chance(0.3), INJECTED);
        let (mut qp, list) = (injector(script, &plan), sends::<8>(0));
        let (mut at, mut refused) = (0, Vec::new());
        while let Err(error) = qp.post_send(&list[at..]) {
            at += error.posted;
            if error.why == INJECTED {
                refused.push(list[at].wr_id);
                at += 1;
            }
        }
        refused
    };
    for seed in 0..50 {
        let full = || Script::new(KEY).on_send(Ok(1)).on_send(Err(FULL)).on_send(Err(FULL));
        let again = full().on_send(Ok(2)).on_send(Err(FULL));
        let expected = refused(&Script::new(KEY), seed);
        for script in [full(), again] {
            assert_eq!(refused(&script, seed), expected, "seed {seed}");
        }
    }
}
