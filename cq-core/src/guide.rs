//! Guides to the engine alone, from the first line to what can go wrong. Those to what stands on it are pages of cq-verbs and
//! cq-testing.
//!
//! | guide | for a program that |
//! |---|---|
//! | [`firmware`] | runs without an operating system: a static queue, an interrupt, `WFI` |

pub mod firmware;
