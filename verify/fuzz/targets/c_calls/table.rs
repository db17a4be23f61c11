//! What a program has made, what it hands in as a handle, and what it may be told.

use std::collections::BTreeSet;
use std::ptr;

use arbitrary::Arbitrary;
use rxe_loop_verbs::fuzzing::*;

/// What a handle is of, in the order in which all of them can be destroyed.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Id,
    Qp,
    Srq,
    Mw,
    Mr,
    Ah,
    Cq,
    Channel,
    Buf,
    Pd,
    EventChannel,
    Context,
    /// What identifiers have, and destroy themselves.
    Theirs,
}

const KINDS: [Kind; 13] = {
    use Kind::*;
    [Id, Qp, Srq, Mw, Mr, Ah, Cq, Channel, Buf, Pd, EventChannel, Context, Theirs]
};

/// A handle that a program hands in.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct Handle {
    nth: u8,
    how: u8,
    number: u64,
}

/// A number, which is often small.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Number {
    Small(u8),
    Any(u64),
}

impl Number {
    /// One of these, or any other.
    pub fn among<const N: usize>(self, few: [u32; N]) -> u32 {
        match self {
            Self::Small(nth) => few[usize::from(nth) % N],
            Self::Any(number) => number as u32,
        }
    }

    pub const fn get(self) -> u64 {
        match self {
            Self::Small(number) => number as u64,
            Self::Any(number) => number,
        }
    }
}

/// Calls what C calls.
macro_rules! c {
    ($($call:tt)+) => {
        // SAFETY: the library accepts any pointer as a handle. All other pointers lead to memory of the length that is passed
        // with them, which lives until the call returns.
        unsafe { $($call)+ }
    };
}
pub(crate) use c;

/// What the numbers of errors may be.
const ERRNOS: &[c_int] = &[
    libc::EINVAL,
    libc::ENOENT,
    libc::EBUSY,
    libc::ENOMEM,
    libc::EOPNOTSUPP,
    libc::EAGAIN,
    libc::EFAULT,
    libc::EOVERFLOW,
    libc::ENODATA,
    libc::ENOSYS,
    libc::EADDRINUSE,
    libc::EADDRNOTAVAIL,
    libc::EHOSTUNREACH,
    libc::ECONNREFUSED,
];

const PAGE: usize = 4096;
/// How many bytes of a program's memory may be registered.
pub const REGISTERED: usize = 4 * PAGE;
/// What is in the memory around.
const CANARY: u8 = 0xa5;

/// Memory that may be registered, between memory that may not.
#[repr(C, align(4096))]
struct Memory([u8; PAGE], [u8; REGISTERED], [u8; PAGE]);

pub struct Table {
    of: [Vec<usize>; KINDS.len()],
    memory: Box<Memory>,
    /// Whose functions this thread has for itself: nobody may ask for that twice.
    pub started: BTreeSet<usize>,
    /// Channels that were destroyed: who waits for an event there is woken by a signal alone.
    pub gone: BTreeSet<usize>,
}

impl Default for Table {
    fn default() -> Self {
        let memory = Box::new(Memory([CANARY; PAGE], [0; REGISTERED], [CANARY; PAGE]));
        Self { of: Default::default(), memory, started: BTreeSet::new(), gone: BTreeSet::new() }
    }
}

impl Table {
    /// The device.
    pub fn device(&self) -> *mut ibv_device {
        // SAFETY: a list is one pointer at least; nobody uses it after this.
        unsafe {
            let list = ibv_get_device_list(ptr::null_mut());
            let device = list.read();
            ibv_free_device_list(list);
            device
        }
    }

    /// Keeps what was made, if it was. Nobody waits for its events.
    pub fn keep<T>(&mut self, kind: Kind, object: *mut T) {
        if object.is_null() {
            refused(errno());
            return;
        }
        // SAFETY: they are of these kinds, and were just made.
        let descriptor = unsafe {
            match kind {
                Kind::Context => Some((*object.cast::<ibv_context>()).async_fd),
                Kind::Channel => Some((*object.cast::<ibv_comp_channel>()).fd),
                Kind::EventChannel => Some((*object.cast::<rdma_event_channel>()).fd),
                Kind::Id => Some((*(*object.cast::<rdma_cm_id>()).channel).fd),
                _ => None,
            }
        };
        descriptor.into_iter().for_each(unblock);
        self.gone.remove(&object.addr());
        let all = &mut self.of[kind as usize];
        if !all.contains(&object.addr()) {
            all.push(object.expose_provenance());
        }
    }

    /// Keeps what an identifier has.
    pub fn keep_theirs(&mut self, id: Handle) {
        let Some(id) = self.known::<rdma_cm_id>(Kind::Id, id) else { return };
        let theirs =
            [id.qp.addr(), id.srq.addr(), id.send_cq.addr(), id.recv_cq.addr(), id.pd.addr()];
        self.of[Kind::Theirs as usize].extend(theirs.into_iter().filter(|it| *it != 0));
    }

