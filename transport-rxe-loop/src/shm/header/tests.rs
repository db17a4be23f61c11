use super::*;

const FORMAT: Format = Format { layout: layout(&[1, 2, 3]), tables: |_| 8192 };

#[test]
fn what_is_written_is_read_and_nothing_else_is_believed() {
    let limits = Limits::default();
    let good = numbers(&limits, &FORMAT);
    assert_eq!(judge(&good, limits.bytes, &FORMAT), Ok(limits));
    assert_eq!(judge(&good, limits.bytes - 4096, &FORMAT), Err(NotOurs::Damaged));
    assert_eq!(judge(&good, limits.bytes + 4096, &FORMAT), Err(NotOurs::Damaged));
    for at in 0..WORDS {
        for value in [0, good[at] ^ 1, good[at] + 1, good[at] | 1 << 32, u64::MAX] {
            let mut words = good;
            words[at] = value;
            let expected = match at {
                0 => NotOurs::Magic,
                1 => NotOurs::Version { found: value },
                2 => NotOurs::Layout,
                8 if (1..=254).contains(&value) => continue,
                _ => NotOurs::Damaged,
            };
            assert_eq!(judge(&words, limits.bytes, &FORMAT), Err(expected), "{at} {value}");
        }
    }
    assert_eq!(judge(&[0; WORDS], 0, &FORMAT), Err(NotOurs::Magic));
}

#[test]
fn x02_builds_whose_tables_differ_refuse_each_other() {
    let other = Format { layout: layout(&[1, 3, 2]), ..FORMAT };
    let words = numbers(&Limits::default(), &FORMAT);
    assert_eq!(judge(&words, Limits::default().bytes, &other), Err(NotOurs::Layout));
    let larger = Format { tables: |_| 64 << 20, ..FORMAT };
    assert_eq!(judge(&words, Limits::default().bytes, &larger), Err(NotOurs::Damaged));
}
