//! `defmt::Format` of completions: the defined fields only, as `Debug` has them; and of errors that return what was given,
//! which need not have it. Numbers and flags have theirs from `macros`, all others by deriving it.

use defmt::{Format, Formatter, write};

use crate::queue::ReuniteError;
#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
use crate::queue::mpsc::ResizeRingError;
use crate::wc::{Completed, Wc};

impl<P, C> Format for ReuniteError<P, C> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "ReuniteError");
    }
}

#[cfg(all(target_has_atomic = "64", not(cq_core_word32)))]
impl<E: crate::entry::Entry> Format for ResizeRingError<'_, E> {
    fn format(&self, f: Formatter<'_>) {
        write!(f, "ResizeRingError {{ why: {} }}", self.why);
    }
}

impl Format for Wc {
    fn format(&self, f: Formatter<'_>) {
        match self.result() {
            Ok(completed) => completed.format(f),
            Err(failed) => failed.format(f),
        }
    }
}

impl Format for Completed<'_> {
    fn format(&self, f: Formatter<'_>) {
        let (wr_id, opcode, len) = (self.wr_id(), self.opcode(), self.byte_len());
        write!(f, "Completed {{ wr_id: {=u64}, opcode: {}, byte_len: {=u32}, ", wr_id, opcode, len);
        write!(f, "qp_num: {=u32}, flags: {}", self.qp_num(), self.flags());
        if let Some(imm) = self.imm() {
            write!(f, ", imm: {=[u8; 4]}", imm);
        }
        if let Some(rkey) = self.invalidated_rkey() {
            write!(f, ", invalidated_rkey: {=u32}", rkey);
        }
        write!(f, " }}");
    }
}
