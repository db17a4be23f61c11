//! Requests that are refused (Q4).

use cq_core::testing::fault::{FaultInjector, Faults, When};

use super::*;

const FULL: Refused = Refused::QueueFull;

fn sends<const N: usize>(first: u64) -> [SendWr<'static>; N] {
    std::array::from_fn(|nth| SendWr::send(first + nth as u64, &[]))
}

#[test]
fn q04_what_stands_before_the_refused_one_is_posted() {
    let script = Script::new(KEY);
    let mut qp = injector(&script, &faults().refuse_send(When::nth(3), FULL));
    let list = sends::<4>(1);
    assert_eq!(qp.post_send(&list), Err(PostError { posted: 2, why: FULL }));
    assert_eq!(script.calls(), [list[0].into(), list[1].into()]);
    assert_eq!(qp.post_send(&list[2..]), Ok(()), "the fourth and fifth that are handed over");
    assert_eq!(qp.injected().to_string(), "seed 1, 1 refused");
}

#[test]
fn q04_the_first_may_be_refused() {
    let script = Script::new(KEY);
    let mut qp = injector(&script, &faults().refuse_recv(When::always(), FULL));
    let receive = RecvWr::new(1, &[]);
    assert_eq!(qp.post_recv(&[receive]), Err(PostError { posted: 0, why: FULL }));
    assert_eq!(script.calls(), []);
    assert_eq!(qp.post_send(&sends::<2>(1)), Ok(()), "the other queue's");
}

/// Keeps how long the lists were that were posted.
#[derive(Default)]
struct Lengths(Vec<usize>);

impl Post for Lengths {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.0.push(list.len());
        Ok(())
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.0.push(list.len());
        Ok(())
    }
}

#[test]
fn q04_of_a_list_the_device_gets_what_stands_before_the_refused_one_if_anything() {
    for refused in 1..=4 {
        let plan = faults().refuse_send(When::nth(refused), FULL);
        let mut qp = FaultInjector::<_, 0>::new(Lengths::default(), &plan);
        let posted = refused as usize - 1;
        assert_eq!(qp.post_send(&sends::<4>(1)), Err(PostError { posted, why: FULL }));
        let given: &[usize] = if posted == 0 { &[] } else { &[posted] };
        assert_eq!(qp.transport().0, given);
        let receives = [RecvWr::new(1, &[]); 3];
        assert_eq!(qp.post_recv(&receives), Ok(()), "the other queue's");
        assert_eq!(qp.transport().0.last(), Some(&3));
    }
}

#[test]
fn q04_what_the_device_refuses_is_no_occasion() {
    const INJECTED: Refused = Refused::WrongState;
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
    const INJECTED: Refused = Refused::WrongState;
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
