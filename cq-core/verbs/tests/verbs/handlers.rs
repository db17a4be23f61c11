//! Completions by queue pair: in order, to the right handler, to none (C4, C10, Q9).

use std::collections::{BTreeMap, HashMap};

use cq_verbs::handlers::{Handlers, Then};
use heapless::LinearMap;
use heapless::index_map::FnvIndexMap;

use super::*;

fn wc(wr_id: u64, qp_num: u32) -> Wc {
    Wc::new(wr_id, WcStatus::SUCCESS, qp_num)
}

/// What a handler of each of the queue pairs 1 to 3 gets of a batch, with the number of runs; 2 goes at request 13.
fn check<M: Handlers<Handler = (Vec<u64>, usize)>>(mut map: M, name: &str) {
    let batch: Vec<_> = [(1, 10), (1, 11), (2, 12), (3, 20), (2, 13), (2, 14), (9, 1), (2, 15)]
        .map(|(qp_num, wr_id)| wc(wr_id, qp_num))
        .into();
    let mut strays = Vec::new();
    for _ in 0..2 {
        map.dispatch(&batch, |handler, run| {
            assert!(run.iter().all(|wc| wc.qp_num() == run[0].qp_num()) && !run.is_empty());
            let ids = run.iter().map(Wc::wr_id);
            let Some((seen, runs)) = handler else {
                strays.extend(run.iter().map(|wc| (wc.qp_num(), wc.wr_id())));
                return Then::Remove; // of nothing
            };
            seen.extend(ids);
            *runs += 1;
            if seen.contains(&13) { Then::Remove } else { Then::Keep }
        });
    }
    let [one, two, three] = [1, 2, 3].map(|qp_num| map.remove_handler(qp_num));
    assert_eq!(one, Some((vec![10, 11, 10, 11], 2)), "{name}");
    assert_eq!(three, Some((vec![20, 20], 2)), "{name}");
    assert_eq!(two, None, "{name}");
    let later = [(2, 12), (2, 13), (2, 14), (9, 1), (2, 15)];
    assert_eq!(strays, [&[(9, 1), (2, 15)], &later[..]].concat(), "{name}");
    assert!(map.handler(1).is_none(), "{name}");
}

#[test]
fn an_error_ends_dispatching() {
    let mut table = std::collections::BTreeMap::from([(1, 'a'), (2, 'b')]);
    let batch = [1, 2, 1].map(|qp_num| Wc::new(0, WcStatus::SUCCESS, qp_num));
    let mut seen = Vec::new();
    let result = table.try_dispatch(&batch, |handler, run| {
        seen.push((handler.copied(), run.len()));
        if seen.len() == 2 { Err("over") } else { Ok(Then::Remove) }
    });
    assert_eq!((result, seen), (Err("over"), vec![(Some('a'), 1), (Some('b'), 1)]));
    assert_eq!(table.into_keys().collect::<Vec<_>>(), [2], "the first was removed before");
}

#[test]
fn c10_each_handler_gets_its_completions_in_order_until_it_goes() {
    let handlers = || (1..=3).map(|qp_num| (qp_num, (Vec::new(), 0)));
    check(handlers().collect::<BTreeMap<_, _>>(), "BTreeMap");
    check(handlers().collect::<HashMap<_, _>>(), "HashMap");
    check(handlers().collect::<LinearMap<_, _, 3>>(), "LinearMap");
    check(handlers().collect::<FnvIndexMap<_, _, 4>>(), "IndexMap");
}

#[test]
fn c04_a_failed_completion_goes_to_its_handler() {
    let mut handlers = BTreeMap::from([(1, 0), (2, 0)]);
    handlers.dispatch(&[], |_, _| unreachable!("nothing completed"));
    handlers.dispatch(&[failed(1), failed(2)], |handler, run| {
        *handler.unwrap() += run.iter().filter(|wc| wc.result().is_err()).count();
        Then::Keep
    });
    assert_eq!(handlers, BTreeMap::from([(1, 2), (2, 0)]));
}
