use super::*;

#[test]
fn a_number_is_nobody_elses_while_it_is_used_and_left_alone_for_as_long_as_can_be() {
    let domains = Domains::new(4);
    let taken = [(); 5].map(|()| domains.take());
    assert_eq!(taken, [Some(0), Some(1), Some(2), Some(3), None]);
    domains.give_back(2);
    domains.give_back(1);
    assert_eq!([(); 3].map(|()| domains.take()), [Some(1), Some(2), None]);
    domains.give_back(3);
    domains.give_back(0);
    assert_eq!(domains.take(), Some(3), "the one that comes next");
    domains.give_back(3);
    assert_eq!(domains.take(), Some(0), "and not the one that was used last");
}
