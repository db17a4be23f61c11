//! Prints an error with its causes. An error of this workspace displays its own sentence only and returns its cause
//! from [`source`](Error::source).
//!
//! ```
//! use cq_verbs::causes::Causes;
//! use cq_verbs::post::{PostError, WrError};
//!
//! let error = PostError { posted: 2, why: WrError::Device(5) };
//! assert_eq!(error.to_string(), "request 2 of the list was refused");
//! let line = Causes(&error).to_string();
//! assert_eq!(line, "request 2 of the list was refused: the device refused it (code 5)");
//! ```

use core::error::Error;
use core::fmt;

/// Displays an error and its causes in one line, for a terminal or a log.
#[derive(Clone, Copy, Debug)]
pub struct Causes<'e>(pub &'e dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut error = self.0;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}
