//! Lists of spans, and [copying](super::bytes) between them. One of the modules with `unsafe`.
//!
//! A list may also have spans of another process' memory that is not mapped here. They are only stored; a
//! [transfer](crate::memory::transfer) moves their bytes.

#![allow(unsafe_code)]

use crate::memory::key::Key;
use crate::protocol::lock::AttachmentId;
use std::marker::PhantomData;
use std::ops::Range;
use std::thread;

use cq_verbs::setup::Access;
use heapless::Vec;

use crate::memory::bytes::{LATE, is_late, move_bytes};
use crate::memory::region::KeyUser;
use crate::sync::{self, AtomicU64};

/// The most spans of a request.
pub const MAX_SGE: usize = 16;

/// A resolved range of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    pub addr: usize,
    len: u32,
    /// 0 if it is mapped here; otherwise its key, by which its owner resolves it.
    pub key: Key,
}

impl Span {
    /// A span that is not mapped here.
    pub const fn far(addr: usize, len: u32, key: Key) -> Self {
        Self { addr, len, key }
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it is not mapped here.
    pub const fn is_far(&self) -> bool {
        self.key.get() != Key::NONE.get()
    }

    fn overlaps(&self, other: &Self) -> bool {
        let are_here = !self.is_far() && !other.is_far();
        are_here && self.addr < other.addr + other.len() && other.addr < self.addr + self.len()
    }
}

/// The owner of spans that are not mapped here, and their use: an owner that copies by itself checks that again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far {
    /// The attachment index of its process.
    pub attachment: AttachmentId,
    pub whose: KeyUser,
    pub needs: Access,
}

/// Spans that may be read for `'w`.
#[derive(Debug)]
pub struct Spans<'w> {
    list: Vec<Span, MAX_SGE, u8>,
    len: usize,
    /// The owner of the spans that are not mapped here, if there are any.
    far: Option<Far>,
    /// Whether there are spans that are mapped here.
    has_near: bool,
    granted: PhantomData<&'w ()>,
}

impl<'w> Spans<'w> {
    /// No spans.
    pub const fn new() -> Self {
        let list = Vec::new();
        Self { list, len: 0, far: None, has_near: false, granted: PhantomData }
    }

    /// The first `len` bytes of these words, or all of them.
    pub fn of_words(words: &'w [AtomicU64], len: usize) -> Self {
        let mut spans = Self::new();
        spans.push_words(words, len);
        spans
    }

    /// Adds the first `len` bytes of these words, or all of them.
    pub fn push_words(&mut self, words: &'w [AtomicU64], len: usize) {
        // SAFETY: the words are borrowed for `'w`, and atomic, so they may be read and written.
        unsafe { self.push(words.as_ptr() as usize, len.min(size_of_val(words)) as u32) };
    }

    /// Adds a span; beyond [`MAX_SGE`] it is ignored.
    ///
    /// # Safety
    /// The `len` bytes at `addr` must stay mapped for `'w`, and all other accesses to them meanwhile must treat them
    /// as a device's memory.
    pub unsafe fn push(&mut self, addr: usize, len: u32) {
        self.has_near = true;
        self.add(Span { addr, len, key: Key::NONE });
    }

    /// Adds a span of another process' memory, which that process knows by the key. False if earlier spans have
    /// another owner or use.
    #[must_use]
    pub fn push_far(&mut self, far: Far, addr: usize, len: u32, key: Key) -> bool {
        let is_the_one = *self.far.get_or_insert(far) == far && key != Key::NONE;
        if is_the_one {
            self.add(Span { addr, len, key });
        }
        is_the_one
    }

    fn add(&mut self, span: Span) {
        if self.list.push(span).is_ok() {
            self.len += span.len();
        }
    }

    /// The number of bytes of all spans.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// The owner of the spans that are not mapped here, if there are any.
    #[inline]
    pub const fn far(&self) -> Option<Far> {
        self.far
    }

    /// Whether no span is mapped here.
    pub const fn are_all_far(&self) -> bool {
        self.far.is_some() && !self.has_near
    }

    /// The spans of a range of the bytes.
    pub fn range(&self, range: Range<usize>) -> impl Iterator<Item = Span> + use<'_> {
        let mut cursor = Cursor::at(self, range.start);
        let mut left = range.len();
        std::iter::from_fn(move || {
            let span = cursor.span(left)?;
            left -= span.len();
            cursor.advance(span.len());
            Some(span)
        })
    }
}

/// Spans that may be written, too.
#[derive(Debug)]
pub struct Target<'w>(Spans<'w>);

