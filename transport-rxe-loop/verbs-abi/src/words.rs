//! What numbers are called, and how fast rates are.

use std::ffi::c_char;

/// Text in a field of fixed size, with a zero at the end; what does not fit is left out.
pub fn fixed<const SIZE: usize>(text: &str) -> [c_char; SIZE] {
    let mut field = [0; SIZE];
    let room = field.iter_mut().take(SIZE.saturating_sub(1));
    room.zip(text.bytes()).for_each(|(to, byte)| *to = byte as c_char);
    field
}
