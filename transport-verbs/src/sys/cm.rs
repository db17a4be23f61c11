//! A connection identifier of librdmacm, with an event channel of its own.
//!
//! Each event is copied and acknowledged before it is returned, so that destroying an identifier never
//! waits. An identifier that comes with a connection request is moved to a channel of its own at once, so
//! that it does not depend on the listener's.

#![allow(unsafe_code)]

mod channel;

use std::ffi::{CStr, c_int};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::{io, ptr};

use cq_verbs::cm::{CmEvent, ConnParam};
use rdma_sys::{
    ibv_get_device_name, ibv_qp_attr, rdma_accept, rdma_bind_addr, rdma_cm_id, rdma_conn_param,
    rdma_connect, rdma_create_id, rdma_destroy_id, rdma_disconnect, rdma_establish,
    rdma_init_qp_attr, rdma_listen, rdma_migrate_id, rdma_port_space, rdma_reject,
    rdma_resolve_addr, rdma_resolve_route,
};
use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use rustix::net::addr::{SocketAddrArg, SocketAddrStorage};

use channel::{Channel, RawId};

use super::check_errno as check;
use super::object::Object;

/// An identifier: what a socket is to TCP.
#[derive(Debug)]
pub struct Id {
    // In the order of dropping: the identifier speaks through its channel when it is destroyed.
    raw: RawId,
    channel: Channel,
}

impl Id {
    /// Makes one for reliable connections.
    pub fn new() -> io::Result<Self> {
        let channel = Channel::new()?;
        let mut raw = ptr::null_mut();
        // SAFETY: the channel is open, and `raw` outlives the call.
        check(unsafe {
            rdma_create_id(
                channel.as_ptr(),
                &mut raw,
                ptr::null_mut(),
                rdma_port_space::RDMA_PS_TCP,
            )
        })?;
        // SAFETY: it was just created, and what refers to it is in its `Id`. Any thread may call librdmacm; what takes
        // `&Id` only reads fields that calls with `&mut Id` write.
        let raw = unsafe { Object::new(raw, rdma_destroy_id, check)? };
        Ok(Self { raw, channel })
    }

    /// Binds it to a local address, 0 for any port.
    pub fn bind(&mut self, addr: SocketAddr) -> io::Result<()> {
        // SAFETY: the identifier is alive, and the address for the call; it is not written to.
        unsafe {
            addr.with_sockaddr(|at, _| check(rdma_bind_addr(self.id(), at.cast_mut().cast())))
        }
    }

    /// Lets peers connect to it.
    pub fn listen(&mut self, backlog: c_int) -> io::Result<()> {
        // SAFETY: the identifier is alive.
        check(unsafe { rdma_listen(self.id(), backlog) })
    }

    /// Starts looking for the device that reaches an address.
    pub fn resolve_addr(&mut self, addr: SocketAddr, limit_ms: c_int) -> io::Result<()> {
        // SAFETY: the identifier is alive, and the address for the call; it is not written to.
        unsafe {
            addr.with_sockaddr(|at, _| {
                let (source, at) = (ptr::null_mut(), at.cast_mut().cast());
                check(rdma_resolve_addr(self.id(), source, at, limit_ms))
            })
        }
    }

    /// Starts looking for the path to the address.
    pub fn resolve_route(&mut self, limit_ms: c_int) -> io::Result<()> {
        let id = self.bound()?;
        // SAFETY: the identifier is alive and has a device.
        check(unsafe { rdma_resolve_route(id, limit_ms) })
    }

    /// Starts connecting.
    pub fn connect(&mut self, param: &ConnParam<&[u8]>) -> io::Result<()> {
        let (id, mut param) = (self.bound()?, raw_param(param)?);
        // SAFETY: the identifier is alive and has a device; the private data outlives the call.
        check(unsafe { rdma_connect(id, &mut param) })
    }

    /// Answers a connection request.
    pub fn accept(&mut self, param: &ConnParam<&[u8]>) -> io::Result<()> {
        let (id, mut param) = (self.bound()?, raw_param(param)?);
        // SAFETY: the identifier is alive and has a device; the private data outlives the call.
        check(unsafe { rdma_accept(id, &mut param) })
    }

    /// Refuses a connection request.
    pub fn reject(&mut self, private_data: &[u8]) -> io::Result<()> {
        let len = len_of(private_data)?;
        // SAFETY: the identifier is alive; the private data outlives the call.
        check(unsafe { rdma_reject(self.id(), private_data.as_ptr().cast(), len) })
    }

