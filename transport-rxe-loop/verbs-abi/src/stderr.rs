//! Lines on stderr: what programs have no call to ask for, or tell nobody.

use std::fmt;
use std::io::{self, Write};

/// Writes a line about the device with this name.
pub fn say(device: &str, what: fmt::Arguments<'_>) {
    // Who closed it does not want to know.
    let _ = writeln!(io::stderr(), "{device}: {what}");
}
