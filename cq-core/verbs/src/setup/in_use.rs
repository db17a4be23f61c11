//! The error of destroying an object that is in use.

/// The object can't be destroyed because something still uses it (EBUSY, [Q11](cq_core::contract#q11)).
///
/// ```
/// use cq_verbs::device::Destroy;
/// use cq_verbs::setup::InUseError;
///
/// /// Destroys an object, or returns it to be destroyed later.
/// fn close<T: Destroy>(object: T) -> Option<T> {
///     object.destroy().err().map(InUseError::into_inner)
/// }
/// let error = InUseError::new((), "completion queue", "its queue pairs");
/// assert_eq!(error.to_string(), "the completion queue is still in use: destroy its queue pairs first");
/// ```
pub struct InUseError<T> {
    /// The handle of the object, still valid.
    pub handle: T,
    what: &'static str,
    users: &'static str,
}

impl<T> InUseError<T> {
    /// For transports: the object, a `what`, is in use by `users`.
    #[must_use]
    pub const fn new(handle: T, what: &'static str, users: &'static str) -> Self {
        Self { handle, what, users }
    }

    /// The handle of the object.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.handle
    }

    /// The same with another handle, for a wrapper of the object.
    #[must_use]
    pub fn map<U>(self, wrap: impl FnOnce(T) -> U) -> InUseError<U> {
        InUseError { handle: wrap(self.handle), what: self.what, users: self.users }
    }
}

cq_core::sentences!(@[T] InUseError<T> {
    Self { what, users, .. } => ("the {what} is still in use: destroy {users} first");
});

/// Without the handle, which need not have it.
#[cfg(feature = "defmt")]
impl<T> defmt::Format for InUseError<T> {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "InUseError {{ what: {=str}, users: {=str} }}", self.what, self.users);
    }
}
