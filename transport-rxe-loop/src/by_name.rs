//! How observed values are serialized that have names in verbs: by these names.

use std::fmt::Debug;

use serde::{Serialize, Serializer};

/// The name of a value.
pub fn name<S: Serializer>(value: &impl Debug, serializer: S) -> Result<S::Ok, S::Error> {
    format!("{value:?}").to_uppercase().serialize(serializer)
}

/// The name of a value, if there is one.
pub fn name_of_some<S: Serializer>(
    value: &Option<impl Debug>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(|value| format!("{value:?}").to_uppercase()).serialize(serializer)
}
