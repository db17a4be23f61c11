//! What `<infiniband/verbs.h>` declares and this library shares with C programs, by its names: structures,
//! unions and numbers of libibverbs 44, on 64-bit Linux. No logic, and nothing that no verb here reads or
//! writes.
//!
//! | module | has |
//! |---|---|
//! | `numbers` | enumerations, as integers: programs write them, so any number is legal |
//! | `device` | devices, ports, addresses of ports, and their attributes |
//! | `objects` | what handles point to, an open device with its functions, work requests, events |
//! | `attributes` | what objects are made, changed and queried with |
//! | `extended` | queue pairs and completion queues with functions of their own |
//! | `context` | the functions of an open device that came later |
//!
//! Numbers that cq-core has as the header has them are not declared again. They are of the same layout, or have
//! C's bits: [`WcFlags`](cq_core::wc::WcFlags), [`SendFlags`](cq_core::wr::SendFlags) but for those in
//! `numbers`, [`Access`](cq_core::setup::Access), [`QpAttrMask`](cq_core::setup::QpAttrMask),
//! [`Placement`](cq_core::wr::Placement) and [`Selectivity`](cq_core::wr::Selectivity).
//!
//! `cargo verify layout` shows every size, offset and value to a C compiler that reads the header; the table it goes
//! by comes from the declarations themselves.
//!
//! Every structure has a `ZEROED`. Unions that C declares without a name are a field here, named as their first
//! member, which the other shares; those inside structures are types of their own.
#![allow(
    // As C has them.
    non_camel_case_types,
    non_snake_case,
    // C programs read and write them; not every one is named by a verb.
    dead_code,
)]

#[macro_use]
mod declare;

mod attributes;
mod context;
mod device;
mod extended;
#[cfg(test)]
mod layout;
mod numbers;
mod objects;

pub use self::attributes::*;
pub use self::context::*;
pub use self::device::*;
pub use self::extended::*;
pub use self::numbers::*;
pub use self::objects::*;

pub use cq_core::async_event::AsyncEventType as ibv_event_type;
pub use cq_core::wc::{Wc as ibv_wc, WcOpcode as ibv_wc_opcode, WcStatus as ibv_wc_status};
pub use cq_core::wr::Sge as ibv_sge;

/// A function that is never there: NULL, where the header's inline functions find that it is not supported.
pub type Unsupported = Option<unsafe extern "C" fn()>;
