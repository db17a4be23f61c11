//! A process of the same user sends anything to the one socket of a listener, with any descriptors and with none; it sends
//! anything on the ends of connections, and listens itself, for clients to whom it then answers anything. The victims are a
//! listener and clients that connect to it. Bytes are a message, which has the same bytes again, or none; and nothing may
//! panic, hang, or keep an honest client from being served afterwards.
#![no_main]

use std::fs::{self, File};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process;
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use arbitrary::Arbitrary;
use cq_verbs::cm::{ConnParam, EventKind};
use cq_verbs::setup::{QpState, QpType};
use libfuzzer_sys::fuzz_target;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, send,
    sendmsg_addr, socket_with, socketpair,
};
use transport_rxe_loop::cm::{CmId, EventChannel, PortSpace};
use transport_rxe_loop::fuzzing::message::{Kind, MAX, Message};
use transport_rxe_loop::{Context, OpenOptions};
use verify_fuzz::fabric;

#[derive(Arbitrary, Debug)]
struct Input {
    is_ud: bool,
    backlog: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A datagram to the listener, with descriptors.
    Datagram(Bytes, Fds),
    /// A message on an end.
    Message(u8, Bytes),
    /// An end is closed.
    Close(u8),
    /// The listener's socket is read by somebody else, who has the ends that came from then on.
    Steal,
    /// A client requests a connection.
    Connect(u8),
    /// A victim takes an event.
    Take,
    /// A victim calls something, for one of its identifiers.
    Call(u8, Call),
}

#[derive(Arbitrary, Debug)]
enum Bytes {
    Any(Vec<u8>),
    /// A message of a kind, to the listener, with bytes that are changed; and perhaps of another length.
    Like {
        kind: u8,
        data: u8,
        changed: Vec<(u16, u8)>,
        len: Option<u16>,
    },
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Fds {
    None,
    Packets,
    Blocking,
    Stream,
    File,
    Two,
}

#[derive(Arbitrary, Clone, Copy, Debug)]
enum Call {
    Accept,
    Reject,
    Establish,
    Disconnect,
    Notify,
    Attributes,
    Drop,
}

/// More steps find nothing that fewer do not.
const MOST: usize = 48;
const PATIENCE: Duration = Duration::from_secs(5);
const PARAM: ConnParam<&[u8]> = ConnParam::new(5, b"data".as_slice())
    .srq(false)
    .responder_resources(1)
    .initiator_depth(1)
    .flow_control(false)
    .retry_count(7)
    .rnr_retry_count(7);

fuzz_target!(|input: Input| {
    let Input { is_ud, backlog, steps } = input;
    let mut world = World::new(is_ud, backlog);
    steps.iter().take(MOST).for_each(|step| world.step(step));
    world.ends.clear();
    world.serve();
});

/// The device of all inputs: nothing of an input is left there.
fn context() -> &'static Context {
    static CONTEXT: OnceLock<Context> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let options = OpenOptions::new().fabric(&name()).limits(fabric::LIMITS);
        options.open("loop0").expect("it is a new fabric")
    })
}

fn name() -> String {
    format!("{}-cm", fabric::name(process::id()))
}

struct World {
    space: (PortSpace, QpType),
    /// Of the listener, and of the clients.
    channels: [EventChannel; 2],
    _listener: CmId,
    addr: SocketAddr,
    path: PathBuf,
    /// Identifiers of victims.
    ids: Vec<CmId>,
    /// Ends of the hostile process.
    ends: Vec<OwnedFd>,
    sender: OwnedFd,
}

impl World {
    fn new(is_ud: bool, backlog: u8) -> Self {
        let space = if is_ud { (PortSpace::UDP, QpType::UD) } else { (PortSpace::TCP, QpType::RC) };
        let channels =
            [(); 2].map(|()| EventChannel::new(context()).expect("there is a descriptor"));
        let listener = CmId::new(&channels[0], space.0, space.1).expect("it is no child");
        listener.bind(([127, 0, 0, 1], 0).into()).expect("a port is free");
        listener.listen(backlog.into()).expect("there is a descriptor");
        let addr = listener.local_addr().expect("it is bound");
        let path = listening().expect("it listens");
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let sender = socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
        let sender = sender.expect("there is a descriptor");
        Self { space, channels, _listener: listener, addr, path, ids: vec![], ends: vec![], sender }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Datagram(bytes, fds) => self.datagram(&self.bytes(bytes), *fds),
            Step::Message(end, bytes) => {
                let bytes = self.bytes(bytes);
                if let Some(end) = chosen(&self.ends, *end) {
                    let _ =
                        send(&self.ends[end], &bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
                }
            }
            Step::Close(end) => {
                drop(chosen(&self.ends, *end).map(|end| self.ends.swap_remove(end)))
            }
            Step::Steal => self.steal(),
            Step::Connect(resources) => _ = self.connect(*resources),
            Step::Take => self.take(),
            Step::Call(id, call) => self.call(*id, *call),
        }
    }

    fn bytes(&self, bytes: &Bytes) -> Vec<u8> {
        let bytes = match bytes {
            Bytes::Any(bytes) => bytes.clone(),
            Bytes::Like { kind, data, changed, len: to } => {
                let kinds = [Kind::Req, Kind::Rep, Kind::Rtu, Kind::Rej, Kind::Dreq, Kind::Drep];
                let private_data = vec![*data; (*data).into()];
                let mut param = ConnParam::default();
                param.private_data = private_data;
                let mut message = Message::of(kinds[usize::from(*kind) % kinds.len()]);
                message.addresses = [([127, 0, 0, 1], 9).into(), self.addr];
                let mut bytes = Message { param, ..message }.to_bytes();
                let len = bytes.len();
                changed.iter().for_each(|&(at, byte)| bytes[usize::from(at) % len] = byte);
                bytes.resize(to.map_or(len, |to| usize::from(to) % (2 * MAX)), *data);
                bytes
            }
        };
        if let Some(message) = Message::from_bytes(&bytes) {
            assert!(bytes.len() <= MAX);
            assert_eq!(Message::from_bytes(&message.to_bytes()), Some(message));
        }
        bytes
    }

