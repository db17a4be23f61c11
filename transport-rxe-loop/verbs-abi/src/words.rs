//! What numbers are called. What cq-core has a name for, C gets the same.

use std::ffi::{CStr, CString};
use std::fmt::Display;
use std::sync::LazyLock;

use crate::sys::*;

/// What a number without a name is called.
const UNKNOWN: &CStr = c"unknown";

/// Numbers with their texts, as C strings, for the rest of the process.
type Texts<T> = LazyLock<Vec<(T, CString)>>;

static STATUSES: Texts<ibv_wc_status> = LazyLock::new(|| texts(ibv_wc_status::KNOWN));
static EVENTS: Texts<ibv_event_type> = LazyLock::new(|| texts(ibv_event_type::KNOWN));

fn texts<T: Copy + Display>(known: &[T]) -> Vec<(T, CString)> {
    let text = |number: &T| CString::new(number.to_string()).unwrap_or_default();
    known.iter().map(|number| (*number, text(number))).collect()
}

fn text<T: PartialEq>(texts: &'static Texts<T>, number: &T) -> *const c_char {
    let found = texts.iter().find(|(known, _)| known == number);
    found.map_or(UNKNOWN, |(_, text)| text).as_ptr()
}

/// `ibv_wc_status_str(3)` (C12).
pub fn wc_status_str(status: ibv_wc_status) -> *const c_char {
    text(&STATUSES, &status)
}

/// `ibv_event_type_str(3)`.
pub fn event_type_str(event: ibv_event_type) -> *const c_char {
    text(&EVENTS, &event)
}

/// What libibverbs calls an operation. Programs print it, too.
pub fn wr_opcode_str(opcode: ibv_wr_opcode) -> *const c_char {
    let text = match opcode {
        IBV_WR_RDMA_WRITE => c"rdma-write",
        IBV_WR_RDMA_WRITE_WITH_IMM => c"rdma-write-with-imm",
        IBV_WR_SEND => c"send",
        IBV_WR_SEND_WITH_IMM => c"send-with-imm",
        IBV_WR_RDMA_READ => c"rdma-read",
        IBV_WR_ATOMIC_CMP_AND_SWP => c"atomic-cmp-and-swp",
        IBV_WR_ATOMIC_FETCH_AND_ADD => c"atomic-fetch-and-add",
        IBV_WR_LOCAL_INV => c"local-inv",
        IBV_WR_BIND_MW => c"bind-mw",
        IBV_WR_SEND_WITH_INV => c"send-with-inv",
        IBV_WR_TSO => c"tso",
        IBV_WR_DRIVER1 => c"driver1",
        IBV_WR_FLUSH => c"flush",
        IBV_WR_ATOMIC_WRITE => c"atomic-write",
        _ => UNKNOWN,
    };
    text.as_ptr()
}

/// `ibv_node_type_str(3)`.
pub fn node_type_str(node_type: ibv_node_type) -> *const c_char {
    let text = match node_type {
        IBV_NODE_CA => c"InfiniBand channel adapter",
        IBV_NODE_SWITCH => c"InfiniBand switch",
        IBV_NODE_ROUTER => c"InfiniBand router",
        IBV_NODE_RNIC => c"iWARP NIC",
        IBV_NODE_USNIC => c"usNIC",
        IBV_NODE_USNIC_UDP => c"usNIC UDP",
        IBV_NODE_UNSPECIFIED => c"unspecified",
        _ => UNKNOWN,
    };
    text.as_ptr()
}

/// `ibv_port_state_str(3)`.
pub fn port_state_str(port_state: ibv_port_state) -> *const c_char {
    let text = match port_state {
        IBV_PORT_NOP => c"no state change (NOP)",
        IBV_PORT_DOWN => c"down",
        IBV_PORT_INIT => c"init",
        IBV_PORT_ARMED => c"armed",
        IBV_PORT_ACTIVE => c"active",
        IBV_PORT_ACTIVE_DEFER => c"active defer",
        _ => UNKNOWN,
    };
    text.as_ptr()
}

