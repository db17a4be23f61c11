//! The link layer of a fabric's port: one word of the fabric's memory.

use std::fmt;

use crate::sync::{self, AtomicU32};

/// The link layer of the device's port.
///
/// ```
/// use transport_rxe_loop::{LinkLayer, OpenOptions};
///
/// let fabric = format!("ethernet-{}", std::process::id());
/// let context = OpenOptions::new().fabric(&fabric).link_layer(LinkLayer::Ethernet).open("loop0")?;
/// let port = context.port(1)?;
/// assert!(port.is_ethernet && port.lid == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LinkLayer {
    /// InfiniBand: the port has a LID.
    #[default]
    InfiniBand,
    /// Ethernet, as RoCE v2 has it: ports are reached by GIDs only, which are addresses of this machine.
    Ethernet,
}

/// No process has decided yet.
const UNDECIDED: u32 = 0;

impl LinkLayer {
    const ALL: [Self; 2] = [Self::InfiniBand, Self::Ethernet];

    const fn code(self) -> u32 {
        match self {
            Self::InfiniBand => 1,
            Self::Ethernet => 2,
        }
    }

    /// The link layer of the fabric with this word. The first process that asks decides; InfiniBand, if it has no wish.
    /// A word that another process corrupted counts as InfiniBand.
    pub(crate) fn of_fabric(word: &AtomicU32, asked: Option<Self>) -> Self {
        let wanted = asked.unwrap_or_default();
        let Err(found) = sync::cas(word, UNDECIDED, wanted.code()) else { return wanted };
        Self::ALL.into_iter().find(|known| known.code() == found).unwrap_or_default()
    }
}

impl fmt::Display for LinkLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InfiniBand => "InfiniBand",
            Self::Ethernet => "Ethernet",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x01_the_first_that_opens_a_fabric_decides_its_link_layer() {
        for (first, decided) in [(None, LinkLayer::InfiniBand)]
            .into_iter()
            .chain(LinkLayer::ALL.map(|it| (Some(it), it)))
        {
            let word = AtomicU32::new(UNDECIDED);
            assert_eq!(LinkLayer::of_fabric(&word, first), decided);
            for later in [None, Some(LinkLayer::InfiniBand), Some(LinkLayer::Ethernet)] {
                assert_eq!(LinkLayer::of_fabric(&word, later), decided, "{first:?}, {later:?}");
            }
        }
    }

    #[test]
    fn x04_any_word_is_a_link_layer() {
        let corrupted = AtomicU32::new(u32::MAX);
        let found = LinkLayer::of_fabric(&corrupted, Some(LinkLayer::Ethernet));
        assert_eq!(found, LinkLayer::InfiniBand);
    }
}
