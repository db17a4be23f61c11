//! Moving bytes between pieces of memory that others may read and write meanwhile. One of the rooms where
//! `unsafe` lives.
//!
//! Small pieces of equal alignment move in atomic words, all else by a `memmove` that the compiler can't
//! see into: in neither case may it assume that the memory is at rest. Who reads while we write sees any
//! mixture of old and new, as with any device; but for [`copy_last_word_late`].
//!
//! A list may also have pieces of another process' memory, which is not mapped here. They are only
//! remembered: whoever moves bytes [there](crate::memory::transfer) asks for them.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

use cq_core::setup::Access;
use heapless::Vec;

use crate::memory::region::Whose;
use crate::sync::{self, AtomicU8, AtomicU64};

/// Spans of a request at most.
pub const MAX_SGE: usize = 16;

/// What moves in words; a call of `memmove` costs more than these.
const SMALL: usize = 256;

/// WRITEs up to this many bytes show their last word last (Q8).
const LATE: usize = 4096;

/// A range of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub addr: usize,
    len: u32,
    /// 0 if it is mapped here; else its key, by which its owner knows it.
    pub key: u32,
}

impl Span {
    /// One that is not mapped here.
    pub const fn far(addr: usize, len: u32, key: u32) -> Self {
        Self { addr, len, key }
    }

    /// How many bytes it has.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it is not mapped here.
    pub const fn is_far(&self) -> bool {
        self.key != 0
    }

    fn overlaps(&self, other: &Self) -> bool {
        let are_here = !self.is_far() && !other.is_far();
        are_here && self.addr < other.addr + other.len() && other.addr < self.addr + self.len()
    }
}

/// Whose memory it is that is not mapped here, and as what it may be used: its owner asks that again if it
/// is to move the bytes itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far {
    /// The place of its process.
    pub place: u16,
    pub whose: Whose,
    pub needs: Access,
}

/// Memory that may be read for as long as `'w`.
#[derive(Debug)]
pub struct Spans<'w> {
    list: Vec<Span, MAX_SGE, u8>,
    len: usize,
    /// Whose the pieces are that are not mapped here, if there are any.
    far: Option<Far>,
    /// Whether there are others.
    has_near: bool,
    granted: PhantomData<&'w ()>,
}

impl<'w> Spans<'w> {
    /// Nothing.
    pub const fn new() -> Self {
        let list = Vec::new();
        Self { list, len: 0, far: None, has_near: false, granted: PhantomData }
    }

    /// The first `len` bytes of these words, or all of them.
    pub fn of_words(words: &'w [AtomicU64], len: usize) -> Self {
        let mut pieces = Self::new();
        pieces.push_words(words, len);
        pieces
    }

    /// Adds the first `len` bytes of these words, or all of them.
    pub fn push_words(&mut self, words: &'w [AtomicU64], len: usize) {
        // SAFETY: the words are borrowed for `'w`, and atomic, so they may be read and written.
        unsafe { self.push(words.as_ptr() as usize, len.min(size_of_val(words)) as u32) };
    }

    /// Adds a piece; past [`MAX_SGE`] it is left out.
    ///
    /// # Safety
    /// The `len` bytes at `addr` must stay mapped for `'w`, and whoever else reaches them meanwhile takes
    /// them for a device's memory.
    pub unsafe fn push(&mut self, addr: usize, len: u32) {
        self.has_near = true;
        self.add(Span { addr, len, key: 0 });
    }

    /// Adds a piece of another process' memory, which that one knows by the key. False if others are of yet
    /// another one.
    #[must_use]
    pub fn push_far(&mut self, far: Far, addr: usize, len: u32, key: u32) -> bool {
        let is_the_one = *self.far.get_or_insert(far) == far && key != 0;
        if is_the_one {
            self.add(Span { addr, len, key });
        }
        is_the_one
    }

    fn add(&mut self, piece: Span) {
        if self.list.push(piece).is_ok() {
            self.len += piece.len();
        }
    }

