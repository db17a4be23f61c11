//! Options of identifiers.

use cq_verbs::setup::{AckTimeout, Errno, QpType};

use super::id::CmId;
use crate::protocol::cm::Call;

/// An option of an identifier: what `rdma_set_option` sets of the level RDMA_OPTION_ID. Each side of a connection has its own;
/// an identifier that comes with a request has the defaults.
///
/// | option | in C | value | default | where it can be set | what it does |
/// |---|---|---|---|---|---|
/// | `Tos` | RDMA_OPTION_ID_TOS | 1 byte | 0 | everywhere | the traffic class of the path, and of the queue pair that goes to RTR after that |
/// | `AckTimeout` | RDMA_OPTION_ID_ACK_TIMEOUT | 1 byte, 0 to 31 | 19: 2.15 s | everywhere, of reliable connections | the [timeout](crate::QpAttr::timeout) of the queue pair that goes to RTS after that |
/// | `ReuseAddr` | RDMA_OPTION_ID_REUSEADDR | 4 bytes | no | unless it listens; cleared, before it is bound | several that all have it can be bound to one address. Of those none can listen while another one is bound there: EADDRINUSE, or at an unspecified address EADDRNOTAVAIL. One that listens has it no more |
/// | `AfOnly` | RDMA_OPTION_ID_AFONLY | 4 bytes | of IPv4 yes, of IPv6 as `net.ipv6.bindv6only` has it | until it listens, or resolves an address | an unspecified address covers its own family alone. Two of different families that both have it can be bound to one port |
///
/// Everything else is refused: with EINVAL a value of another size, one that a queue pair would refuse, or an option where it
/// can't be set; with ENOSYS another option or level, RDMA_OPTION_IB_PATH among them, as there is one path.
///
/// ```
/// use transport_rxe_loop::cm::{CmId, EventChannel, IdOption, PortSpace};
/// use transport_rxe_loop::{Context, QpType};
///
/// let context = Context::open("loop0").unwrap();
/// let channel = EventChannel::new(&context).unwrap();
/// let id = CmId::new(&channel, PortSpace::TCP, QpType::RC).unwrap();
/// id.set_option(IdOption::Tos(8)).unwrap();
/// assert_eq!(id.tos(), 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdOption {
    /// The traffic class.
    Tos(u8),
    /// The local ACK timeout.
    AckTimeout(AckTimeout),
    /// Whether others may be bound to its address.
    ReuseAddr(bool),
    /// Whether an unspecified address covers its own family alone.
    AfOnly(bool),
}

impl CmId {
    /// The traffic class that [`IdOption::Tos`] has set; else 0.
    #[must_use]
    pub fn tos(&self) -> u8 {
        self.with(|all, key| Ok(all.id(key)?.tos)).unwrap_or(0)
    }

    /// Sets an option: `rdma_set_option`.
    ///
    /// # Errors
    /// EINVAL: it can't be set in this state, or of an identifier of this type; or there is no such value.
    #[doc(alias = "rdma_set_option")]
    pub fn set_option(&self, option: IdOption) -> Result<(), Errno> {
        self.with(|all, key| {
            let id = all.id(key)?;
            let (reuse, only) = (id.reuse, id.only);
            match option {
                IdOption::Tos(tos) => id.tos = tos,
                IdOption::AckTimeout(timeout) if id.qp_type == QpType::RC => {
                    id.ack_timeout = Some(timeout);
                }
                IdOption::AckTimeout(_) => return Err(rustix::io::Errno::INVAL),
                IdOption::ReuseAddr(reuse) => {
                    id.share(Call::ReuseAddr(reuse), reuse, only)?;
                }
                IdOption::AfOnly(only) => id.share(Call::AfOnly, reuse, Some(only))?,
            }
            Ok(())
        })
    }
}
