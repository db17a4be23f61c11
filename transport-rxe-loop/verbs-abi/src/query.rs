//! What the device can do at most.

use cq_verbs::setup::DeviceAttr;
use transport_rxe_loop::AddressHandle;

use crate::context::OPENINGS;
use crate::errno::Errno;
use crate::pd::Domain;
use crate::port;
use crate::raw::system::page_size;
use crate::raw::{In, Out, Table};
use crate::sys::*;
use crate::words::fixed;

/// The globally unique identifier of the device, in network order. Its port's begins as this does, and ends as its
/// fabric has it.
pub const GUID: u64 = u64::from_ne_bytes(*b"\x02lo\xff\xfeop\0");

/// How many regions there can be beside all the windows that C programs are told of: the device has places for both
/// together, and a window without a region is good for nothing.
const TO_BIND: u32 = 64;

/// `ibv_query_device(3)`. EINVAL, ENOENT: no context, or no buffer.
pub fn query_device(
    context: *const ibv_context,
    device_attr: Out<'_, ibv_device_attr>,
) -> Result<(), Errno> {
    device_attr.put(attr(&attributes(context)?))
}

/// `ibv_query_device_ex(3)`. EINVAL, ENOENT: no context, no buffer, or something is asked for that no header of today
/// knows.
pub fn query_device_ex(
    context: *const ibv_context,
    input: In<'_, ibv_query_device_ex_input>,
    attr: Out<'_, ibv_device_attr_ex>,
    attr_size: usize,
) -> Result<(), Errno> {
    let asks_more = input.given().is_ok_and(|input| input.comp_mask != 0);
    if asks_more || attr_size < size_of::<ibv_device_attr>() {
        return Err(Errno::INVAL);
    }
    attr.put_sized(attr_size, &attr_ex(&attributes(context)?))
}

/// What the device says of itself.
fn attributes(context: *const ibv_context) -> Result<DeviceAttr, Errno> {
    OPENINGS.find(context)?.with(|opening| opening.device.attributes())
}

fn int(count: u32) -> c_int {
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// What there are none of (multicast groups, end-to-end contexts, …) is 0.
fn attr(found: &DeviceAttr) -> ibv_device_attr {
    ibv_device_attr {
        fw_ver: fixed(env!("CARGO_PKG_VERSION")),
        node_guid: GUID,
        sys_image_guid: GUID,
        // What such identifiers begin with is whose they are.
        vendor_id: (u64::from_be(GUID) >> 40) as u32,
        vendor_part_id: 1,
        hw_ver: 1,
        max_mr_size: usize::MAX as u64,
        // Memory is registered byte by byte: any page will do.
        page_size_cap: !(page_size() as u64 - 1),
        max_qp: int(found.max_qp),
        max_qp_wr: int(found.max_qp_wr),
        device_cap_flags: capabilities(found),
        max_sge: int(found.max_sge),
        max_sge_rd: int(found.max_sge),
        max_cq: int(found.max_cq),
        max_cqe: int(found.max_cqe),
        max_mr: int(found.max_mr),
        max_pd: int(Table::<Domain>::MAX),
        max_qp_rd_atom: found.max_qp_rd_atom.into(),
        max_res_rd_atom: int(found.max_qp.saturating_mul(found.max_qp_rd_atom.into())),
        max_qp_init_rd_atom: found.max_qp_init_rd_atom.into(),
        atomic_cap: found.atomic_cap.0,
        max_mw: int(found.max_mw.saturating_sub(TO_BIND)),
        max_ah: int(Table::<AddressHandle>::MAX),
        max_srq: int(found.max_srq),
        max_srq_wr: int(found.max_srq_wr),
        max_srq_sge: int(found.max_srq_sge),
        max_pkeys: port::PKEYS,
        phys_port_cnt: port::PORT,
        ..ibv_device_attr::ZEROED
    }
}

fn attr_ex(found: &DeviceAttr) -> ibv_device_attr_ex {
    let by_requests = IB_UVERBS_DEVICE_ATOMIC_WRITE
        | IB_UVERBS_DEVICE_FLUSH_GLOBAL
        | IB_UVERBS_DEVICE_FLUSH_PERSISTENT;
    ibv_device_attr_ex {
        orig_attr: attr(found),
        device_cap_flags_ex: by_requests | u64::from(capabilities(found)),
        cq_mod_caps: ibv_cq_moderation_caps {
            max_cq_count: found.max_cq_count,
            max_cq_period: found.max_cq_period,
        },
        phys_port_cnt_ex: port::PORT.into(),
        ..ibv_device_attr_ex::ZEROED
    }
}

/// A current state is compared when a queue pair is modified; a peer without a receive is told so; keys are
/// invalidated by requests.
fn capabilities(found: &DeviceAttr) -> u32 {
    let windows = if found.mem_window_type_2b { IBV_DEVICE_MEM_WINDOW_TYPE_2B } else { 0 };
    windows
        | IBV_DEVICE_CURR_QP_STATE_MOD
        | IBV_DEVICE_RC_RNR_NAK_GEN
        | IBV_DEVICE_SYS_IMAGE_GUID
        | IBV_DEVICE_MEM_MGT_EXTENSIONS
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::test::*;

    #[test]
    fn the_device_says_what_the_rust_api_says() {
        let (context, mut attr) = (open(), ibv_device_attr::ZEROED);
        // SAFETY: the buffer holds the attributes; null is none, and is not written to.
        let answers = unsafe {
            [ibv_query_device(context, &raw mut attr), ibv_query_device(context, ptr::null_mut())]
        };
        assert_eq!(answers, [0, libc::EINVAL]);
        let found = attributes(context).unwrap();
        assert_eq!([attr.max_qp as u32, attr.max_cqe as u32], [found.max_qp, found.max_cqe]);
        assert_eq!((attr.atomic_cap, attr.phys_port_cnt), (IBV_ATOMIC_HCA, 1));
        assert!(attr.node_guid != 0 && attr.vendor_id != 0 && attr.hw_ver != 0);
        assert_eq!(attr.max_mw as u32 + TO_BIND, found.max_mw);
        assert_eq!(attr.max_pd as u32, Table::<Domain>::MAX);
        assert_eq!(attr.fw_ver.map(|byte| byte as u8)[..2], *b"0.");
        // The node is named as its port.
        let port = port::at_port(context, 1).unwrap().gid.0;
        assert_eq!(GUID.to_ne_bytes()[..5], port[8..13]);
    }

    #[test]
    fn headers_of_any_age_get_as_much_as_they_know() {
        let (context, whole, old) =
            (open(), size_of::<ibv_device_attr_ex>(), size_of::<ibv_device_attr>());
        for (comp_mask, size, answer, ports) in [
            (0, whole, 0, 1),
            (0, old, 0, 99),
            (0, old - 1, libc::EINVAL, 99),
            (1, whole, libc::EINVAL, 99),
        ] {
            let mut attr = ibv_device_attr_ex::ZEROED;
            attr.phys_port_cnt_ex = 99;
            let query = extended(context).query_device_ex.unwrap();
            let input = ibv_query_device_ex_input { comp_mask };
            // SAFETY: the buffer holds so many bytes.
            let told = unsafe { query(context, &raw const input, &raw mut attr, size) };
            assert_eq!((told, attr.phys_port_cnt_ex), (answer, ports), "{comp_mask} {size}");
            if ports == 1 {
                let plain = u64::from(attr.orig_attr.device_cap_flags);
                assert_eq!(attr.device_cap_flags_ex & plain, plain);
                assert_eq!(attr.cq_mod_caps.max_cq_count, u16::MAX);
            }
        }
    }
}
