use super::*;
use crate::inside::prelude::*;

#[test]
fn who_comes_later_keeps_nothing_that_is_free_but_for_those_who_came_before() {
    let (markers, mut retired) = ([(); 2].map(|()| InFlight::default()), Retired::default());
    let mut freed = Vec::new();
    markers[0].open();
    retired.add(1);
    assert!(retired.free(&markers, |value| freed.push(value)));
    markers[1].open();
    retired.add(2);
    markers[0].close();
    assert!(retired.free(&markers, |value| freed.push(value)), "the second may have found it");
    assert_eq!(freed, [1], "the copy that was in flight is over");
    markers[0].open();
    markers[1].close();
    markers[1].open();
    assert!(!retired.free(&markers, |value| freed.push(value)), "these are other copies");
    assert_eq!(freed, [1, 2]);
    assert!(!retired.free(&markers, |value| freed.push(value)), "each is handed over once");
}
