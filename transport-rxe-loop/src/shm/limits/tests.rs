use super::*;

/// As tables may be: some bytes for each entry.
fn tables(limits: &Limits) -> usize {
    1024 * limits.queue_pairs as usize + 256 * limits.completion_queues as usize
}

#[test]
fn tables_are_powers_of_two_and_files_whole_pages() {
    assert_eq!(Limits::default().in_force(tables), Ok(Limits::default()));
    let asked =
        Limits { queue_pairs: 10_000, channels: 3, bytes: (64 << 20) + 1, ..Limits::default() };
    let limits = asked.in_force(tables).unwrap();
    assert_eq!((limits.queue_pairs, limits.channels), (16_384, 4));
    assert_eq!(limits.bytes, (64 << 20) + 4096);
    assert_eq!(limits.in_force(tables), Ok(limits), "what is in force stays so");
}

#[test]
fn too_little_and_too_much_are_refused_by_name() {
    let base = Limits::default();
    let refused = |limits: Limits| limits.in_force(tables).unwrap_err();
    for asked in [0, MAX_ENTRIES + 1, u32::MAX] {
        for (what, limits) in [
            ("queue pairs", Limits { queue_pairs: asked, ..base }),
            ("completion queues", Limits { completion_queues: asked, ..base }),
            ("memory regions", Limits { memory_regions: asked, ..base }),
            ("shared receive queues", Limits { shared_receive_queues: asked, ..base }),
            ("channels", Limits { channels: asked, ..base }),
        ] {
            let max = MAX_ENTRIES;
            assert_eq!(refused(limits), LimitsError::OutOfRange { what, asked, max });
        }
    }
    for asked in [0, 255, u32::MAX] {
        let error = refused(Limits { processes: asked, ..base });
        assert_eq!(error, LimitsError::OutOfRange { what: "processes", asked, max: 254 });
    }
    let min = 4096 + tables(&base) as u64 + 4096;
    for asked in [0, min - 1, MAX_BYTES + 1, u64::MAX] {
        assert_eq!(refused(Limits { bytes: asked, ..base }), LimitsError::Bytes { asked, min });
    }
    assert!(Limits { bytes: min, ..base }.in_force(tables).is_ok());
}
