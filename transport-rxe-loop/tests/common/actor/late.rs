//! What an actor does with a page of its memory that does not come until the actor brings it: `userfaultfd(2)`.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;

use rustix::io::Errno;
use rustix::mm::{Advice, UserfaultfdFlags, madvise, userfaultfd};

use super::{LEN, Memory, Stage};
use crate::common::process::may_wait;
use crate::common::*;

const PAGE: usize = 4096;

// Of `<linux/userfaultfd.h>`.
const UFFD_USER_MODE_ONLY: u32 = 1;
const UFFD_API: u64 = 0xaa;
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
const UFFDIO_ZEROPAGE: libc::Ioctl = 0xc020_aa04_u32 as libc::Ioctl;
const MODE_MISSING: u64 = 1;

/// A page that does not come.
pub struct Late {
    fd: OwnedFd,
    page: usize,
}

impl Late {
    /// The page in the middle of some memory, which is no longer there; the system may refuse it.
    fn new(memory: &Memory) -> Result<Self, Errno> {
        let Memory::Heap(_, words) = memory else { panic!("not on the heap") };
        let page = (words.as_ptr() as usize + LEN / 2).next_multiple_of(PAGE);
        let flags = UserfaultfdFlags::from_bits_retain(UFFD_USER_MODE_ONLY);
        // SAFETY: only accesses to the memory wait, those of other processes' included.
        let fd =
            unsafe { userfaultfd(flags | UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK) }?;
        let late = Self { fd, page };
        late.control(UFFDIO_API, &mut [UFFD_API, 0, 0]);
        late.control(UFFDIO_REGISTER, &mut [page as u64, PAGE as u64, MODE_MISSING, 0]);
        // SAFETY: the bytes of the page are atomics, and may be zeros.
        unsafe { madvise(page as *mut _, PAGE, Advice::LinuxDontNeed) }?;
        Ok(late)
    }

    fn control<const N: usize>(&self, command: libc::Ioctl, argument: &mut [u64; N]) {
        // SAFETY: each command's argument is so many words.
        let failed = unsafe { libc::ioctl(self.fd.as_raw_fd(), command, argument.as_mut_ptr()) };
        assert_eq!(failed, 0, "{}", io::Error::last_os_error());
    }

    /// Waits until somebody waits for it.
    pub fn is_wanted(&self) {
        let mut event = [0; 32];
        wait_for(|| rustix::io::read(&self.fd, &mut event).is_ok());
    }

    /// Brings it.
    fn come(&self) {
        self.control(UFFDIO_ZEROPAGE, &mut [self.page as u64, PAGE as u64, 0, 0]);
    }
}

impl Stage {
    /// Has a page of its memory not come; says why it can't have that.
    pub fn be_late(&mut self) -> String {
        match Late::new(self.memory()) {
            Ok(late) => {
                self.late = Some(late);
                "done".to_owned()
            }
            Err(errno) => errno.to_string(),
        }
    }

    /// Ends the queue pair while somebody copies to the page that does not come, which is brought as soon as that waits,
    /// or is over; says which.
    pub fn end_late(&mut self, verb: &str) -> String {
        let late = self.late.take().expect("a page that does not come");
        let fresh = self.pd.qp(&self.cq).create().unwrap();
        let mut qp = mem::replace(&mut self.qps[self.qp], fresh);
        let end = move || match verb {
            "reset" => qp.modify(&QpAttr::new().state(QpState::RESET)).unwrap(),
            "error" => qp.modify(&QpAttr::new().state(QpState::ERR)).unwrap(),
            _ => drop(qp),
        };
        let (waits, ()) = may_wait(end, || late.come());
        if waits { "waited" } else { "did not wait" }.to_owned()
    }
}
