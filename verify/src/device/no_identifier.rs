//! The identifier of devices that have no connection manager.

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use cq_core::cm::{Advice, CmEvent, ConnParam, Identifier, ModifyQpError, QpInfo, QpOf};
use cq_core::setup::{Errno, QpState};
use transport_rxe_loop::{Context, OpenError};

/// There is none. The device that it names is of no importance.
#[derive(Debug)]
pub enum NoIdentifier {}

impl AsFd for NoIdentifier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

/// Functions of an identifier that does not exist.
macro_rules! never {
    ($($name:ident($($argument:ty),*) -> $result:ty;)+) => {$(
        fn $name(&mut self $(, _: $argument)*) -> Result<$result, Errno> {
            match *self {}
        }
    )+};
}

impl Identifier for NoIdentifier {
    type Device = Context;
    type OpenError = OpenError;

    const ADVICE: Advice = Advice { no_cm: "", address: "", route: "" };

    fn new() -> Result<Self, Errno> {
        Err(Errno::EOPNOTSUPP)
    }

    never! {
        bind(SocketAddr) -> ();
        listen(i32) -> ();
        resolve_addr(SocketAddr, Duration) -> ();
        resolve_route(Duration) -> ();
        connect(&ConnParam<&[u8]>) -> ();
        establish() -> ();
        accept(&ConnParam<&[u8]>) -> ();
        reject(&[u8]) -> ();
        disconnect() -> ();
        take_event() -> Option<(CmEvent, Option<Self>)>;
    }

    fn local_addr(&self) -> Option<SocketAddr> {
        match *self {}
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        match *self {}
    }

    fn device_name(&self) -> Result<String, Errno> {
        match *self {}
    }

    fn port_number(&self) -> u8 {
        match *self {}
    }

    fn open(&self) -> Result<Context, OpenError> {
        match *self {}
    }

    fn is_device_of(&self, _: &QpOf<Self>) -> Result<bool, Errno> {
        match *self {}
    }

    fn describe(_: &QpOf<Self>) -> QpInfo {
        QpInfo { device: String::new(), srq: false, max_qp_rd_atom: 0, max_qp_init_rd_atom: 0 }
    }

    fn modify_qp(
        &mut self,
        _: &mut QpOf<Self>,
        _: QpState,
        _: Option<u8>,
    ) -> Result<(), ModifyQpError> {
        match *self {}
    }
}
