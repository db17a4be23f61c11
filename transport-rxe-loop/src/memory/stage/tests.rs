use super::*;
use crate::shm::mapping::Mapping;
use crate::shm::plan::HEADER;

const PROCESSES: usize = 3;

fn stages() -> Stages<'static> {
    let bytes = PROCESSES * OWN * (size_of::<Head>() + SMALL_BYTES)
        + LARGE * (size_of::<Head>() + LARGE_BYTES);
    let memory = Box::leak(Box::new(Mapping::new(HEADER + bytes).unwrap()));
    Stages::place(&mut Plan::of(memory), PROCESSES).unwrap()
}

#[test]
fn x07_each_attachment_has_stages_of_its_own_and_no_bytes_are_of_two() {
    let stages = stages();
    let small: Vec<_> = (0..4).flat_map(|place| stages.of(AttachmentId::new(place))).collect();
    assert_eq!(small.len(), PROCESSES * OWN, "there is no fourth attachment");
    assert!(small.iter().all(|stage| stage.bytes() == SMALL_BYTES));
    assert_eq!(stages.large().filter(|stage| stage.bytes() == LARGE_BYTES).count(), LARGE);
    let all: Vec<_> = stages.all().collect();
    assert_eq!(all.len(), small.len() + LARGE);
    for pair in all.windows(2) {
        assert_eq!(pair[0].data.as_ptr_range().end, pair[1].data.as_ptr());
        assert!(std::ptr::addr_eq(stages.at(pair[1].index).head, pair[1].head));
    }
    assert_eq!(stages.at(all.len()).index, 0, "any index is one");
}

#[test]
fn what_is_asked_is_read_as_it_was_written_and_anything_else_is_one_or_none() {
    let head = stages().at(0).head;
    let whose = KeyUser { domain: 5, target: QpNumber::new(6) };
    let needs = Access::REMOTE_WRITE;
    let sges = [1, 2].map(|n| Sge { addr: 64 * n, length: n as u32, lkey: 7 });
    let asked = Request { code: Code::WriteLate, whose, needs, operands: [3, 4] };
    head.write(&asked, sges.into_iter());
    let (read, of) = head.read().unwrap();
    assert_eq!((read.code, read.operands), (asked.code, asked.operands));
    assert_eq!((read.whose, read.needs), (whose, needs));
    assert!(of.eq(sges));
    // Whatever is written there (X4).
    for code in [0, 7, u32::MAX] {
        sync::store(&head.code, code);
        assert!(head.read().is_none());
    }
    sync::store(&head.code, 1);
    sync::store(&head.len, u32::MAX);
    assert_eq!(head.read().unwrap().1.count(), MAX_SGE);
}