    /// How many bytes they are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whose the pieces are that are not mapped here, if there are any.
    #[inline]
    pub const fn far(&self) -> Option<Far> {
        self.far
    }

    /// Whether none of them is mapped here.
    pub const fn are_all_far(&self) -> bool {
        self.far.is_some() && !self.has_near
    }

    /// The pieces that make up some of the bytes.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = Span> + use<'_> {
        let mut cursor = Cursor::at(self, range.start);
        let mut left = range.len();
        std::iter::from_fn(move || {
            let piece = cursor.piece(left)?;
            left -= piece.len();
            cursor.advance(piece.len());
            Some(piece)
        })
    }
}

/// Memory that may be written, too.
#[derive(Debug)]
pub struct Target<'w>(Spans<'w>);

impl<'w> Target<'w> {
    /// Nothing.
    pub const fn new() -> Self {
        Self(Spans::new())
    }

    /// The first `len` bytes of these words, or all of them.
    pub fn of_words(words: &'w [AtomicU64], len: usize) -> Self {
        Self(Spans::of_words(words, len))
    }

    /// The pieces.
    pub const fn pieces(&self) -> &Spans<'w> {
        &self.0
    }

    /// One piece that is not mapped here; nothing if it is.
    pub fn of_far(far: Far, piece: Span) -> Self {
        let mut pieces = Spans::new();
        // It is left out if it has no key.
        let _ = pieces.push_far(far, piece.addr, piece.len, piece.key);
        Self(pieces)
    }

    /// The pieces, for more to be added.
    ///
    /// # Safety
    /// Those are writable for `'w`.
    pub const unsafe fn pieces_mut(&mut self) -> &mut Spans<'w> {
        &mut self.0
    }
}

/// Whether a WRITE of so many bytes shows the last eight of them last.
pub fn is_late(len: usize) -> bool {
    (8..=LATE).contains(&len)
}

/// Copies all of `from` to the beginning of `to`, or as much as there is room for. One piece that overlaps
/// another arrives as it was before.
#[inline]
pub fn copy(from: &Spans<'_>, to: &Target<'_>) {
    let len = from.len.min(to.0.len);
    if overlap(from, &to.0) {
        return copy_overlapping(from, to, len);
    }
    copy_range(from, to, 0..len);
}

/// [`copy`], but who sees the last eight bytes, in a copy of up to 4 KiB, sees all of it (Q8). Don't rely
/// on it: no specification promises it.
#[inline]
pub fn copy_last_word_late(from: &Spans<'_>, to: &Target<'_>) {
    let len = from.len.min(to.0.len);
    if overlap(from, &to.0) {
        return copy_overlapping(from, to, len);
    }
    copy_in_order(from, to, len);
}

#[inline]
fn copy_in_order(from: &Spans<'_>, to: &Target<'_>, len: usize) {
    if !is_late(len) {
        return copy_range(from, to, 0..len);
    }
    copy_range(from, to, 0..len - 8);
    sync::write_fence();
    copy_range(from, to, len - 8..len);
}

fn overlap(from: &Spans<'_>, to: &Spans<'_>) -> bool {
    from.list.iter().any(|from| to.list.iter().any(|to| from.overlaps(to)))
}

/// Up to 4 KiB by way of memory of its own. Beyond that piece by piece, which is right for one that
/// overlaps the place that it goes to itself; nobody promises more.
#[cold]
fn copy_overlapping(from: &Spans<'_>, to: &Target<'_>, len: usize) {
    if len > LATE {
        return copy_range(from, to, 0..len);
    }
    let aside = [const { AtomicU64::new(0) }; LATE / 8];
    let there = Target::of_words(&aside, len);
    copy_range(from, &there, 0..len);
    copy_in_order(&there.0, to, len);
}

/// Copies some of the bytes, up to the first that are not mapped here.
pub fn copy_range(from: &Spans<'_>, to: &Target<'_>, range: Range<usize>) {
    copy_at(from, range.start, to, range.start, range.len());
}