impl<'w> Target<'w> {
    /// No spans.
    pub const fn new() -> Self {
        Self(Spans::new())
    }

    /// The first `len` bytes of these words, or all of them.
    pub fn of_words(words: &'w [AtomicU64], len: usize) -> Self {
        Self(Spans::of_words(words, len))
    }

    /// The spans.
    pub const fn spans(&self) -> &Spans<'w> {
        &self.0
    }

    /// One span that is not mapped here; none if it is.
    pub fn of_far(far: Far, span: Span) -> Self {
        let mut spans = Spans::new();
        // Without a key it is not added.
        let _ = spans.push_far(far, span.addr, span.len, span.key);
        Self(spans)
    }

    /// The spans, to add to.
    ///
    /// # Safety
    /// The added spans must be writable for `'w`.
    pub const unsafe fn spans_mut(&mut self) -> &mut Spans<'w> {
        &mut self.0
    }
}

/// Copies all of `from` to the beginning of `to`, or as much as fits. If one span overlaps another, the bytes from
/// before the copy arrive.
#[inline]
pub fn copy(from: &Spans<'_>, to: &Target<'_>) {
    let len = from.len.min(to.0.len);
    if overlap(from, &to.0) {
        return copy_overlapping(from, to, len);
    }
    copy_range(from, to, 0..len);
}

/// As [`copy`], but a reader that sees the last eight bytes of up to 4 KiB sees all of them (Q8). Programs must not
/// rely on it: no specification guarantees it.
#[inline]
pub fn copy_last_word_late(from: &Spans<'_>, to: &Target<'_>) {
    let len = from.len.min(to.0.len);
    if overlap(from, &to.0) {
        return copy_overlapping(from, to, len);
    }
    copy_in_order(from, to, len);
}

/// As [`copy`], but of up to 4 KiB a reader sees the last eight bytes first, and for a moment no others.
#[cold]
pub fn copy_last_word_early(from: &Spans<'_>, to: &Target<'_>) {
    let len = from.len.min(to.0.len);
    if !is_late(len) || overlap(from, &to.0) {
        return copy(from, to);
    }
    copy_range(from, to, len - 8..len);
    sync::write_fence();
    // A reader of this process gets the processor, if there is but one.
    thread::yield_now();
    copy_range(from, to, 0..len - 8);
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

/// Copies up to 4 KiB through a buffer. Larger copies go span by span, which is correct for a span that overlaps its
/// own destination; no specification requires more.
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

/// Copies a range of the bytes, up to the first that are not mapped here.
pub fn copy_range(from: &Spans<'_>, to: &Target<'_>, range: Range<usize>) {
    copy_at(from, range.start, to, range.start, range.len());
}

/// As [`copy_range`], with different offsets in the two.
#[inline]
pub fn copy_at(from: &Spans<'_>, from_at: usize, to: &Target<'_>, to_at: usize, len: usize) {
    let (mut source, mut target) = (Cursor::at(from, from_at), Cursor::at(&to.0, to_at));
    let mut left = len;
    while left > 0 {
        let (Some(from), Some(to)) = (source.span(left), target.span(left)) else { break };
        let len = from.len().min(to.len());
        if from.is_far() || to.is_far() {
            break;
        }
        // SAFETY: both cursors have at least `len` bytes left in one span; the source's may be read (`push`), and the
        // target's written (`Target::spans_mut`).
        unsafe { move_bytes(to.addr as *mut u8, from.addr as *const u8, len) };
        left -= len;
        if left > 0 {
            source.advance(len);
            target.advance(len);
        }
    }
}

/// A position in a list of spans.
struct Cursor<'a> {
    spans: &'a [Span],
    offset: usize,
}

impl<'a> Cursor<'a> {
    fn at(spans: &'a Spans<'_>, offset: usize) -> Self {
        let mut cursor = Self { spans: &spans.list, offset };
        if offset > 0 {
            cursor.advance(0);
        }
        cursor
    }

    /// The rest of the current span, at most `limit` bytes; `None` at the end.
    fn span(&self, limit: usize) -> Option<Span> {
        let span = self.spans.first().filter(|_| limit > 0)?;
        let len = limit.min(span.len() - self.offset) as u32;
        Some(Span { addr: span.addr + self.offset, len, key: span.key })
    }

    fn advance(&mut self, len: usize) {
        self.offset += len;
        while let [span, rest @ ..] = self.spans {
            if self.offset < span.len() {
                break;
            }
            self.offset -= span.len();
            self.spans = rest;
        }
    }
}

#[cfg(test)]
mod tests;
