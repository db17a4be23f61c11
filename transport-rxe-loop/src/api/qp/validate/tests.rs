use super::*;
use crate::inside::prelude::*;

#[test]
fn q01_more_reads_than_there_can_be_are_as_many_as_there_can() {
    for reads in [0, 1, MAX_RD_ATOMIC, MAX_RD_ATOMIC + 1, u8::MAX] {
        let attr = QpAttr::rtr(&Port::new(1), &Endpoint::new(7)).max_dest_rd_atomic(reads);
        assert_eq!(check_believing(&attr, QpState::INIT, QpType::RC), Ok(QpState::RTR), "{reads}");
    }
}
