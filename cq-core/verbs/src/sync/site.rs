//! The orderings that loom models can weaken, by name.

/// A memory ordering that accounting needs. A loom model is run again with each of its sites weakened, and must then fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// `ask` as Relaxed.
    Ask,
    /// `see_asked` as Relaxed.
    SeeAsked,
    /// `give` as Relaxed.
    Give,
    /// `take` as Relaxed.
    Take,
    /// `answer` as Relaxed.
    Answer,
    /// `see_answer` as Relaxed.
    SeeAnswer,
}

cq_core::weakened_sites!(Site);
