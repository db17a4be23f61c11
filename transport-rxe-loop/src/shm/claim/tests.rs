use super::*;

fn taken(at: u32, word: &AtomicU32) -> Option<u32> {
    let next = next(at, word);
    take(word, next).then_some(next)
}

#[test]
fn each_claim_of_an_index_is_another_owner() {
    let word = AtomicU32::new(0);
    let first = taken(6, &word).unwrap();
    assert_eq!((index(first), last(6, &word)), (Some(6), first));
    assert_eq!(taken(6, &word), None);
    leave(&word);
    assert_eq!((is_leaving(&word), taken(6, &word), last(6, &word)), (true, None, first));
    free(&word, first);
    assert!(is_free(&word));
    let second = taken(6, &word).unwrap();
    assert_eq!((first != second, index(second)), (true, Some(6)));
    free(&word, first);
    assert!(!is_free(&word), "it is another's by now");
}

#[test]
fn x04_the_holder_of_the_lock_claims_an_index_unless_the_word_is_corrupted_meanwhile() {
    let word = AtomicU32::new(0);
    let attempt = |lock: &dyn Fn() -> Result<bool, u8>| attempt(6, &word, |_| lock());
    assert_eq!(attempt(&|| Ok(false)), Ok(None), "another one has the lock");
    assert_eq!(attempt(&|| Err(1)), Err(1));
    assert!(is_free(&word));
    let scribbled = || {
        sync::store(&word, 7);
        Ok(true)
    };
    assert_eq!((attempt(&scribbled), sync::load(&word)), (Ok(None), 7));
    assert_eq!(attempt(&|| panic!("it is not free")), Ok(None));
    sync::store(&word, 0);
    let owner = attempt(&|| Ok(true)).unwrap();
    assert_eq!((owner, is_free(&word)), (Some(last(6, &word)), false));
}

#[test]
fn any_number_is_a_state_and_an_owner() {
    for number in [3, 0xffff, 0x8000_0001, u32::MAX] {
        let word = AtomicU32::new(number);
        assert_eq!((is_free(&word), is_leaving(&word), taken(0, &word)), (false, false, None));
    }
    let full = AtomicU32::new(u32::MAX << 16);
    assert_eq!(taken(0, &full), Some(1), "generations begin anew");
    assert_eq!((index(0), index(7 << 16), index(u32::MAX)), (None, None, Some(0xfffe)));
}
