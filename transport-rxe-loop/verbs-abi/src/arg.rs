//! What C hands in and wants back by pointer: null is EINVAL.

use crate::errno::Errno;

/// What is behind a pointer.
///
/// # Errors
/// EINVAL: it is null.
///
/// # Safety
/// If it is not null, it points to a value that stays as it is as long as the result is used.
pub unsafe fn given<'a, T>(pointer: *const T) -> Result<&'a T, Errno> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_ref() }.ok_or(Errno::INVAL)
}

/// What is behind a pointer, to be changed.
///
/// # Errors
/// EINVAL: it is null.
///
/// # Safety
/// If it is not null, it points to a value that nobody else uses as long as the result is.
pub unsafe fn changed<'a, T>(pointer: *mut T) -> Result<&'a mut T, Errno> {
    // SAFETY: the caller's word.
    unsafe { pointer.as_mut() }.ok_or(Errno::INVAL)
}

/// Puts a value where C wants it. What was there is not looked at: it may never have been written.
///
/// # Errors
/// EINVAL: the pointer is null.
///
/// # Safety
/// If it is not null, there is room for a value.
pub unsafe fn put<T>(pointer: *mut T, value: T) -> Result<(), Errno> {
    if pointer.is_null() {
        return Err(Errno::INVAL);
    }
    // SAFETY: the caller's word.
    unsafe { pointer.write(value) };
    Ok(())
}