    fn datagram(&mut self, bytes: &[u8], fds: Fds) {
        let pair = |kind, flags| socketpair(AddressFamily::UNIX, kind, flags, None);
        let pair = match fds {
            Fds::Blocking => pair(SocketType::SEQPACKET, SocketFlags::CLOEXEC),
            Fds::Stream => pair(SocketType::STREAM, SocketFlags::NONBLOCK),
            _ => pair(SocketType::SEQPACKET, SocketFlags::NONBLOCK),
        };
        let ((near, far), file) =
            (pair.expect("there are descriptors"), File::open("/proc/self/exe"));
        let file = file.expect("it is there");
        let fds: &[BorrowedFd<'_>] = match fds {
            Fds::None => &[],
            Fds::Two => &[far.as_fd(), far.as_fd()],
            Fds::File => &[file.as_fd()],
            _ => &[far.as_fd()],
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut with = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || with.push(SendAncillaryMessage::ScmRights(fds)));
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let to = SocketAddrUnix::new(&self.path).expect("it is short");
        let _ = sendmsg_addr(&self.sender, &to, &[IoSlice::new(bytes)], &mut with, flags);
        self.ends.push(near);
    }

    /// Takes what has arrived at the listener's socket.
    fn steal(&mut self) {
        let Some(socket) = socket_of(&self.path) else { return };
        let (mut bytes, flags) = ([0; MAX], RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut with = RecvAncillaryBuffer::new(&mut space);
        if recvmsg(&socket, &mut [IoSliceMut::new(&mut bytes)], &mut with, flags).is_ok() {
            for message in with.drain() {
                if let RecvAncillaryMessage::ScmRights(fds) = message {
                    self.ends.extend(fds);
                }
            }
        }
    }

    /// A client requests a connection; its key.
    fn connect(&mut self, resources: u8) -> Option<u64> {
        let id = CmId::new(&self.channels[1], self.space.0, self.space.1).ok()?;
        id.resolve_addr(None, self.addr).ok()?;
        id.resolve_route().ok()?;
        id.connect(&PARAM.responder_resources(resources)).ok()?;
        self.ids.push(id);
        self.ids.last().map(CmId::key)
    }

    /// Each victim takes an event.
    fn take(&mut self) {
        for channel in &self.channels {
            if let Ok(Some(event)) = channel.take() {
                assert!(event.event.param.private_data.len() <= 255);
                self.ids.extend(event.request);
            }
        }
    }

    fn call(&mut self, id: u8, call: Call) {
        let Some(at) = chosen(&self.ids, id) else { return };
        let id = &self.ids[at];
        let _ = match call {
            Call::Accept => id.accept(&PARAM),
            Call::Reject => id.reject(b"no"),
            Call::Establish => id.establish(),
            Call::Disconnect => id.disconnect(),
            Call::Notify => id.notify(),
            Call::Attributes => {
                let states = [QpState::INIT, QpState::RTR, QpState::RTS];
                states.iter().try_for_each(|&to| id.qp_attr(to).map(drop))
            }
            Call::Drop => {
                drop(self.ids.swap_remove(at));
                Ok(())
            }
        };
    }

    /// An honest client is served, once all others are gone.
    fn serve(&mut self) {
        self.ids.clear();
        let deadline = Instant::now() + PATIENCE;
        let mut client = None;
        loop {
            assert!(Instant::now() < deadline, "an honest client is not served");
            if let Ok(Some(event)) = self.channels[0].take() {
                let honest = event.event.param.private_data.starts_with(b"data");
                // What was there before is not accepted, but for datagrams of the fuzzer that are as honest.
                event.request.iter().filter(|_| honest).for_each(|it| _ = it.accept(&PARAM));
                self.ids.extend(event.request.filter(|_| honest));
                continue;
            }
            client = client.or_else(|| self.connect(1));
            let Ok(Some(event)) = self.channels[1].take() else { continue };
            let is_ours = Some(event.id) == client;
            match event.event.kind {
                EventKind::CONNECT_RESPONSE | EventKind::ESTABLISHED if is_ours => return,
                EventKind::REJECTED | EventKind::UNREACHABLE if is_ours => {
                    let rejected = client.take();
                    self.ids.retain(|id| Some(id.key()) != rejected);
                    // The device's thread counts what was stolen, and needs the lock for it.
                    thread::sleep(Duration::from_millis(1));
                }
                _ => {}
            }
        }
    }
}

fn chosen<T>(of: &[T], by: u8) -> Option<usize> {
    usize::from(by).checked_rem(of.len())
}

/// The socket of the only listener of the fabric.
fn listening() -> Option<PathBuf> {
    let prefix = format!("{}.cm.", fabric::file(&name()).display());
    let all = fs::read_dir("/dev/shm").ok()?.flatten().map(|entry| entry.path());
    all.into_iter().find(|path| path.to_str().is_some_and(|path| path.starts_with(&prefix)))
}

/// The listener's socket itself: it is in this process.
fn socket_of(path: &std::path::Path) -> Option<OwnedFd> {
    let named = SocketAddrUnix::new(path).ok()?;
    (3..256).find_map(|number| {
        // SAFETY: whatever has this number stays open: this thread closes nothing meanwhile.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let name = SocketAddrUnix::try_from(rustix::net::getsockname(fd).ok()?).ok()?;
        (name == named).then(|| fd.try_clone_to_owned().ok())?
    })
}
