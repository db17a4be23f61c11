//! What can't go, because something uses it.

use core::error::Error;
use core::fmt;

/// Something still uses what was to be destroyed (EBUSY, Q11).
pub struct InUse<T> {
    /// The handle, as good as before.
    pub handle: T,
    what: &'static str,
    users: &'static str,
}

impl<T> InUse<T> {
    /// For a transport: `what` is in use by `users`.
    #[must_use]
    pub const fn new(handle: T, what: &'static str, users: &'static str) -> Self {
        Self { handle, what, users }
    }
}

impl<T> fmt::Display for InUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the {} is still in use: destroy {} first", self.what, self.users)
    }
}

impl<T> fmt::Debug for InUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<T> Error for InUse<T> {}
