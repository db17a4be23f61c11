//! The attributes that the suite brings queue pairs up with. The path goes to a port of this same device: of its address
//! vector the port alone counts.

use cq_verbs::setup::{Access, AckTimeout, AddressVector, Mtu, QpAttr, QpState, QpType, RnrTimer};

/// RESET→INIT, with all attributes that a connection requires.
pub const fn init(access: Access) -> QpAttr {
    QpAttr::new().state(QpState::INIT).pkey_index(0).port(1).access(access)
}

/// INIT→RTR, with all attributes that a reliable connection requires; a peer that finds no receive waits 0.64 ms.
pub fn rtr(dest_qp_num: u32) -> QpAttr {
    QpAttr::new()
        .state(QpState::RTR)
        .av(by_port(1))
        .path_mtu(Mtu::MTU_1024)
        .dest_qp_num(dest_qp_num)
        .rq_psn(0)
        .max_dest_rd_atomic(4)
        .min_rnr_timer(RnrTimer::from_number(12).unwrap())
}

/// RTR→RTS, with all attributes that a reliable connection requires: waits for receives without limit, for an answer
/// four times 0.27 s.
pub const fn rts() -> QpAttr {
    QpAttr::new()
        .state(QpState::RTS)
        .timeout(AckTimeout::from_number(16).unwrap())
        .retry_cnt(3)
        .rnr_retry(7)
        .sq_psn(0)
        .max_rd_atomic(4)
}

/// RESET→INIT of a queue pair of this type; one of datagrams has this queue key.
pub const fn init_as(qp_type: QpType, access: Access, qkey: u32) -> QpAttr {
    match qp_type {
        QpType::UD => QpAttr::new().state(QpState::INIT).pkey_index(0).port(1).qkey(qkey),
        _ => init(access),
    }
}

/// INIT→RTR with what a queue pair of this type needs.
pub fn rtr_as(qp_type: QpType, dest_qp_num: u32) -> QpAttr {
    match qp_type {
        QpType::UD => QpAttr::new().state(QpState::RTR),
        _ => rtr(dest_qp_num).for_type(qp_type),
    }
}

/// RTR→RTS with what a queue pair of this type needs.
pub fn rts_as(qp_type: QpType) -> QpAttr {
    rts().for_type(qp_type)
}

/// The path through this port of the device, to a port of this same device.
pub fn by_port(port: u8) -> AddressVector {
    AddressVector::default().port(port)
}
