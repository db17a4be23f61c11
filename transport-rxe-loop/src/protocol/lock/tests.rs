use super::*;

#[test]
fn an_owner_is_its_attachment_and_its_generation() {
    for (place, generation) in [(0, 0), (0, 1), (7, 3), (u16::MAX - 1, u16::MAX)] {
        let owner = AttachmentKey::new(place, generation);
        assert_eq!(owner.attachment().get(), place);
        assert_eq!(AttachmentKey::from_word(owner.to_word()), Some(owner));
        assert_ne!(owner, AttachmentKey::new(place, generation.wrapping_add(1)));
    }
    assert_eq!(AttachmentKey::from_word(0), None);
}

#[test]
fn one_process_inherits_the_lock() {
    let (lock, dead) = (Lock::default(), AttachmentKey::new(0, 1));
    let heirs = [AttachmentKey::new(1, 1), AttachmentKey::new(2, 1)];
    assert!(lock.try_enter(dead));
    assert_eq!(heirs.map(|heir| lock.inherit(dead, heir)), [true, false]);
    assert_eq!(lock.holder(), Some(heirs[0]));
    assert!(!lock.inherit(AttachmentKey::new(1, 0), heirs[1]), "the next of it is another owner");
    lock.leave();
    assert!(!lock.inherit(dead, heirs[1]), "nobody holds it");
    assert!(lock.try_enter(heirs[1]));
}
