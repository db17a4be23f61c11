//! Extended operations, which a library that is older than our headers may lack: attributes, ports, GIDs,
//! moderation. Found as `verbs_get_ctx` of `<infiniband/verbs.h>` does; the one of `rdma-sys` compares with
//! the wrong number, and finds none.

#![allow(unsafe_code)]

use std::mem::{MaybeUninit, offset_of};
use std::{io, ptr};

use rdma_sys::{
    ibv_context, ibv_cq, ibv_cq_attr_mask, ibv_device_attr_ex, ibv_gid_entry, ibv_moderate_cq,
    ibv_modify_cq_attr, ibv_query_device, verbs_context,
};

use super::check;
use crate::attributes::of_raw;
use cq_verbs::setup::{DeviceAttr, Gid};

/// The extended part of a context, if it has one.
///
/// # Safety
/// The context is open.
pub unsafe fn extended(context: *mut ibv_context) -> Option<*const verbs_context> {
    // SAFETY: the caller ensures that it is open. Where the mark is set, it is the last field of a
    // `verbs_context`.
    unsafe {
        let is_extended = (*context).abi_compat.addr() == usize::MAX;
        is_extended
            .then(|| context.byte_sub(offset_of!(verbs_context, context)).cast_const().cast())
    }
}

/// An extended operation of an open context, if the library and the device have it. That part grows at its
/// front, so `sz` is how far it reaches back.
macro_rules! operation {
    ($context:expr, $name:ident) => {
        $crate::sys::ext::extended($context).and_then(|extended| {
            let reaches = std::mem::offset_of!(rdma_sys::verbs_context, $name);
            let needed = size_of::<rdma_sys::verbs_context>() - reaches;
            if (*extended).sz < needed { None } else { (*extended).$name }
        })
    };
}

pub(super) use operation;

/// What the device can do at most.
///
/// # Safety
/// The context is open.
pub unsafe fn attributes(context: *mut ibv_context) -> io::Result<DeviceAttr> {
    // SAFETY: all zero is a value of each field, all of them numbers.
    let mut attr: ibv_device_attr_ex = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the caller ensures that the context is open; there is space for so many bytes.
    let extended = unsafe {
        operation!(context, query_device_ex)
            .map(|query| check(query(context, ptr::null(), &mut attr, size_of_val(&attr))))
    };
    if !matches!(extended, Some(Ok(()))) {
        // SAFETY: the context is open, and there is space.
        check(unsafe { ibv_query_device(context, &mut attr.orig_attr) })?;
    }
    // SAFETY: the context is open, and its fields do not change.
    let vectors = unsafe { (*context).num_comp_vectors };
    Ok(of_raw(&attr, vectors))
}

/// `ibv_modify_cq(3)`: events come after `count` completions or `period` microseconds.
///
/// # Safety
/// The queue is alive.
pub unsafe fn moderate_cq(cq: *mut ibv_cq, count: u16, period: u16) -> io::Result<()> {
    let mut attr = ibv_modify_cq_attr {
        attr_mask: ibv_cq_attr_mask::IBV_CQ_ATTR_MODERATE.0,
        moderate: ibv_moderate_cq { cq_count: count, cq_period: period },
    };
    // SAFETY: the caller ensures that the queue is alive, and with it its context.
    check(unsafe {
        match operation!((*cq).context, modify_cq) {
            Some(modify) => modify(cq, &mut attr),
            None => rustix::io::Errno::OPNOTSUPP.raw_os_error(),
        }
    })
}

/// The bytes of an entry's GID.
pub fn gid(entry: &ibv_gid_entry) -> Gid {
    // SAFETY: both views of the union are numbers, and all of its bytes were written.
    Gid(unsafe { entry.gid.raw })
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use rdma_sys::ibv_query_device_ex_input;

    use super::*;

    const WHOLE: usize = size_of::<verbs_context>();

    unsafe extern "C" fn query(
        _: *mut ibv_context,
        _: *const ibv_query_device_ex_input,
        attr: *mut ibv_device_attr_ex,
        size: usize,
    ) -> c_int {
        assert_eq!(size, size_of::<ibv_device_attr_ex>());
        // SAFETY: the caller has space.
        unsafe { (*attr).orig_attr.max_qp = 17 };
        0
    }

    /// A context that nothing but its extended part can be asked of.
    fn context(mark: usize, sz: usize) -> Box<verbs_context> {
        // SAFETY: null pointers, functions that are not there, and numbers, all of which may be zero.
        let mut context: Box<verbs_context> =
            Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        context.context.abi_compat = ptr::without_provenance_mut(mark);
        context.sz = sz;
        context.query_device_ex = Some(query);
        context
    }

    /// Whether the operation is found, asked by way of the part that everybody knows.
    fn is_found(context: &mut verbs_context) -> bool {
        let whole: *mut verbs_context = context;
        // SAFETY: the context is alive; its part has the provenance of the whole.
        unsafe { operation!(&raw mut (*whole).context, query_device_ex) }.is_some()
    }

    #[test]
    fn an_operation_is_found_where_the_mark_and_the_size_say_so_and_the_device_has_it() {
        let reaches = WHOLE - offset_of!(verbs_context, query_device_ex);
        assert!(is_found(&mut context(usize::MAX, WHOLE)));
        assert!(is_found(&mut context(usize::MAX, reaches)));
        // What rdma-sys looks for, no mark, and an older library.
        for (mark, sz) in
            [(u32::MAX as usize, WHOLE), (0, WHOLE), (usize::MAX, reaches - 1), (usize::MAX, 0)]
        {
            assert!(!is_found(&mut context(mark, sz)), "{mark:#x} {sz}");
        }
        let mut context = context(usize::MAX, WHOLE);
        context.query_device_ex = None;
        assert!(!is_found(&mut context));
    }

    #[test]
    fn attributes_come_from_the_extended_operation() {
        let context = Box::into_raw(context(usize::MAX, WHOLE));
        // SAFETY: the context is alive, and freed once.
        let attributes = unsafe {
            let attributes = attributes(&raw mut (*context).context);
            drop(Box::from_raw(context));
            attributes
        };
        assert_eq!(attributes.unwrap().max_qp, 17);
    }

    #[test]
    #[ignore = "needs an RDMA device, whose name is in VERBS_DEVICE"]
    fn a_device_has_the_extended_operations_and_tables_that_fit_into_memory() {
        let context = crate::Context::of_tests();
        let raw = context.raw.raw();
        // SAFETY: the context is open.
        let (device, port, cq) = unsafe {
            (
                operation!(raw, query_device_ex).is_some(),
                operation!(raw, query_port).is_some(),
                operation!(raw, modify_cq).is_some(),
            )
        };
        assert!(device && port && cq);
        let error = context.raw.query_gids(1 << 50).map(drop).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::NOMEM.raw_os_error()));
    }
}