    /// Has nobody wait for the events of an identifier.
    pub fn unblock(&self, id: Handle) {
        let channel = self.known::<rdma_cm_id>(Kind::Id, id).map(|id| id.channel);
        // SAFETY: null, or what is a channel, or was one.
        let channel = channel.and_then(|channel| unsafe { channel.as_ref() });
        channel.into_iter().for_each(|channel| unblock(channel.fd));
    }

    /// What a handle is: of the kind that is asked for, of any other, or of none.
    pub fn get<T>(&self, kind: Kind, handle: Handle) -> *mut T {
        let Handle { nth, how, number } = handle;
        let of = |all: &[usize]| match all.len() {
            0 => 0,
            len => all[usize::from(nth) % len],
        };
        let address = match how {
            0..200 => of(&self.of[kind as usize]),
            200..225 => of(&self.of[number as usize % KINDS.len()]),
            225..235 => of(&self.of[kind as usize]).wrapping_add(number as usize % 64),
            235..245 => number as usize,
            _ => 0,
        };
        ptr::with_exposed_provenance_mut(address)
    }

    /// An object that is there, or was.
    pub fn known<T>(&self, kind: Kind, handle: Handle) -> Option<&T> {
        let object = self.get::<T>(kind, handle);
        let is_known = self.of[kind as usize].contains(&object.addr());
        // SAFETY: it is or was of this kind: what C sees of an object stays.
        is_known.then(|| unsafe { &*object })
    }

    /// How many bytes of the program's memory begin here, or more than there can be.
    pub fn fits(&self, from: *mut c_void, length: u64) -> usize {
        let rest = self.memory(0).addr() + REGISTERED - from.addr();
        if length < 1 << 48 { length as usize % (rest + 1) } else { length as usize }
    }

    /// Where the program's memory is.
    pub fn memory(&self, offset: u64) -> *mut c_void {
        let start = (&raw const self.memory.1).cast_mut().cast::<u8>();
        start.wrapping_add(offset as usize % REGISTERED).cast()
    }

    /// Destroys all of it.
    pub fn end(self) {
        for round in 0..2 {
            for kind in KINDS {
                for &address in &self.of[kind as usize] {
                    let told = destroy(kind, ptr::with_exposed_provenance_mut(address));
                    let wanted = [0, libc::ENOENT];
                    assert!(wanted[round..].contains(&told), "{kind:?} {address:x}: {told}");
                }
            }
        }
        let Memory(before, _, behind) = &*self.memory;
        assert!([before, behind].iter().all(|bytes| bytes.iter().all(|byte| *byte == CANARY)));
    }
}

/// Destroys an object, or what is none: 0, or the number of the error.
pub fn destroy(kind: Kind, object: *mut c_void) -> c_int {
    set_errno(0);
    // SAFETY: any pointer may be handed in.
    let told = unsafe {
        match kind {
            Kind::Id => {
                rdma_destroy_qp(object.cast());
                rdma_destroy_srq(object.cast());
                set_errno(0);
                rdma_destroy_id(object.cast())
            }
            Kind::Qp => ibv_destroy_qp(object.cast()),
            Kind::Srq => ibv_destroy_srq(object.cast()),
            Kind::Mw => ibv_dealloc_mw(object.cast()),
            Kind::Mr => ibv_dereg_mr(object.cast()),
            Kind::Ah => ibv_destroy_ah(object.cast()),
            Kind::Cq => ibv_destroy_cq(object.cast()),
            Kind::Channel => ibv_destroy_comp_channel(object.cast()),
            Kind::Pd => ibv_dealloc_pd(object.cast()),
            Kind::Context => ibv_close_device(object.cast()),
            Kind::Buf => {
                ibv_free_buf(object.cast());
                ibv_export_buf_dmabuf_fd(object.cast())
            }
            Kind::EventChannel => {
                rdma_destroy_event_channel(object.cast());
                return libc::ENOENT;
            }
            Kind::Theirs => return libc::ENOENT,
        }
    };
    if told == -1 { errno() } else { told }
}

/// Has nobody wait for what a descriptor tells.
fn unblock(descriptor: c_int) {
    // SAFETY: numbers.
    unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
}

pub fn errno() -> c_int {
    // SAFETY: always sound.
    unsafe { *libc::__errno_location() }
}

fn set_errno(number: c_int) {
    // SAFETY: always sound.
    unsafe { *libc::__errno_location() = number };
}

/// An error was told by this number.
#[track_caller]
pub fn refused(number: c_int) {
    assert!(ERRNOS.contains(&number), "errno {number}");
}

/// 0, or the number of an error.
#[track_caller]
pub fn status(told: c_int) {
    if told != 0 {
        refused(told);
    }
}

/// -1 with the number of an error, or any other number.
#[track_caller]
pub fn minus_one(told: c_int) {
    assert!(told >= -1, "{told}");
    if told == -1 {
        refused(errno());
    }
}
