//! The carrier within a machine: a request is one datagram, with an end of a socket pair, to the listener's one socket.
//!
//! That socket is a path beside the fabric with a random number that the [registry](super::registry) has, and mode 0600: other
//! users can't send to it. Another user can take such a path first: a listener passes it over, and who requests a connection
//! sees by the owner of the file that this is no listener.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::fs::{Mode, chmod, fchmod, stat, unlink};
use rustix::io::Errno;
use rustix::net::{self, AddressFamily, RecvFlags, ReturnFlags, SendFlags, Shutdown};
use rustix::net::{SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::geteuid;

use super::carrier::{Arrived, Carrier, End, Incoming, Listener, Sent, Unsent};
use super::port::{Place, random};
use super::registry::{Bound, Entry, Ports};
use crate::protocol::cm::Received;
use crate::protocol::cm::message::{Kind, MAX, Message};
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::{KeptFd, above_streams, socket};
use crate::shm::unshared;
use crate::sync;

const DONTWAIT: RecvFlags = RecvFlags::DONTWAIT;
const DGRAM: SocketType = SocketType::DGRAM;

/// How many datagrams a socket has at least, where nobody has changed that: `net.unix.max_dgram_qlen`.
const SPACE: u32 = 10;

impl Carrier for Ports {
    fn listen(&self, bound: &Bound) -> Result<Box<dyn Listener>, Errno> {
        let socket = socket(AddressFamily::UNIX, DGRAM)?;
        // One that failed before may have left it.
        self.socket(bound.entry).into_iter().for_each(|path| _ = unlink(path));
        // Before it has a name: nobody else can send to it at any time.
        fchmod(&socket, Mode::from(0o600))?;
        let path = loop {
            let number = random().max(1);
            let path = self.shm.path().listener(number);
            sync::release(&bound.entry.socket, number);
            match net::bind(&socket, &SocketAddrUnix::new(&path)?) {
                Err(Errno::ADDRINUSE) => {}
                named => break named.map(|()| path)?,
            }
        };
        // This process' umask may have left less.
        chmod(&path, Mode::from(0o600))?;
        steps::done(Step::Named);
        Ok(Box::new(Inbox { entry: bound.entry, place: bound.place, socket: KeptFd::new(socket)? }))
    }

    fn request(&self, to: &Place, message: &Message) -> Sent {
        let is_for = |it: &&Entry| it.place().is_for(to.addr) && sync::acquire(&it.backlog) != 0;
        let entry = self.at(to).find(is_for).ok_or(Unsent::NoListener)?;
        let mut space = Ok(());
        // Before it is sent: who dies in between leaves one too many, until the listener finds none left.
        sync::fetch_update(&entry.sent, |sent| {
            let received = sync::acquire(&entry.received);
            // Where somebody has sent one without counting it, more were received than sent.
            let in_socket = sent.wrapping_sub(received).cast_signed().max(0).cast_unsigned();
            space = match in_socket.saturating_add(sync::acquire(&entry.queued)) {
                waiting if waiting >= sync::load(&entry.backlog) => Err(Unsent::Full),
                _ if in_socket > SPACE => Err(Unsent::Later),
                _ => Ok(()),
            };
            space.ok().map(|()| received.wrapping_add(in_socket + 1))
        });
        space.inspect_err(|_| self.call(entry))?;
        let sent = above_streams(|| self.send(entry, message));
        let end = sent.inspect_err(|_| sync::leave(&entry.sent)).map_err(|errno| match errno {
            Errno::CONNREFUSED | Errno::NOENT | Errno::PIPE => Unsent::NoListener,
            Errno::AGAIN | Errno::BUSY | Errno::TOOMANYREFS => {
                self.call(entry);
                Unsent::Later
            }
            errno => Unsent::Refused(errno),
        })?;
        steps::done(Step::Sent);
        Ok(Box::new(end))
    }
}

impl Ports {
    /// Sends a request to a listener's socket.
    fn send(&self, entry: &Entry, message: &Message) -> Result<Socket, Errno> {
        let path = self.socket(entry).ok_or(Errno::CONNREFUSED)?;
        let (unix, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        let (bytes, sender) = (message.to_bytes(), net::socket_with(unix, DGRAM, flags, None)?);
        net::connect(&sender, &SocketAddrUnix::new(&path)?)?;
        // After connecting: what has the path now is what it is connected to, or is not there any more.
        if stat(&path)?.st_uid != geteuid().as_raw() {
            return Err(Errno::ACCESS);
        }
        // A child that had the other end would keep it open after the listener's death.
        let held_off = unshared::try_hold_off()?;
        let (own, its) = net::socketpair(unix, SocketType::SEQPACKET, flags, None)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = net::SendAncillaryBuffer::new(&mut space);
        let fds = [its.as_fd()];
        control.push(net::SendAncillaryMessage::ScmRights(&fds));
        net::sendmsg(&sender, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
        drop((its, held_off));
        Ok(Socket(KeptFd::new(own)?))
    }
}

/// A listener's socket.
#[derive(Debug)]
struct Inbox {
    entry: &'static Entry,
    place: Place,
    socket: KeptFd,
}

impl Listener for Inbox {
    fn fd(&self) -> &KeptFd {
        &self.socket
    }

    fn next(&self) -> Result<Arrived, Errno> {
        let sent = sync::acquire(&self.entry.sent);
        // What is no request is passed over; who sends that without end is not waited for.
        let mut taken = (0..64).filter_map(|_| self.take().transpose());
        let next = taken.next().unwrap_or(Err(Errno::AGAIN));
        if matches!(next, Err(Errno::AGAIN)) {
            sync::release(&self.entry.received, sent);
        }
        next
    }

    fn has_queued(&self, count: u32) {
        sync::release(&self.entry.queued, count);
    }
}

impl Drop for Inbox {
    /// Also if a forked child has the socket, too.
    fn drop(&mut self) {
        let _ = self.socket.get().and_then(|socket| net::shutdown(socket, Shutdown::Both));
        while self.next().is_ok() {}
    }
}

impl Inbox {
    /// Takes the next datagram; `None` if it is no request for who listens here, with a socket that the same user has made.
    ///
    /// # Errors
    /// EAGAIN: there is none. EMFILE, ENFILE: no descriptor is free for what it brings. It stays where it is.
    fn take(&self) -> Result<Option<Arrived>, Errno> {
        // One byte more than a message has, to see that there is too much.
        let mut bytes = [0; MAX + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = net::RecvAncillaryBuffer::new(&mut space);
        let look = RecvFlags::PEEK | RecvFlags::TRUNC | RecvFlags::CMSG_CLOEXEC | DONTWAIT;
        let (socket, into) = (self.socket.get()?, &mut [IoSliceMut::new(&mut bytes)]);
        let seen = above_streams(|| net::recvmsg(socket, into, &mut control, look))?;
        let end = control.drain().find_map(|message| match message {
            net::RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        if end.is_none() && seen.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Errno::MFILE);
        }
        net::recv(socket, &mut [0; 1][..], DONTWAIT)?;
        let message = bytes.get(..seen.bytes).and_then(Message::from_bytes);
        let (Some(end), Some(message)) = (end, message) else { return Ok(None) };
        let maker = getsockopt(&end, PeerCredentials).map(|maker| maker.uid());
        let is_request = message.kind == Kind::Req && self.place.is_for(message.addresses[1]);
        if !is_request || maker != Ok(geteuid().as_raw()) {
            return Ok(None);
        }
        sync::count(&self.entry.received);
        steps::done(Step::Received);
        Ok(Some((Box::new(Socket(KeptFd::new(end)?)), message)))
    }
}

/// An end of a socket pair.
#[derive(Debug)]
struct Socket(KeptFd);

impl End for Socket {
    fn fd(&self) -> &KeptFd {
        &self.0
    }

    fn send(&self, message: &Message) -> Result<(), Errno> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        net::send(self.0.get()?, &message.to_bytes(), flags)?;
        steps::done(Step::Sent);
        Ok(())
    }

    fn receive(&self, is_last: bool) -> Option<Incoming> {
        let mut bytes = [0; MAX + 1];
        let socket = self.0.get();
        match socket.and_then(|fd| net::recv(fd, &mut bytes[..], RecvFlags::TRUNC | DONTWAIT)) {
            Err(Errno::AGAIN) if is_last => {
                let _ = net::shutdown(socket.ok()?, Shutdown::Read);
                self.receive(false).filter(|(received, _)| *received != Received::HungUp)
            }
            Err(Errno::AGAIN) => None,
            // The peer has left something unread. What it had sent comes next.
            Err(Errno::CONNRESET) => self.receive(is_last),
            Ok((_, 0)) | Err(_) => Some((Received::HungUp, None)),
            Ok((_, len)) => {
                steps::done(Step::Received);
                let message = bytes.get(..len).and_then(Message::from_bytes);
                Some((message.as_ref().map_or(Received::Malformed, Message::received), message))
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = self.0.get().and_then(|socket| net::shutdown(socket, Shutdown::Both));
    }
}
