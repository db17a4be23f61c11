//! One entry: how it is written and read.

#[cfg(not(loom))]
use core::ptr::NonNull;

#[cfg(not(loom))]
use super::CapacityError;
use crate::sync::{self, AtomicWord, Tracked, array_of, const_unless_loom};
use crate::wc::{WORDS, Wc, generation_of, with_generation};

const LAST: usize = WORDS - 1;

/// One completion in the ring. Any bytes are a valid slot, zeros are an empty one.
#[derive(Debug)]
#[repr(C, align(8))]
pub struct Slot {
    words: [AtomicWord; WORDS],
    tracked: Tracked,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Slot>() == 48 && align_of::<Slot>() == 8);

impl Slot {
    const_unless_loom! {
        /// A slot that was never written.
        #[must_use]
        pub const fn new() -> Self {
            Self { words: array_of![AtomicWord::new(0); WORDS], tracked: Tracked::new() }
        }
    }

    /// Slots in memory that this crate did not make: shared memory, a DMA area.
    ///
    /// # Errors
    /// `len` can't be a ring's storage, or `base` is not aligned to 8 bytes.
    ///
    /// # Safety
    /// The `48 * len` bytes at `base` must stay mapped for `'a`, readable and writable, and whoever else
    /// reaches them during `'a` must do so by atomic accesses, to whole words as this crate's. For a new
    /// ring they have to be zero; otherwise it begins with forged entries, which is no unsoundness.
    #[cfg(not(loom))]
    #[allow(unsafe_code)]
    pub unsafe fn slice_from_raw<'a>(
        base: NonNull<u8>,
        len: usize,
    ) -> Result<&'a [Self], CapacityError> {
        CapacityError::check_storage(len)?;
        if !base.cast::<Self>().is_aligned() {
            return Err(CapacityError::Misaligned);
        }
        // SAFETY: aligned (checked), mapped and shared by atomics only (the caller's word), and any bytes
        // are a slot, since its fields are atomic integers.
        Ok(unsafe { core::slice::from_raw_parts(base.cast().as_ptr(), len) })
    }

    /// Makes the slot one that was never written.
    pub(crate) fn reset(&mut self) {
        sync::store(&self.words[LAST], 0);
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}

/// A slot, and the generation that it has once it is published; never 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) slot: &'a Slot,
    pub(super) generation: u16,
}

impl Place<'_> {
    #[inline(always)]
    pub(super) fn write(&self, wc: &Wc) {
        self.prepare(wc);
        self.publish(wc);
    }

    /// The first part of [`write`](Self::write): nobody sees anything yet.
    #[inline(always)]
    pub(super) fn prepare(&self, wc: &Wc) {
        self.slot.tracked.write();
        for (to, from) in self.slot.words[..LAST].iter().zip(wc.to_words()) {
            sync::store(to, from);
        }
    }

    /// The second part: of the same completion.
    #[inline(always)]
    pub(super) fn publish(&self, wc: &Wc) {
        let last = with_generation(wc.to_words()[LAST], self.generation);
        sync::publish(&self.slot.words[LAST], last);
    }

    #[inline(always)]
    pub(super) fn read(&self) -> Option<Wc> {
        let last = sync::observe(&self.slot.words[LAST]);
        if generation_of(last) != self.generation {
            return None;
        }
        self.slot.tracked.read();
        let mut words = [0; WORDS];
        for (to, from) in words[..LAST].iter_mut().zip(&self.slot.words) {
            *to = sync::load(from);
        }
        words[LAST] = with_generation(last, 0);
        Some(Wc::from_words(words))
    }

    /// A hint, but a true one after a fence or an Acquire: [`read`](Self::read) looks again.
    #[inline(always)]
    pub(super) fn is_published(&self) -> bool {
        generation_of(sync::load(&self.slot.words[LAST])) == self.generation
    }
}
