use super::*;

const CAPACITY: u32 = 4;

fn at(start: u64) -> Retired {
    let retired = Retired::default();
    retired.words().into_iter().for_each(|word| sync::store(word, start));
    retired
}

#[test]
fn q05_the_furthest_word_counts_while_positions_wrap() {
    for start in [0, (1 << 31) - 2, (1 << 32) - 2, (1 << 63) - 2, u64::MAX - 1] {
        let (retired, at) = (at(start), |nth| Position::new(start).plus(nth));
        assert_eq!(retired.position(), at(0));
        retired.poll(tag::of_send(at(1)), CAPACITY);
        retired.drop(tag::of_send(at(3)), CAPACITY);
        retired.poll(tag::of_send(at(2)), CAPACITY);
        assert_eq!(retired.position(), at(3));
        retired.empty(at(6));
        retired.drop(tag::of_send(at(5)), CAPACITY);
        assert_eq!(retired.position(), at(6));
        retired.poll(tag::of_send(at(10)), CAPACITY);
        assert_eq!(retired.position(), at(10), "as many as the queue holds");
        retired.poll(tag::of_send(at(15)), CAPACITY);
        assert_eq!(retired.position(), at(10), "more than it holds");
    }
}
