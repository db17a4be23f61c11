//! Guides to the engine: one subject each, from the first line to what can go wrong.
//!
//! | guide | for a program that |
//! |---|---|
//! | [`firmware`] | runs without an operating system: a static queue, an interrupt, `WFI` |

pub mod firmware;