    /// Tells the peer that its answer has come, and that the queue pair of this side is ready.
    pub fn establish(&mut self) -> io::Result<()> {
        // SAFETY: the identifier is alive.
        check(unsafe { rdma_establish(self.id()) })
    }

    /// Ends the connection, or agrees that the peer ended it.
    pub fn disconnect(&mut self) -> io::Result<()> {
        let id = self.bound()?;
        // SAFETY: the identifier is alive and has a device.
        check(unsafe { rdma_disconnect(id) })
    }

    /// The attributes with which a queue pair goes to this state, and which they are.
    pub fn qp_attr(&mut self, state: u32) -> io::Result<(ibv_qp_attr, c_int)> {
        // SAFETY: it consists of numbers, for which 0 is a value.
        let mut attr: ibv_qp_attr = unsafe { std::mem::zeroed() };
        attr.qp_state = state;
        let mut mask = 0;
        // SAFETY: the identifier is alive, and so are the two variables.
        check(unsafe { rdma_init_qp_attr(self.id(), &mut attr, &mut mask) })?;
        Ok((attr, mask))
    }

    /// The name of its device, once it has one.
    pub fn device_name(&self) -> io::Result<String> {
        let id = self.bound()?;
        // SAFETY: librdmacm keeps the device open for as long as an identifier is bound to it.
        let name = unsafe { CStr::from_ptr(ibv_get_device_name((*(*id).verbs).device)) };
        Ok(name.to_string_lossy().into_owned())
    }

    /// The port of the device, once it has one.
    pub fn port_number(&self) -> u8 {
        // SAFETY: the identifier is alive.
        unsafe { (*self.id()).port_num }
    }

    /// Its local address, once it has one.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the identifier is alive; librdmacm fills in the whole storage, with zeros first.
        let at = unsafe { &raw const (*self.id()).route.addr.src_addr_union };
        // SAFETY: as above.
        unsafe { address(at.cast()) }
    }

    /// The peer's address, once it has one.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        // SAFETY: the identifier is alive; librdmacm fills in the whole storage, with zeros first.
        let at = unsafe { &raw const (*self.id()).route.addr.dst_addr_union };
        // SAFETY: as above.
        unsafe { address(at.cast()) }
    }

    /// Takes an event, if there is one, and the identifier that a connection request brings. Dropping
    /// that refuses.
    pub fn take_event(&mut self) -> io::Result<Option<(CmEvent, Option<Self>)>> {
        let Some((event, request)) = self.channel.take()? else { return Ok(None) };
        Ok(Some((event, request.map(Self::on_own_channel).transpose()?)))
    }

    /// Moves an identifier off the listener's channel, or destroys it.
    fn on_own_channel(raw: RawId) -> io::Result<Self> {
        let channel = Channel::new()?;
        // SAFETY: the identifier is alive, both channels are open, and no event of it is being handled.
        check(unsafe { rdma_migrate_id(raw.raw(), channel.as_ptr()) })?;
        Ok(Self { raw, channel })
    }

    const fn id(&self) -> *mut rdma_cm_id {
        self.raw.raw()
    }

    /// The identifier, if it has a device, as the calls that look into it demand.
    fn bound(&self) -> io::Result<*mut rdma_cm_id> {
        // SAFETY: the identifier is alive.
        match unsafe { (*self.id()).verbs.is_null() } {
            true => Err(Errno::NODEV.into()),
            false => Ok(self.id()),
        }
    }
}

impl AsFd for Id {
    /// Where its events are read.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// # Safety
/// A whole `sockaddr_storage` lies there.
unsafe fn address(at: *const SocketAddrStorage) -> Option<SocketAddr> {
    // SAFETY: as the caller says; an address of another family is refused below.
    let any = unsafe { SocketAddrAny::read(at, size_of::<SocketAddrStorage>() as u32) };
    any.try_into().ok()
}

/// As librdmacm has it. It refers to the private data.
fn raw_param(param: &ConnParam<&[u8]>) -> io::Result<rdma_conn_param> {
    Ok(rdma_conn_param {
        private_data: param.private_data.as_ptr().cast(),
        private_data_len: len_of(param.private_data)?,
        responder_resources: param.responder_resources,
        initiator_depth: param.initiator_depth,
        flow_control: param.flow_control.into(),
        retry_count: param.retry_count,
        rnr_retry_count: param.rnr_retry_count,
        srq: param.srq.into(),
        qp_num: param.qp_num,
    })
}

fn len_of(private_data: &[u8]) -> io::Result<u8> {
    Ok(u8::try_from(private_data.len()).map_err(|_| Errno::INVAL)?)
}
