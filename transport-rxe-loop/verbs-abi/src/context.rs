//! Open devices.

use std::mem::offset_of;

use transport_rxe_loop::Context;

use crate::raw::{Functions, Kind, Table};
use crate::sys::*;
use crate::wait::Descriptor;

/// An opening of the device. What is made through it keeps what it needs of it, so that it may be closed first.
pub struct Opening {
    /// What it opened.
    pub device: Context,
    /// Its number, which no other opening has: keys of events are those of its fabric.
    pub id: u64,
    /// What C finds the functions of its objects in.
    pub functions: &'static Functions,
    /// `async_fd`: readable while there are asynchronous events.
    pub events: Descriptor,
}

impl Kind for Opening {
    type Public = verbs_context;
    type Face = ibv_context;
    const FACE: usize = offset_of!(verbs_context, context);
    const HANDLE: Option<usize> = None;
}

/// Those of this process.
pub static OPENINGS: Table<Opening> = Table::new();

/// How many completion vectors there are: nobody is interrupted, so one stands for all.
pub const COMP_VECTORS: c_int = 1;
