use super::*;

fn parsed(name: &str) -> Result<FabricName, NameError> {
    name.parse()
}

#[test]
fn x07_names_that_no_file_should_have_are_refused_with_a_reason() {
    assert_eq!(parsed(""), Err(NameError::Empty));
    assert_eq!(parsed(&"a".repeat(65)), Err(NameError::TooLong { bytes: 65 }));
    assert_eq!(parsed(".."), Err(NameError::Dot { name: "..".into() }));
    assert_eq!(parsed(".hidden"), Err(NameError::Dot { name: ".hidden".into() }));
    for (name, found) in [("a/b", '/'), ("a\0b", '\0'), ("ä", 'ä'), ("a b", ' '), ("a\n", '\n')] {
        assert_eq!(parsed(name), Err(NameError::Character { name: name.into(), found }));
    }
    assert!(matches!(parsed("a/../b"), Err(NameError::Character { found: '/', .. })));
    for name in ["a.fifo.0", "a.mem.1.2", "a.fifo.", "a.mem.b", "a.cm.1"] {
        assert!(matches!(parsed(name), Err(NameError::Reserved { .. })), "{name}");
    }
}

#[test]
fn x07_a_name_that_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let name = OsString::from_vec(vec![b'a', 0xff]);
    assert_eq!(FabricName::try_from(name.clone()), Err(NameError::NotText { name }));
}

#[test]
fn other_names_are_taken_as_they_are() {
    for name in ["a", "default", "A-b_c.9", "-", "a..b", "mem.1", &"a".repeat(64)] {
        assert_eq!(parsed(name).unwrap().0, name);
    }
}

#[test]
fn what_lies_beside_a_fabric_is_told_from_other_fabrics() {
    let path = |name: &str| FabricPath::within(Path::new("/d"), &parsed(name).unwrap());
    let file_name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let (a, ab) = (path("a"), path("a.b"));
    for beside in [a.fifo(0), a.fifo(511), a.memory(4095, 7), a.listener(u32::MAX)] {
        assert!(a.is_beside(&file_name(beside.clone())), "{beside:?}");
        assert!(!ab.is_beside(&file_name(beside)));
    }
    for other in [a.file(), ab.file(), ab.fifo(1), a.fifo(1).with_extension("")] {
        assert!(!a.is_beside(&file_name(other.clone())), "{other:?}");
    }
    for suffix in
        [".fifo.x", ".fifo.1.2", ".mem.1", ".mem.1.2.3", ".mem.1.", ".fifo.1 ", ".cm.", ".cm.1.2"]
    {
        assert!(!a.is_beside(&format!("{}{suffix}", file_name(a.file()))), "{suffix}");
    }
    assert_eq!(a.other(&file_name(ab.file())), Some(ab));
    for none in
        [a.file(), a.fifo(0), a.memory(0, 0), PathBuf::from("/d/rxe-loop.7.b"), "/d/b".into()]
    {
        assert_eq!(a.other(&file_name(none.clone())), None, "{none:?}");
    }
}
