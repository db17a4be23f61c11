//! The wire format: calls and results as JSON, followed by raw bytes, in frames; and passing further sockets over a
//! first one.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use cq_core::transport::{CqKey, Notify};
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::requests::{Receive, Send};
use crate::device::{Access, Address, CmCall, QpAttr, QpCaps, QpState, QpType, SrqInit};

/// Identifies an object among those of its kind.
pub type Id = u64;

/// The kinds of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A [`Device`](crate::device::Device).
    Device,
    /// Its `Pd`.
    Pd,
    /// Its `Mr`.
    Mr,
    /// Its `Channel`.
    Channel,
    /// Its `Cq`.
    Cq,
    /// Its `Srq`.
    Srq,
    /// Its `Ah`.
    Ah,
    /// Its `Mw`.
    Mw,
    /// Its `Qp`.
    Qp,
    /// Its `Id`.
    Id,
}

/// A call of a method of the traits of [`device`](crate::device) or of [`cq_core::transport`]. Bytes of memory and
/// completions follow it as raw bytes.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Call {
    Open,
    Limits { device: Id },
    AllocPd { device: Id },
    Register { device: Id, pd: Id, len: usize, access: Access },
    CreateChannel { device: Id },
    CreateCq { device: Id, capacity: u32, channel: Option<Id>, ignores_overrun: bool },
    CreateSrq { device: Id, pd: Id, init: SrqInit },
    CreateQp(NewQp),
    CreateAh { device: Id, pd: Id, to: Address },
    AhFromWc { device: Id, pd: Id },
    AllocMw { device: Id, pd: Id },
    CreateId { device: Id },
    NextAsync { device: Id },
    Drop { kind: Kind, id: Id },
    Destroy { kind: Kind, id: Id },
    Poll { cq: Id },
    Arm { cq: Id, on: Notify },
    Capacity { cq: Id },
    Resize { cq: Id, capacity: u32 },
    Moderate { cq: Id, count: u16, period: u16 },
    Next { channel: Id },
    Serves { channel: Id, cq: CqKey },
    Block { channel: Id, left: Option<Duration> },
    PostSend { qp: Id, list: Vec<Send> },
    PostTo { qp: Id, ah: Id, qp_num: u32, qkey: u32, list: Vec<Send> },
    PostRecv { qp: Id, list: Vec<Receive> },
    PostShared { srq: Id, list: Vec<Receive> },
    ArmLimit { srq: Id, limit: u32 },
    Limit { srq: Id },
    WindowKey { mw: Id },
    State { qp: Id },
    Modify { qp: Id, attr: QpAttr },
    Read { mr: Id, offset: usize, len: usize },
    Write { mr: Id, offset: usize },
    Connecting { id: Id, call: CmCall },
    NextOf { id: Id },
    IsReadable { id: Id, left: Duration },
    Addrs { id: Id },
    OpenOf { id: Id },
    ModifyBy { id: Id, qp: Id, to: QpState },
}

/// The arguments of `create_qp`.
#[derive(Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct NewQp {
    pub device: Id,
    pub pd: Id,
    pub qp_type: QpType,
    pub send_cq: Id,
    pub recv_cq: Id,
    pub srq: Option<Id>,
    pub caps: QpCaps,
    pub sq_sig_all: bool,
}

/// The maximum length of a frame, in bytes.
const TOO_LONG: usize = 1 << 26;

/// JSON, and raw bytes.
pub type Frame = (Vec<u8>, Vec<u8>);

/// Encodes a value as a frame.
pub fn encode(said: impl Serialize, raw: Vec<u8>) -> Frame {
    (serde_json::to_vec(&said).expect("words can be written as JSON"), raw)
}

/// Writes a frame.
///
/// # Errors
/// The other side has closed the socket.
pub fn write(mut to: &UnixStream, json: &[u8], raw: &[u8]) -> io::Result<()> {
    let lengths = [json.len() as u32, raw.len() as u32].map(u32::to_ne_bytes);
    to.write_all(&[&lengths[0], &lengths[1], json, raw].concat())
}

/// Reads a frame.
///
/// # Errors
/// The other side has closed the socket, does not answer before the socket's timeout, or does not write frames.
pub fn read(mut from: &UnixStream) -> io::Result<Frame> {
    let mut lengths = [[0; 4]; 2];
    from.read_exact(lengths.as_flattened_mut())?;
    let [json, raw] = lengths.map(|length| u32::from_ne_bytes(length) as usize);
    if json + raw > TOO_LONG {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no frame is that long"));
    }
    let mut body = vec![0; json + raw];
    from.read_exact(&mut body)?;
    let raw = body.split_off(json);
    Ok((body, raw))
}

/// Sends a socket over another one.
///
/// # Errors
/// The other side has closed the socket.
pub fn hand_over(over: &UnixStream, wire: &UnixStream) -> io::Result<()> {
    let wires = [wire.as_fd()];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&wires)), "there is room for one");
    sendmsg(over, &[IoSlice::new(&[0])], &mut control, SendFlags::empty())?;
    Ok(())
}

/// Receives a socket that was sent; `None` once the other side has closed the socket.
///
/// # Errors
/// A system call failed.
pub fn take_over(over: &UnixStream) -> io::Result<Option<UnixStream>> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut bytes = [IoSliceMut::new(&mut byte)];
    recvmsg(over, &mut bytes, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut wires = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut wires) => wires.next(),
        _ => None,
    });
    Ok(wires.next().map(UnixStream::from))
}
