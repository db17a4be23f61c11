//! `dlopen(3)`, for programs that open libibverbs or librdmacm by themselves while this library is preloaded: they get a
//! handle of this library.
//!
//! `dlsym` and `dlvsym` find its names by that handle. `dlmopen` is left alone: it opens what is to be apart.

#[cfg(not(test))]
use std::arch::global_asm;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::ptr;

/// The libraries that this one stands for, as files are called.
const STANDS_FOR: [&[u8]; 2] = [b"libibverbs.so", b"librdmacm.so"];

type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// What [`opened`] returns, in two registers.
#[repr(C)]
struct Opened {
    /// The handle of this library, or null.
    handle: *mut c_void,
    /// The C library's `dlopen`.
    other: *const c_void,
}

// `dlopen` asks `opened`, and returns its handle or jumps to the C library's function, with the same arguments. That searches
// by who called it ($ORIGIN, DT_RUNPATH), which it sees from the return address: a jump leaves the caller's there.
#[cfg(all(target_arch = "x86_64", not(test)))]
global_asm!(
    ".pushsection .text.dlopen, \"ax\", @progbits",
    ".globl dlopen",
    ".type dlopen, @function",
    "dlopen:",
    ".cfi_startproc",
    "endbr64",
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "push rsi",
    ".cfi_adjust_cfa_offset 8",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {opened}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "pop rsi",
    ".cfi_adjust_cfa_offset -8",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    "test rax, rax",
    "jnz 2f",
    "jmp rdx",
    "2: ret",
    ".cfi_endproc",
    ".size dlopen, . - dlopen",
    ".popsection",
    opened = sym opened,
);

#[cfg(all(target_arch = "aarch64", not(test)))]
global_asm!(
    ".pushsection .text.dlopen, \"ax\", @progbits",
    ".globl dlopen",
    ".type dlopen, @function",
    "dlopen:",
    ".cfi_startproc",
    "hint 34", // bti c
    "stp x29, x30, [sp, #-32]!",
    ".cfi_def_cfa_offset 32",
    ".cfi_offset x29, -32",
    ".cfi_offset x30, -24",
    "mov x29, sp",
    "stp x0, x1, [sp, #16]",
    "bl {opened}",
    "mov x16, x1",
    "mov x17, x0",
    "ldp x0, x1, [sp, #16]",
    "ldp x29, x30, [sp], #32",
    ".cfi_def_cfa_offset 0",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "cbnz x17, 2f",
    "br x16",
    "2: mov x0, x17",
    "ret",
    ".cfi_endproc",
    ".size dlopen, . - dlopen",
    ".popsection",
    opened = sym opened,
);

/// Opens this library, if the program asks for one that it stands for.
unsafe extern "C" fn opened(file: *const c_char, flags: c_int) -> Opened {
    // SAFETY: asks for a function by its name.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) };
    let other = if next.is_null() { nothing as *mut c_void } else { next };
    // SAFETY: null or a text, as `dlopen` requires.
    let is_ours = !file.is_null() && stands_for(unsafe { CStr::from_ptr(file) });
    let handle = match this_file() {
        // SAFETY: the function has this type, and what it opens is loaded.
        Some(this) if is_ours => unsafe { transmute::<*mut c_void, Dlopen>(other)(this, flags) },
        _ => ptr::null_mut(),
    };
    Opened { handle, other }
}

/// Opens nothing.
unsafe extern "C" fn nothing(_: *const c_char, _: c_int) -> *mut c_void {
    ptr::null_mut()
}

/// Whether a file has the name of a library that this one stands for, with or without a version, and a path.
fn stands_for(file: &CStr) -> bool {
    let name = file.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    STANDS_FOR.iter().any(|library| {
        let rest = name.strip_prefix(*library);
        let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        rest.is_some_and(|rest| {
            rest.first().is_none_or(|&first| first == b'.') && rest.iter().all(is_version)
        })
    })
}

/// The name under which this library is loaded.
fn this_file() -> Option<*const c_char> {
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: an address of this library, and a buffer for what is known of it.
    let is_found = unsafe { libc::dladdr(opened as *const c_void, found.as_mut_ptr()) } != 0;
    // SAFETY: zero is a value of each field.
    is_found.then(|| unsafe { found.assume_init() }.dli_fname).filter(|name| !name.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_library_stands_for_both_by_any_path_and_version_and_for_no_other() {
        for file in [c"libibverbs.so.1", c"librdmacm.so", c"/usr/lib/libibverbs.so.1.14.44.0"] {
            assert!(stands_for(file), "{file:?}");
        }
        for file in [
            c"",
            c"libibverbs",
            c"libibverbs.so-1",
            c"libibverbs.so.1/libmlx5.so",
            c"xlibibverbs.so",
            c"libibverbs.so.1.bak",
        ] {
            assert!(!stands_for(file), "{file:?}");
        }
    }

    #[test]
    fn all_else_is_left_to_the_c_library() {
        for file in [ptr::null(), c"libc.so.6".as_ptr()] {
            // SAFETY: null or a text.
            let Opened { handle, other } = unsafe { opened(file, libc::RTLD_NOW) };
            assert!(handle.is_null());
            assert_eq!(other.cast_mut(), libc::dlopen as *mut c_void);
        }
    }
}
