use std::sync::mpsc::channel;

use super::*;

#[test]
fn x07_who_finds_the_registry_taken_gives_up_at_its_deadline() {
    static TAKEN: Registry = Registry::new();
    let guard = TAKEN.lock(Instant::now()).unwrap();
    let (teller, told) = channel();
    thread::scope(|scope| {
        scope.spawn(move || teller.send(TAKEN.lock(Instant::now()).is_some()));
        let told = told.recv_timeout(Duration::from_secs(10));
        drop(guard);
        assert_eq!(told, Ok(false));
    });
    assert!(TAKEN.lock(Instant::now()).is_some());
}
