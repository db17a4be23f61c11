use super::*;

const CLIENT: AttachmentId = AttachmentId::new(3);
const SERVER: AttachmentId = AttachmentId::new(4);
const OTHER: AttachmentId = AttachmentId::new(5);

fn asked(word: &Word) -> Seen {
    word.ask(word.claim(CLIENT, SERVER).unwrap()).unwrap()
}

#[test]
fn a_stage_is_one_askers_at_a_time() {
    let word = Word::default();
    let free = word.seen();
    let seen = word.claim(CLIENT, SERVER).unwrap();
    assert_eq!((seen.client(), seen.server()), (CLIENT, SERVER));
    assert!(word.claim(OTHER, SERVER).is_none());
    assert!(word.claim_from(free, OTHER, SERVER).is_none(), "it saw it free, and was too late");
    word.ask(seen).unwrap();
    assert!(word.serve(CLIENT).is_none(), "another one is asked");
    let serving = word.serve(SERVER).unwrap();
    assert!(word.serve(SERVER).is_none(), "once");
    assert!(word.claim(OTHER, SERVER).is_none());
    assert!(word.answer(serving));
    word.give_up(seen);
    assert!(word.claim(OTHER, SERVER).is_some());
}

#[test]
fn x05_a_request_comes_back_only_if_nobody_has_begun_it() {
    let word = Word::default();
    let first = asked(&word);
    let Recalled::Back(mine) = word.recall(first) else { panic!("nobody has begun it") };
    assert!(word.serve(SERVER).is_none(), "nobody will");
    assert_eq!(word.recall(mine), Recalled::Back(mine));
    word.ask(mine).unwrap();
    let serving = word.serve(SERVER).unwrap();
    word.cancel(first);
    assert_eq!(word.recall(first), Recalled::Begun, "that is not cancelled");
    assert!(word.answer(serving));
    let Recalled::Answered(done) = word.recall(first) else { panic!("it was answered") };
    word.give_up(done);
    assert_eq!(word.recall(first), Recalled::Lost);
    let second = asked(&word);
    assert_eq!(word.recall(first), Recalled::Lost, "another round");
    word.serve(SERVER).unwrap();
    word.give_up(second);
    assert_eq!(word.recall(second), Recalled::Lost, "it was given up");
}

#[test]
fn stages_of_a_dead_process_are_recovered() {
    let word = Word::default();
    let serve = |_| word.serve(SERVER).map(|serving| word.answer(serving));
    for is_answered in [false, true] {
        let request = asked(&word);
        is_answered.then(|| serve(request));
        assert_eq!(word.recover(SERVER), None);
        assert!(
            word.claim(OTHER, AttachmentId::new(6)).is_none(),
            "its client lives, and gives up itself"
        );
        assert_eq!(word.recover(CLIENT), None, "it is not in flight");
        assert_eq!(word.seen().state(), None);
    }
    word.claim(CLIENT, SERVER).unwrap();
    word.recover(CLIENT);
    assert_eq!(word.seen().state(), None, "it had not asked");
    let request = asked(&word);
    word.serve(SERVER).unwrap();
    assert_eq!(word.recover(CLIENT), Some(SERVER), "it is in flight there");
    assert_eq!(word.seen().state(), Some(State::Orphaned));
    assert_eq!(word.recover(OTHER), None);
    assert_eq!(word.seen().state(), Some(State::Orphaned), "it is another one that died");
    word.recover(SERVER);
    assert_eq!(word.seen().state(), None);
    let next = word.claim(CLIENT, SERVER).unwrap();
    word.give_up(request);
    assert_eq!(word.seen(), next, "another round");
}

#[test]
fn x03_a_stage_that_is_abandoned_is_freed_in_its_own_round_alone() {
    let word = Word::default();
    let first = asked(&word);
    word.serve(SERVER).unwrap();
    word.free_abandoned(first);
    assert!(word.claim(OTHER, SERVER).is_none(), "it is not orphaned");
    word.give_up(first);
    word.free_abandoned(first);
    let second = asked(&word);
    word.serve(SERVER).unwrap();
    word.give_up(second);
    word.free_abandoned(first);
    assert!(word.claim(OTHER, SERVER).is_none(), "who is asked now serves");
    word.free_abandoned(second);
    assert!(word.claim(OTHER, SERVER).is_some());
}

#[test]
fn x04_any_word_is_a_state_or_a_free_stage() {
    for number in [0, 6, 255] {
        let word = Word(AtomicU64::new(u64::MAX << 8 | number));
        assert!(word.claim(AttachmentId::new(1), AttachmentId::new(2)).is_some());
    }
}

#[test]
fn each_asker_is_reported_once() {
    let clients = Clients::default();
    assert!(!clients.any());
    let some = [0, 63, 64, 253];
    some.into_iter().for_each(|client| clients.add(AttachmentId::new(client)));
    clients.add(AttachmentId::new(63));
    assert!(clients.any());
    assert!(clients.look().eq(some.map(AttachmentId::new)));
    assert!(clients.take().eq(some.map(AttachmentId::new)));
    assert!(!clients.any());
    assert_eq!(clients.take().count() + clients.look().count(), 0);
    clients.add(AttachmentId::new(u16::MAX));
    assert_eq!(clients.take().count(), 1, "any number is harmless");
}