/// The same, for bytes that have different places in the two.
#[inline]
pub fn copy_at(from: &Spans<'_>, from_at: usize, to: &Target<'_>, to_at: usize, len: usize) {
    let (mut source, mut target) = (Cursor::at(from, from_at), Cursor::at(&to.0, to_at));
    let mut left = len;
    while left > 0 {
        let (Some(from), Some(to)) = (source.piece(left), target.piece(left)) else { break };
        let len = from.len().min(to.len());
        if from.is_far() || to.is_far() {
            break;
        }
        // SAFETY: both cursors have `len` bytes before them in one piece, which may be read (`push`), and
        // the target's written (`Target::pieces_mut`).
        unsafe { move_bytes(to.addr as *mut u8, from.addr as *const u8, len) };
        left -= len;
        if left > 0 {
            source.advance(len);
            target.advance(len);
        }
    }
}

/// A place in a list of pieces.
struct Cursor<'a> {
    pieces: &'a [Span],
    offset: usize,
}

impl<'a> Cursor<'a> {
    fn at(pieces: &'a Spans<'_>, offset: usize) -> Self {
        let mut cursor = Self { pieces: &pieces.list, offset };
        if offset > 0 {
            cursor.advance(0);
        }
        cursor
    }

    /// The bytes before the end of this piece, or so many of them; `None` at the end of all.
    fn piece(&self, limit: usize) -> Option<Span> {
        let piece = self.pieces.first().filter(|_| limit > 0)?;
        let len = limit.min(piece.len() - self.offset) as u32;
        Some(Span { addr: piece.addr + self.offset, len, key: piece.key })
    }

    fn advance(&mut self, len: usize) {
        self.offset += len;
        while let [piece, rest @ ..] = self.pieces {
            if self.offset < piece.len() {
                break;
            }
            self.offset -= piece.len();
            self.pieces = rest;
        }
    }
}

/// # Safety
/// `len` bytes at `to` may be written, and as many at `from` read, by atomic accesses.
#[inline]
unsafe fn move_bytes(to: *mut u8, from: *const u8, len: usize) {
    let aligned_alike = (to as usize ^ from as usize).is_multiple_of(8);
    // Word by word is from the beginning, which is wrong where that runs into what is still to be read.
    let runs_into = (to as usize).wrapping_sub(from as usize) < len;
    if len <= SMALL && aligned_alike && !runs_into {
        // SAFETY: as for this function; alignments are equal.
        unsafe { move_words(to, from, len) };
    } else {
        // SAFETY: as for this function.
        unsafe { move_opaquely(to, from, len) };
    }
}

/// # Safety
/// As for [`move_bytes`]; the addresses are equal modulo 8.
#[inline]
unsafe fn move_words(to: *mut u8, from: *const u8, len: usize) {
    debug_assert!((to as usize ^ from as usize).is_multiple_of(8));
    let head = to.align_offset(8).min(len);
    let words = (len - head) / 8;
    let tail = head + words * 8;
    for at in (0..head).chain(tail..len) {
        // SAFETY: `at < len`, and a byte has any alignment.
        let (to, from) = unsafe {
            (AtomicU8::from_ptr(to.add(at)), AtomicU8::from_ptr(from.cast_mut().add(at)))
        };
        sync::store(to, sync::load(from));
    }
    let mut at = head;
    while at < tail {
        // SAFETY: `at + 8 <= len`, and `head` aligned both addresses to 8.
        let (to, from) = unsafe {
            (
                AtomicU64::from_ptr(to.add(at).cast()),
                AtomicU64::from_ptr(from.cast_mut().add(at).cast()),
            )
        };
        sync::store(to, sync::load(from));
        at += 8;
    }
}

/// # Safety
/// As for [`move_bytes`].
#[inline(never)]
unsafe fn move_opaquely(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the ranges may be used (this function's contract) and may overlap (`copy` is a memmove).
    unsafe { std::ptr::copy(from, to, len) };
}

#[cfg(test)]
mod tests;
