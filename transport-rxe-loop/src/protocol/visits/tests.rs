use super::*;

/// Two numbers with different counts.
fn apart(visits: &Visits) -> [usize; 2] {
    let of = |number| std::ptr::from_ref(visits.enter(number).0);
    [0, (1..).find(|&number| of(number) != of(0)).unwrap()]
}

#[test]
fn who_comes_later_keeps_nothing_that_is_free_but_for_those_who_came_before() {
    let (visits, mut retired) = (Visits::new(), Retired::new());
    let [one, other] = apart(&visits);
    let mut freed = Vec::new();
    let first = visits.enter(one);
    retired.add(1);
    assert!(retired.free(&visits, |thing| freed.push(thing)));
    let _second = visits.enter(other);
    retired.add(2);
    drop(first);
    assert!(retired.free(&visits, |thing| freed.push(thing)), "the second may have found it");
    assert_eq!(freed, [1], "each count has been 0 once");
    drop(_second);
    assert!(!retired.free(&visits, |thing| freed.push(thing)));
    assert_eq!(freed, [1, 2]);
    assert!(!retired.free(&visits, |thing| freed.push(thing)), "each is handed over once");
}

#[test]
fn any_number_visits() {
    let visits = Visits::new();
    let all = [0, 1, usize::MAX, 1 << 63].map(|number| visits.enter(number));
    assert_ne!(visits.inside(), 0);
    drop(all);
    assert_eq!(visits.inside(), 0);
}
