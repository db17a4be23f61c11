use super::*;

#[test]
fn each_is_taken_once_and_those_of_others_are_left() {
    let words = [const { AtomicU64::new(0) }; 2];
    let requests = RequestBits::new(&words);
    [0, 63, 64, 127, 128, 63].into_iter().for_each(|index| requests.leave(index));
    let taken = |mine: fn(u32) -> bool| {
        let mut all = Vec::new();
        requests.take(mine, |index| all.push(index));
        all
    };
    assert_eq!(taken(|index| index % 2 == 1), [63, 127]);
    assert_eq!(taken(|_| true), [0, 64]);
    assert_eq!(taken(|_| true), []);
}

#[test]
fn one_that_somebody_else_took_meanwhile_is_not_taken() {
    let words = [AtomicU64::new(0)];
    let requests = RequestBits::new(&words);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    [3, 5].into_iter().for_each(|index| requests.leave(index));
    requests.take(
        |_| true,
        |index| {
            first.push(index);
            requests.take(|_| true, |index| second.push(index));
        },
    );
    assert_eq!((first, second), (vec![3], vec![5]));
}
