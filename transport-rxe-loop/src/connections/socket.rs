//! Messages over a connection's socket.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{self, RecvFlags, SendFlags, Shutdown, sockopt};

use super::port::Place;
use crate::protocol::cm::message::{ADDRESS, Kind, MAX, Message, address_bytes, address_of};
use crate::protocol::cm::{Received, reason};
use crate::protocol::steps::{self, Step};
use crate::shm::descriptor::KeptFd;

/// Sends a message.
///
/// # Errors
/// The peer has closed its end, or takes no more.
pub fn send(socket: &KeptFd, message: &Message) -> Result<(), Errno> {
    let (socket, bytes) = (socket.get()?, message.to_bytes());
    retry_on_intr(|| net::send(socket, &bytes, SendFlags::NOSIGNAL))?;
    steps::done(Step::Sent);
    Ok(())
}

/// What an end receives, and the message that is.
pub type Incoming = (Received, Option<Message>);

/// What has arrived, with its message; `None` if nothing has.
pub fn receive(socket: &KeptFd) -> Option<Incoming> {
    // One byte more than a message has, to see that there is too much.
    let mut bytes = [0; MAX + 1];
    loop {
        return match socket.get().and_then(|fd| net::recv(fd, &mut bytes[..], RecvFlags::TRUNC)) {
            Err(Errno::AGAIN) => None,
            // The peer has left something unread. What it had sent comes next.
            Err(Errno::INTR | Errno::CONNRESET) => continue,
            Ok((_, 0)) | Err(_) => Some((Received::HungUp, None)),
            Ok((_, len)) => {
                steps::done(Step::Received);
                let message = bytes.get(..len).and_then(Message::from_bytes);
                Some((message.as_ref().map_or(Received::Malformed, Message::received), message))
            }
        };
    }
}

/// What had arrived, once nothing more can.
pub fn receive_the_last(socket: &KeptFd) -> Option<Incoming> {
    let _ = socket.get().and_then(|socket| net::shutdown(socket, Shutdown::Read));
    receive(socket).filter(|(received, _)| *received != Received::HungUp)
}

/// Ends what goes over a socket, or comes to one, in both directions. The peer learns of it even if a forked child has the
/// socket, too.
pub fn end(socket: &KeptFd) {
    let _ = socket.get().and_then(|socket| net::shutdown(socket, Shutdown::Both));
}

/// Rejects what is no request for a listener, or one for another address.
pub fn refuse(socket: &KeptFd) {
    let _ = send(socket, &Message { reason: reason::NO_LISTENER, ..Message::of(Kind::Rej) });
    end(socket);
}

/// Connects a socket to the listener at a place, and sends it a request. It is rung by a socket of datagrams.
///
/// # Errors
/// ECONNREFUSED: there is none. EAGAIN: too many requests wait for it. What else the system refused.
pub fn request(
    socket: &KeptFd,
    ringer: &KeptFd,
    to: &Place,
    message: &Message,
) -> Result<(), Errno> {
    for place in to.listeners() {
        let (its, name) = (socket.get()?, place.socket()?);
        match retry_on_intr(|| net::connect(its, &name)) {
            Ok(()) => steps::done(Step::Connected),
            Err(Errno::CONNREFUSED) => continue,
            Err(Errno::AGAIN) => {
                // They may be of processes that died before they rang: has it look at them.
                ring(ringer, &place, None);
                return Err(Errno::AGAIN);
            }
            Err(errno) => return Err(errno),
        }
        if !is_of_this_user(socket) {
            break;
        }
        // Where it fails, the listener has gone meanwhile, and the socket says so.
        if send(socket, message).is_ok() {
            announce(socket, ringer, &place, message.addresses[0]);
        }
        return Ok(());
    }
    Err(Errno::CONNREFUSED)
}

/// Tells the listener at a place of a request that was sent from this address. If its bell is full, a message behind the
/// request says that it may be taken without a ring: the listener silences its bell, and looks after that.
fn announce(socket: &KeptFd, ringer: &KeptFd, place: &Place, from: SocketAddr) {
    if !ring(ringer, place, Some(from)) && send(socket, &Message::of(Kind::Announced)).is_ok() {
        ring(ringer, place, None);
    }
}

/// Has the listener at a place look, for the request from this address or any; false if its bell is full.
pub fn ring(ringer: &KeptFd, place: &Place, from: Option<SocketAddr>) -> bool {
    let (Ok(ringer), Ok(bell)) = (ringer.get(), place.bell()) else { return true };
    let bytes = from.map_or_else(|| vec![0], address_bytes);
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    retry_on_intr(|| net::sendto(ringer, &bytes, flags, &bell)) != Err(Errno::AGAIN)
}

/// Makes a bell unreadable, and adds the addresses from which it was rung; whether it was readable. What is left after so
/// many is somebody who rings without end.
pub fn silence(bell: &KeptFd, rings: &mut BTreeMap<SocketAddr, usize>) -> bool {
    const MOST: usize = 4096;
    let Ok(bell) = bell.get() else { return false };
    let mut bytes = [0; ADDRESS + 1];
    let take = || {
        let taken = retry_on_intr(|| net::recv(bell, &mut bytes[..], RecvFlags::TRUNC));
        let len = taken.ok()?.1;
        Some(bytes.get(..len).and_then(|bytes| bytes.try_into().ok()).map(address_of))
    };
    let rung: Vec<_> = std::iter::from_fn(take).take(MOST).collect();
    rung.iter().flatten().for_each(|&from| *rings.entry(from).or_default() += 1);
    !rung.is_empty()
}

/// Whether the process at the other end is of this user: the names are everybody's.
pub fn is_of_this_user(socket: &KeptFd) -> bool {
    let peer = socket.get().and_then(sockopt::socket_peercred);
    peer.is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}
