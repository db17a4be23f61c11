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

/// Puts a structure where C wants it, or the beginning of it, or more than it has, which is 0.
///
/// # Errors
/// EINVAL: the pointer is null.
///
/// # Safety
/// If it is not null, there is room for `size` bytes.
pub unsafe fn put_sized<T>(pointer: *mut T, size: usize, value: &T) -> Result<(), Errno> {
    if pointer.is_null() {
        return Err(Errno::INVAL);
    }
    let known = size.min(size_of::<T>());
    let to = pointer.cast::<u8>();
    // SAFETY: the caller's word, and `known` bytes of the value.
    unsafe {
        to.copy_from_nonoverlapping((&raw const *value).cast(), known);
        to.add(known).write_bytes(0, size - known);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_header_has_more_is_0() {
        let mut room = [7_u32; 4];
        // SAFETY: there is room for four numbers, of which the first is the value.
        unsafe { put_sized(room.as_mut_ptr(), 12, &5).unwrap() };
        assert_eq!(room, [5, 0, 0, 7]);
    }
}
