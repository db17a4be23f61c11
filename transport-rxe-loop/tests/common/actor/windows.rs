//! What an actor does with a memory window.

use std::thread;

use super::{LEN, Stage};
use crate::common::*;

impl Stage {
    /// Binds its window to a range, with rights; says how that ended, and by which key.
    pub fn bind(&mut self, numbers: &[u64]) -> String {
        let window = self.window.rkey();
        let sge = self
            .memory()
            .sge(numbers[0] as usize..numbers[0] as usize + numbers[1] as usize)
            .unwrap();
        let bind = WindowBind {
            window,
            rkey: inc_rkey(window),
            lkey: sge.lkey,
            addr: sge.addr,
            length: sge.length.into(),
            access: Access::from_bits_retain(numbers[2] as u32),
        };
        self.qps[self.qp].post_send(&[SendWr::bind_window(1, bind)]).unwrap();
        format!("{} {}", self.outcome(), bind.rkey)
    }

    pub fn invalidate(&mut self, rkey: u32) -> String {
        self.qps[self.qp].post_send(&[SendWr::local_invalidate(1, rkey)]).unwrap();
        self.outcome()
    }

    /// Takes a key away once somebody writes through it; says whether memory stays as it is from then on.
    pub fn shut(&mut self, rkey: u32) -> String {
        wait_for(|| self.memory().read(0, 1) != [0]);
        let outcome = self.invalidate(rkey);
        self.memory().write(0, &vec![7; LEN]);
        for _ in 0..20 {
            thread::yield_now();
            if self.memory().read(0, LEN).iter().any(|&byte| byte != 7) {
                return format!("{outcome}, and written to");
            }
        }
        outcome
    }
}
