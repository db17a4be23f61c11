//! What a producer is given to push.

use crate::wc::Wc;

/// A completion that a producer takes: a [`Wc`], or an [`Entry`], which says more.
pub trait Completion: sealed::Sealed {
    /// The completion.
    fn wc(&self) -> &Wc;

    /// What a [raw](super::raw) queue with tags hands back with it; elsewhere it is lost.
    #[inline(always)]
    fn tag(&self) -> u32 {
        0
    }

    /// Whether the message was sent SOLICITED, which counts for receives only (N3).
    #[inline(always)]
    fn solicited(&self) -> bool {
        false
    }

    /// Whether it is what a consumer that armed for solicited completions waits for: a solicited receive, and any
    /// failure, but never a successful send (N3).
    #[inline]
    fn is_urgent(&self) -> bool {
        match self.wc().result() {
            Ok(done) => self.solicited() && done.is_recv(),
            Err(_) => true,
        }
    }
}

impl Completion for Wc {
    #[inline(always)]
    fn wc(&self) -> &Wc {
        self
    }
}

/// A completion, and what else a device knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The completion.
    pub wc: Wc,
    /// What a [raw](super::raw) queue with tags hands back with it.
    pub tag: u32,
    /// Whether the message was sent SOLICITED, which counts for receives only (N3).
    pub solicited: bool,
}

impl Completion for Entry {
    #[inline(always)]
    fn wc(&self) -> &Wc {
        &self.wc
    }

    #[inline(always)]
    fn tag(&self) -> u32 {
        self.tag
    }

    #[inline(always)]
    fn solicited(&self) -> bool {
        self.solicited
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Wc {}
    impl Sealed for super::Entry {}
}
