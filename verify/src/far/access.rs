//! Rights on the wire: their bits, those without a name included (C3).

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::device::Access;

/// Writes them.
pub fn serialize<S: Serializer>(access: &Option<Access>, to: S) -> Result<S::Ok, S::Error> {
    access.map(|access| access.bits()).serialize(to)
}

/// Reads them.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Access>, D::Error> {
    Ok(Option::deserialize(from)?.map(Access::from_bits_retain))
}
