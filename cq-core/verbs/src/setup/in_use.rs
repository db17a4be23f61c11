//! The error of destroying an object that is in use.

use core::fmt;

/// The object can't be destroyed because something still uses it (EBUSY, [Q11](cq_core::contract#q11)).
#[derive(thiserror::Error)]
#[error("the {what} is still in use: destroy {users} first")]
pub struct InUse<T> {
    /// The handle of the object, still valid.
    pub handle: T,
    what: &'static str,
    users: &'static str,
}

impl<T> InUse<T> {
    /// For transports: the object, a `what`, is in use by `users`.
    #[must_use]
    pub const fn new(handle: T, what: &'static str, users: &'static str) -> Self {
        Self { handle, what, users }
    }

    /// The same with another handle, for a wrapper of the object.
    #[must_use]
    pub fn map<U>(self, wrap: impl FnOnce(T) -> U) -> InUse<U> {
        InUse { handle: wrap(self.handle), what: self.what, users: self.users }
    }
}

impl<T> fmt::Debug for InUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