/// `rdma_event_str(3)`. Programs print it, so it is what librdmacm says.
pub fn cm_event_str(event: rdma_cm_event_type) -> *const c_char {
    let text = match event {
        RDMA_CM_EVENT_ADDR_RESOLVED => c"RDMA_CM_EVENT_ADDR_RESOLVED",
        RDMA_CM_EVENT_ADDR_ERROR => c"RDMA_CM_EVENT_ADDR_ERROR",
        RDMA_CM_EVENT_ROUTE_RESOLVED => c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        RDMA_CM_EVENT_ROUTE_ERROR => c"RDMA_CM_EVENT_ROUTE_ERROR",
        RDMA_CM_EVENT_CONNECT_REQUEST => c"RDMA_CM_EVENT_CONNECT_REQUEST",
        RDMA_CM_EVENT_CONNECT_RESPONSE => c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        RDMA_CM_EVENT_CONNECT_ERROR => c"RDMA_CM_EVENT_CONNECT_ERROR",
        RDMA_CM_EVENT_UNREACHABLE => c"RDMA_CM_EVENT_UNREACHABLE",
        RDMA_CM_EVENT_REJECTED => c"RDMA_CM_EVENT_REJECTED",
        RDMA_CM_EVENT_ESTABLISHED => c"RDMA_CM_EVENT_ESTABLISHED",
        RDMA_CM_EVENT_DISCONNECTED => c"RDMA_CM_EVENT_DISCONNECTED",
        RDMA_CM_EVENT_DEVICE_REMOVAL => c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        RDMA_CM_EVENT_MULTICAST_JOIN => c"RDMA_CM_EVENT_MULTICAST_JOIN",
        RDMA_CM_EVENT_MULTICAST_ERROR => c"RDMA_CM_EVENT_MULTICAST_ERROR",
        RDMA_CM_EVENT_ADDR_CHANGE => c"RDMA_CM_EVENT_ADDR_CHANGE",
        RDMA_CM_EVENT_TIMEWAIT_EXIT => c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
        RDMA_CM_EVENT_ADDRINFO_RESOLVED => c"RDMA_CM_EVENT_ADDRINFO_RESOLVED",
        RDMA_CM_EVENT_ADDRINFO_ERROR => c"RDMA_CM_EVENT_ADDRINFO_ERROR",
        _ => c"UNKNOWN EVENT",
    };
    text.as_ptr()
}

/// Text in a field of fixed size, with a zero at the end; what does not fit is left out.
pub fn fixed<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut field = [0; SIZE];
    let places = field.iter_mut().take(SIZE.saturating_sub(1));
    places.zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
    field
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::*;

    fn said(text: *const c_char) -> &'static str {
        // SAFETY: a constant text.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap()
    }

    #[test]
    fn c12_numbers_have_texts_and_others_are_unknown() {
        // SAFETY: any number may be asked about.
        unsafe {
            for status in ibv_wc_status::KNOWN {
                assert_eq!(said(ibv_wc_status_str(*status)), status.to_string());
            }
            for (text, expected) in [
                (ibv_wc_status_str(ibv_wc_status(0)), "success"),
                (ibv_wc_status_str(ibv_wc_status(12)), "transport retry counter exceeded"),
                (ibv_wc_status_str(ibv_wc_status(24)), "unknown"),
                (ibv_event_type_str(ibv_event_type(0)), "CQ error"),
                (ibv_event_type_str(ibv_event_type(16)), "last WQE reached"),
                (ibv_event_type_str(ibv_event_type(11)), "LID change"),
                (ibv_event_type_str(ibv_event_type(20)), "unknown"),
                (ibv_wr_opcode_str(IBV_WR_SEND), "send"),
                (ibv_wr_opcode_str(IBV_WR_FLUSH), "flush"),
                (ibv_wr_opcode_str(12), "unknown"),
                (ibv_node_type_str(IBV_NODE_CA), "InfiniBand channel adapter"),
                (ibv_node_type_str(-1), "unknown"),
                (ibv_node_type_str(0), "unknown"),
                (ibv_port_state_str(IBV_PORT_ACTIVE), "active"),
                (ibv_port_state_str(6), "unknown"),
                (rdma_event_str(RDMA_CM_EVENT_ESTABLISHED), "RDMA_CM_EVENT_ESTABLISHED"),
                (rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"),
                (rdma_event_str(16), "RDMA_CM_EVENT_ADDRINFO_RESOLVED"),
                (rdma_event_str(18), "UNKNOWN EVENT"),
            ] {
                assert_eq!(said(text), expected);
            }
        }
    }

    #[test]
    fn a_text_that_is_too_long_still_ends() {
        assert_eq!(fixed::<4>("loop0").map(|byte| byte as u8), *b"loo\0");
        assert_eq!(fixed::<4>("").map(|byte| byte as u8), [0; 4]);
    }
}
