use super::*;
use crate::inside::prelude::*;

#[test]
fn x07_who_finds_the_registry_taken_gives_up_at_its_deadline() {
    static TAKEN: Registry = Registry::new();
    let guard = TAKEN.lock(Instant::now()).unwrap();
    let is_free = || TAKEN.lock(Instant::now()).is_some();
    assert_eq!(before(|| drop(guard), is_free), Some(false));
    assert!(is_free());
}
