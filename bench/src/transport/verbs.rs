//! A device of libibverbs.
//!
//! ```no_run
//! use bench::transport::Transport;
//! use bench::transport::verbs::Verbs;
//!
//! let transport = Verbs::open(Some("rxe0"), None)?;
//! println!("messages of up to {} bytes", transport.about().limits.message);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use cq_verbs::setup::{CreateError, DeviceError, Port, PortState};
use transport_verbs::{Context, OpenError};

use super::Opened;

/// A device of libibverbs, open, and one of its ports.
pub type Verbs = Opened<Context>;

impl Verbs {
    /// Opens the device of this name, or the first one, on its first active port. The queue pairs go by
    /// this entry of the port's GID table, or the one that suits best.
    ///
    /// # Errors
    /// There is no such device, no active port, no such entry, or what the device said.
    pub fn open(device: Option<&str>, gid: Option<u8>) -> Result<Self, VerbsError> {
        let context = device.map_or_else(Context::open_first, Context::open)?;
        let port = active_port(&context)?;
        let port = match gid {
            Some(index) => with_gid(&context, &port, index)?,
            None => port,
        };
        Ok(Self::new("verbs", context, port)?)
    }
}

fn with_gid(context: &Context, port: &Port, index: u8) -> Result<Port, VerbsError> {
    let there: Vec<u8> = context.gids(port.number)?.iter().map(|&(index, _)| index).collect();
    if !there.contains(&index) {
        return Err(VerbsError::NoGid { device: context.name().to_owned(), index, there });
    }
    Ok(context.port_with_gid(port.number, index)?)
}

fn active_port(context: &Context) -> Result<Port, VerbsError> {
    let mut failure = None;
    for number in 1..=context.attributes().phys_port_cnt {
        match context.port(number) {
            Ok(port) if port.state == PortState::ACTIVE => return Ok(port),
            Ok(_) => {}
            // One that is down may have no GID; another one may be up.
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    let none = || VerbsError::NoActivePort { device: context.name().to_owned() };
    Err(failure.map_or_else(none, VerbsError::Device))
}

/// Why a device can't be had.
#[derive(Debug, thiserror::Error)]
pub enum VerbsError {
    /// It can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is open, and says no.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// It has no protection domain left.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The GID table has no such entry.
    #[error("the GID table of {device}'s port has no entry {index}: it has {there:?}")]
    NoGid {
        /// The device.
        device: String,
        /// What was asked for.
        index: u8,
        /// What there is.
        there: Vec<u8>,
    },
    /// No port of it is up.
    #[error("{device} has no active port: `rdma link` and `ibv_devinfo` show why")]
    NoActivePort {
        /// The device.
        device: String,
    },
}
