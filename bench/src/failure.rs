//! How failures are passed on that are for a person to read.

use std::error::Error;

/// Why something failed.
pub type Failure = Box<dyn Error + Send + Sync>;
