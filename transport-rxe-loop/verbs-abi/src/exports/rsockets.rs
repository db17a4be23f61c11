//! rsockets, `rsocket(7)`, which are not supported.
//!
//! `rsocket` fails with EOPNOTSUPP. So there is no descriptor of an rsocket, and what takes one fails with EBADF, as
//! librdmacm's functions do with other descriptors. `rpoll` and `rselect` take any descriptor.

use libc::{epoll_event, fd_set, iovec, msghdr, nfds_t, off_t, pollfd, timeval};

use super::unsupported;
use crate::errno::{Errno, minus_one};
use crate::sys::*;

/// -1, since there is no rsocket: EBADF.
fn none() -> c_int {
    minus_one(Err(Errno::BADF))
}

fixed! {
    /// `socket(2)`.
    rsocket(c_int, c_int, c_int) -> c_int = minus_one(unsupported());
    /// `bind(2)`.
    rbind(c_int, *const sockaddr, socklen_t) -> c_int = none();
    /// `listen(2)`.
    rlisten(c_int, c_int) -> c_int = none();
    /// `accept(2)`.
    raccept(c_int, *mut sockaddr, *mut socklen_t) -> c_int = none();
    /// `connect(2)`.
    rconnect(c_int, *const sockaddr, socklen_t) -> c_int = none();
    /// `shutdown(2)`.
    rshutdown(c_int, c_int) -> c_int = none();
    /// `close(2)`.
    rclose(c_int) -> c_int = none();

    /// `recv(2)`.
    rrecv(c_int, *mut c_void, usize, c_int) -> isize = none() as isize;
    /// `recvfrom(2)`.
    rrecvfrom(c_int, *mut c_void, usize, c_int, *mut sockaddr, *mut socklen_t) -> isize =
        none() as isize;
    /// `recvmsg(2)`.
    rrecvmsg(c_int, *mut msghdr, c_int) -> isize = none() as isize;
    /// `send(2)`.
    rsend(c_int, *const c_void, usize, c_int) -> isize = none() as isize;
    /// `sendto(2)`.
    rsendto(c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> isize =
        none() as isize;
    /// `sendmsg(2)`.
    rsendmsg(c_int, *const msghdr, c_int) -> isize = none() as isize;
    /// `read(2)`.
    rread(c_int, *mut c_void, usize) -> isize = none() as isize;
    /// `readv(2)`.
    rreadv(c_int, *const iovec, c_int) -> isize = none() as isize;
    /// `write(2)`.
    rwrite(c_int, *const c_void, usize) -> isize = none() as isize;
    /// `writev(2)`.
    rwritev(c_int, *const iovec, c_int) -> isize = none() as isize;

    /// `getpeername(2)`.
    rgetpeername(c_int, *mut sockaddr, *mut socklen_t) -> c_int = none();
    /// `getsockname(2)`.
    rgetsockname(c_int, *mut sockaddr, *mut socklen_t) -> c_int = none();
    /// `setsockopt(2)`.
    rsetsockopt(c_int, c_int, c_int, *const c_void, socklen_t) -> c_int = none();
    /// `getsockopt(2)`.
    rgetsockopt(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int = none();
    /// `fcntl(2)`. What C passes behind the command is not looked at.
    rfcntl(c_int, c_int) -> c_int = none();

    /// `rsocket(7)`: memory that a peer may write.
    riomap(c_int, *mut c_void, usize, c_int, c_int, off_t) -> off_t = none().into();
    /// `rsocket(7)`: what undoes it.
    riounmap(c_int, *mut c_void, usize) -> c_int = none();
    /// `rsocket(7)`: writing there. The number of bytes has no sign: the largest stands for -1.
    riowrite(c_int, *const c_void, usize, off_t, c_int) -> usize = none() as usize;

    /// `epoll_create1(2)`: of nothing but rsockets.
    repoll_create(c_int) -> c_int = minus_one(unsupported());
    /// `epoll_ctl(2)`.
    repoll_ctl(c_int, c_int, c_int, *mut epoll_event) -> c_int = none();
    /// `epoll_wait(2)`.
    repoll_wait(c_int, *mut epoll_event, c_int, c_int) -> c_int = none();
}

unsafe extern "C-unwind" {
    // The C library unwinds a thread out of these that is cancelled.
    fn poll(fds: *mut pollfd, nfds: nfds_t, timeout: c_int) -> c_int;
    fn select(
        nfds: c_int,
        readfds: *mut fd_set,
        writefds: *mut fd_set,
        exceptfds: *mut fd_set,
        timeout: *mut timeval,
    ) -> c_int;
}

/// `poll(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpoll(fds: *mut pollfd, nfds: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the program passes what the manual page of the function requires.
    unsafe { poll(fds, nfds, timeout) }
}

/// `select(2)`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rselect(
    nfds: c_int,
    readfds: *mut fd_set,
    writefds: *mut fd_set,
    exceptfds: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: as above.
    unsafe { select(nfds, readfds, writefds, exceptfds, timeout) }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::ptr;

    use super::*;

    #[test]
    fn there_is_no_rsocket_and_other_descriptors_are_none() {
        let (fd, null) = (std::io::stdin().as_raw_fd(), ptr::null_mut());
        let told = |answer: isize, errno| assert_eq!((answer, Errno::last()), (-1, errno));
        // SAFETY: nothing is looked at.
        unsafe {
            told(rsocket(libc::AF_INET, libc::SOCK_STREAM, 0) as isize, Errno::OPNOTSUPP);
            for answer in [
                rclose(fd) as isize,
                rfcntl(fd, libc::F_GETFL) as isize,
                rread(fd, null, 0),
                riomap(fd, null, 0, 0, 0, 0) as isize,
                riowrite(fd, null, 0, 0, 0).cast_signed(),
            ] {
                told(answer, Errno::BADF);
            }
        }
    }

    #[test]
    fn plain_descriptors_can_be_polled_and_selected() {
        let (read, write) = std::io::pipe().unwrap();
        let (read, write) = (read.as_raw_fd(), write.as_raw_fd());
        let mut fds = [(read, libc::POLLIN), (write, libc::POLLOUT)].map(|(fd, events)| pollfd {
            fd,
            events,
            revents: 0,
        });
        let mut now = timeval { tv_sec: 0, tv_usec: 0 };
        // SAFETY: buffers for what is asked; the descriptors are small enough for a set, which is zero when empty.
        unsafe {
            assert_eq!(rpoll(fds.as_mut_ptr(), 2, 0), 1);
            assert_eq!(fds.map(|fd| fd.revents), [0, libc::POLLOUT]);
            let [mut reads, mut writes]: [fd_set; 2] = std::mem::zeroed();
            libc::FD_SET(read, &raw mut reads);
            libc::FD_SET(write, &raw mut writes);
            let most = read.max(write) + 1;
            let null = ptr::null_mut();
            let count = rselect(most, &raw mut reads, &raw mut writes, null, &raw mut now);
            assert_eq!(count, 1);
            assert!(libc::FD_ISSET(write, &raw const writes));
            assert!(!libc::FD_ISSET(read, &raw const reads));
        }
    }
}
