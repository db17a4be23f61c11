//! The attributes of a queue pair that the device allows.

use cq_verbs::setup::{ModifyError, QpAttr, QpAttrMask, QpState, QpType};

use crate::api::mr;
use crate::engine::port;

/// The maximum of outstanding READs and atomics, in either direction.
pub const MAX_RD_ATOMIC: u8 = 16;

/// Validates a transition of a queue pair of this type that is in state `from`: against the specification, and against
/// what the device has. Returns the new state.
pub fn check(attr: &QpAttr, from: QpState, of: QpType) -> Result<QpState, ModifyError> {
    const READS: u32 = MAX_RD_ATOMIC as u32;
    const PORT: u32 = port::NUMBER as u32;
    let to = attr.check(from, of)?;
    let byte = |value: Option<u8>| value.map(u32::from);
    let reads = "0 to the device's max_qp_rd_atom";
    let ranges = [
        (QpAttrMask::PKEY_INDEX, attr.pkey_index.map(u32::from), 0, 0, "there is index 0 only"),
        (QpAttrMask::PORT, byte(attr.port), PORT, PORT, "there is port 1 only"),
        (QpAttrMask::AV, byte(attr.av.map(|av| av.port)), PORT, PORT, "there is port 1 only"),
        (QpAttrMask::MAX_QP_RD_ATOMIC, byte(attr.max_rd_atomic), 0, READS, reads),
        (QpAttrMask::MAX_DEST_RD_ATOMIC, byte(attr.max_dest_rd_atomic), 0, READS, reads),
        (
            QpAttrMask::ACCESS_FLAGS,
            attr.access.map(mr::unknown_bits),
            0,
            0,
            "these bits are unknown",
        ),
    ];
    let wrong = ranges.into_iter().find_map(|(attr, value, min, max, allowed)| {
        let value = value.filter(|value| !(min..=max).contains(value))?;
        Some(ModifyError::BadValue { attr, value, allowed })
    });
    wrong.map_or(Ok(to), Err)
}
