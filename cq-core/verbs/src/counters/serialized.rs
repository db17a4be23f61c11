//! Numbers of completions as a map by the statuses' names, without those that are 0.

use core::fmt;

use cq_core::wc::WcStatus;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use super::counts::{Completions, kind};

/// The name of what has none.
const UNKNOWN: &str = "unknown";

impl Serialize for Completions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let present = || self.iter().filter(|(_, count)| *count > 0);
        let mut map = serializer.serialize_map(Some(present().count()))?;
        for (status, count) in present() {
            map.serialize_entry(status.and_then(WcStatus::name).unwrap_or(UNKNOWN), &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Completions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Map)
    }
}

struct Map;

impl<'de> Visitor<'de> for Map {
    type Value = Completions;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers of completions by the names of their statuses")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Completions, A::Error> {
        let mut completions = Completions::default();
        while let Some((Name(kind), count)) = map.next_entry()? {
            completions.0[kind] = count;
        }
        Ok(completions)
    }
}

/// The index of a name.
struct Name(usize);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Name(0))
    }
}

impl Visitor<'_> for Name {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a status")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self, E> {
        let named = |status: &&WcStatus| status.name() == Some(name);
        match WcStatus::KNOWN.iter().find(named) {
            Some(status) => Ok(Self(kind(*status))),
            None if name == UNKNOWN => Ok(Self(WcStatus::KNOWN.len())),
            None => Err(E::custom(format_args!("{name} is not the name of a status"))),
        }
    }
}
