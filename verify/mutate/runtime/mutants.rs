//! Which mutant is on: the one whose number the environment's `VERIFY_MUTANT` is. Where `VERIFY_REACHED` names a
//! file, none is, and the file's byte of each mutant that is asked for becomes 1.
//!
//! This file is part of the mutated copy of `cq-core` alone. It allocates nothing and makes no system call but
//! at the first question, since there are tests that count both.
#![allow(unsafe_code, missing_docs)]

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering::Relaxed};

/// Nobody has asked yet.
const UNKNOWN: u32 = u32::MAX;
/// What is asked for is recorded.
const RECORDING: u32 = u32::MAX - 1;

static CHOSEN: AtomicU32 = AtomicU32::new(UNKNOWN);
static REACHED: AtomicPtr<AtomicU8> = AtomicPtr::new(null_mut());

const READ_WRITE: c_int = 2;
const PROT_READ_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn close(descriptor: c_int) -> c_int;
    fn mmap(
        at: *mut c_void,
        length: usize,
        protection: c_int,
        flags: c_int,
        descriptor: c_int,
        offset: c_long,
    ) -> *mut c_void;
}

/// Whether the mutant of this number is on.
#[inline]
pub fn on(number: u32) -> bool {
    let chosen = CHOSEN.load(Relaxed);
    if chosen >= RECORDING { ask(number, chosen) } else { chosen == number }
}

#[cold]
#[inline(never)]
fn ask(number: u32, chosen: u32) -> bool {
    let chosen = if chosen == UNKNOWN { begin() } else { chosen };
    if chosen != RECORDING {
        return chosen == number;
    }
    let reached = REACHED.load(Relaxed);
    if number <= COUNT {
        // SAFETY: the file has one byte more than there are mutants, and stays mapped.
        unsafe { (*reached.add(number as usize)).store(1, Relaxed) };
    }
    false
}

fn begin() -> u32 {
    // SAFETY: the names end with zero.
    let (file, number) =
        unsafe { (getenv(c"VERIFY_REACHED".as_ptr()), getenv(c"VERIFY_MUTANT".as_ptr())) };
    let chosen = if file.is_null() { parse(number) } else { record(file) };
    CHOSEN.store(chosen, Relaxed);
    chosen
}

fn parse(text: *const c_char) -> u32 {
    let (mut at, mut number) = (text, 0_u32);
    // SAFETY: the text is the environment's, and ends with zero.
    while let digit @ b'0'..=b'9' = if at.is_null() { 0 } else { unsafe { *at as u8 } } {
        number = number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'));
        at = at.wrapping_add(1);
    }
    number
}

fn record(file: *const c_char) -> u32 {
    // SAFETY: the path is the environment's, and ends with zero; the mapping is of a new range.
    let mapped = unsafe {
        let descriptor = open(file, READ_WRITE);
        let length = COUNT as usize + 1;
        let at = mmap(null_mut(), length, PROT_READ_WRITE, MAP_SHARED, descriptor, 0);
        close(descriptor);
        at
    };
    if mapped as isize == -1 {
        return 0;
    }
    REACHED.store(mapped.cast(), Relaxed);
    RECORDING
}
