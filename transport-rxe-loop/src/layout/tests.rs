use super::*;
use crate::api::open::OpenOptions;
use crate::sync;

#[test]
fn tables_lie_one_behind_the_other_after_what_they_have_in_common() {
    let limits = Limits::default();
    let Plan { at, arena } = Plan::new(&limits);
    assert!(at[0] >= HEADER + size_of::<Common>());
    assert!(at.is_sorted() && at[at.len() - 1] < arena);
    assert_eq!(HEADER + bytes_of_tables(&limits), arena);
}

#[test]
fn each_table_counts_in_what_they_have_in_common() {
    let (_context, fabric) = OpenOptions::new().alone();
    let tables = fabric.tables();
    let counts = || tables.common.next.each_ref().map(sync::load);
    let before = counts();
    let (index, _) = tables.qps.claim(fabric.place()).unwrap();
    tables.qps.at(index).life().end(fabric.place());
    assert_eq!(counts()[0], before[0] + 1);
}
