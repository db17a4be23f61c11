//! What a producer pushes.

use crate::wc::Wc;

/// A completion to push: a [`Wc`], or an [`Entry`], which says more.
pub trait Completion: sealed::Sealed {
    /// The completion.
    fn wc(&self) -> &Wc;

    /// The tag that a [raw](super::raw) queue with tags returns with it. Other queues discard it.
    #[inline(always)]
    fn tag(&self) -> u32 {
        0
    }

    /// Whether the message was sent SOLICITED. Applies to receives only ([N3](crate::contract#n3)).
    #[inline(always)]
    fn solicited(&self) -> bool {
        false
    }

    /// Whether a consumer armed for solicited completions waits for it: a solicited receive, or any failure, but never
    /// a successful send ([N3](crate::contract#n3)).
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

/// A completion with a tag and its SOLICITED flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The completion.
    pub wc: Wc,
    /// The tag that a [raw](super::raw) queue with tags returns with it.
    pub tag: u32,
    /// Whether the message was sent SOLICITED. Applies to receives only ([N3](crate::contract#n3)).
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
