//! Where datagrams and connections go: addresses, and handles of them for datagrams.

use cq_core::setup::{Gid, GlobalRoute};
use cq_core::wc::Wc;
use rdma_sys::{ibv_ah_attr, ibv_gid, ibv_global_route};
use rustix::io::Errno;

use crate::error::{Attempt, DeviceError};
use crate::pd::ProtectionDomain;
use crate::port::Port;
use crate::sys::ah::Ah;

/// How many routers a packet may pass.
const HOP_LIMIT: u8 = 64;

/// `struct ibv_ah_attr`: the way from a port of this side to a port of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressVector {
    /// The port of this side, counted from 1.
    pub port: u8,
    /// Local identifier of the other port; 0 on Ethernet.
    pub lid: u16,
    /// Service level.
    pub sl: u8,
    /// The global route; Ethernet needs one.
    pub route: Option<GlobalRoute>,
}

impl AddressVector {
    pub(crate) const NOWHERE: Self = Self { port: 0, lid: 0, sl: 0, route: None };

    /// From this port to one with these identifiers: by the global one on Ethernet, or where the other has
    /// no local one.
    #[must_use]
    pub fn of(port: &Port, gid: Gid, lid: u16) -> Self {
        let route = GlobalRoute {
            gid,
            sgid_index: port.gid_index(),
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            flow_label: 0,
        };
        let global = port.is_ethernet() || lid == 0;
        Self { port: port.number(), lid, sl: 0, route: global.then_some(route) }
    }

    /// As libibverbs takes it.
    pub(crate) const fn raw(&self) -> ibv_ah_attr {
        let (is_global, route) = match self.route {
            Some(route) => (1, route),
            None => (
                0,
                GlobalRoute {
                    gid: Gid([0; 16]),
                    sgid_index: 0,
                    hop_limit: 0,
                    traffic_class: 0,
                    flow_label: 0,
                },
            ),
        };
        ibv_ah_attr {
            grh: ibv_global_route {
                dgid: ibv_gid { raw: route.gid.0 },
                flow_label: route.flow_label,
                sgid_index: route.sgid_index,
                hop_limit: route.hop_limit,
                traffic_class: route.traffic_class,
            },
            dlid: self.lid,
            sl: self.sl,
            src_path_bits: 0,
            static_rate: 0,
            is_global,
            port_num: self.port,
        }
    }
}

/// A handle of an address, for datagrams.
///
/// ```no_run
/// use cq_core::wc::Wc;
/// use transport_verbs::{AddressVector, Context};
///
/// # let (received, buffer) = (Wc::default(), [0_u8; 1064]);
/// let context = Context::open_first()?;
/// let (port, pd) = (context.port(1)?, context.alloc_pd()?);
/// let there = pd.create_ah(&AddressVector::of(&port, "::ffff:10.0.0.2".parse()?, 0))?;
///
/// // Back to where a datagram came from: it begins with its global route.
/// let back = pd.ah_from_wc(&port, &received, buffer.first_chunk().unwrap())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A [`Directed`](crate::Directed) borrows it, so that it is there while requests are posted. Devices may
/// look at it until the requests are carried out: keep it until they have completed. Those that are
/// outstanding when it is dropped may be lost, or fail.
#[derive(Debug)]
pub struct AddressHandle {
    raw: Ah,
}

impl AddressHandle {
    pub(crate) const fn raw(&self) -> &Ah {
        &self.raw
    }

    /// Destroys it, as dropping does.
    pub fn destroy(self) {
        drop(self);
    }
}

impl ProtectionDomain {
    /// A handle of an address.
    ///
    /// # Errors
    /// The device does not reach it: no such port, or no way to the global identifier.
    pub fn create_ah(&self, to: &AddressVector) -> Result<AddressHandle, DeviceError> {
        let raw = Ah::new(self.raw(), to.raw()).attempt("create an address handle")?;
        Ok(AddressHandle { raw })
    }

    /// A handle of where a datagram came from, for the answer: of its completion, and of the first forty
    /// bytes of its buffer, which its global route was put in.
    ///
    /// # Errors
    /// They are not those of a datagram that came in at this port, or the completion is a failure, which
    /// says nothing of where it came from (C4).
    pub fn ah_from_wc(
        &self,
        port: &Port,
        wc: &Wc,
        grh: &[u8; 40],
    ) -> Result<AddressHandle, DeviceError> {
        let raw = match wc.result() {
            Ok(_) => Ah::from_wc(self.raw(), port.number(), wc, grh),
            Err(_) => Err(Errno::INVAL.into()),
        };
        let raw = raw.attempt("create an address handle of a received datagram")?;
        Ok(AddressHandle { raw })
    }
}
