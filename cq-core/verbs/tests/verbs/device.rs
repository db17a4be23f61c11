//! A device whose queue pairs are the lists of `tracked`: what is created from it, and how.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex};

use cq_verbs::budget::*;
use cq_verbs::descriptor;
use cq_verbs::device::{CqBuilder, Destroy, Device, DevicePd, Memory, QpBuilder, Region, Slots};
use cq_verbs::setup::*;
use cq_verbs::tracked::*;

use super::tracked::{Qp, reserve};
use super::*;

/// A device, and its protection domain. It notes what queue pairs are created with.
#[derive(Clone, Debug, Default)]
pub(super) struct Fake(Arc<Mutex<Made>>);

#[derive(Debug, Default)]
pub(super) struct Made {
    /// The queues of sends and receives, whether there is a shared receive queue, and the capacities.
    pub(super) qps: Vec<([u32; 2], bool, QpCaps)>,
    pub(super) srqs: Vec<SrqInit>,
    pub(super) cqs: Vec<u32>,
    /// The descriptors of their channels.
    pub(super) channels: Vec<Option<RawFd>>,
    /// Creating fails.
    pub(super) refuses: bool,
}

pub(super) const REFUSED: CreateError = CreateError::OtherContext;

impl Fake {
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Made) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }
}

impl AsyncEvents for Fake {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        Ok(None)
    }
}

impl BlockAsync for Fake {
    type Instant = Instant;

    fn block_async(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.create_channel().unwrap().block(deadline)
    }
}

impl Device for Fake {
    type Pd = Self;
    type Memory = Bytes;
    type Region = Bytes;
    type Channel = Channel;
    type Cq = Cq;
    type CqHandle = Handle;
    type Srq = Qp;
    type Ah = u32;
    type Qp = Qp;

    fn name(&self) -> &str {
        "fake"
    }

    fn attributes(&self) -> DeviceAttr {
        unreachable!("nobody asks")
    }

    fn port(&self, number: u8) -> Result<Port, DeviceError> {
        Ok(Port::new(number))
    }

    fn alloc_pd(&self) -> Result<Self, CreateError> {
        Ok(self.clone())
    }

    fn create_channel(&self) -> Result<Channel, CreateError> {
        Ok(Channel(descriptor::channel(1).unwrap().1))
    }

    fn port_with_gid(&self, number: u8, _index: u8) -> Result<Port, DeviceError> {
        self.port(number)
    }

    fn gids(&self, _port: u8) -> Result<impl Iterator<Item = (u8, Gid)>, DeviceError> {
        Ok(core::iter::empty())
    }

    fn create_cq(&self, init: &CqBuilder<'_, Self>) -> Result<Cq, CreateError> {
        let CqBuilder { capacity, channel, .. } = *init;
        self.with(|made| {
            if made.refuses {
                return Err(REFUSED);
            }
            made.cqs.push(capacity);
            made.channels.push(channel.map(|channel| channel.as_fd().as_raw_fd()));
            Ok(Cq { handle: Handle(made.cqs.len() as u32), capacity })
        })
    }
}

impl DevicePd for Fake {
    type Device = Self;

    fn allocate(&self, len: usize, access: Access) -> Result<Bytes, RegisterError> {
        self.allocate_with(len, access, &MemoryOptions::new())
    }

    fn allocate_with(
        &self,
        len: usize,
        _access: Access,
        _options: &MemoryOptions,
    ) -> Result<Bytes, RegisterError> {
        if len > 1 << 20 {
            return Err(RegisterError::NoMemory { len, errno: Errno::ENOMEM });
        }
        Ok(Bytes(Arc::new(Mutex::new(vec![0; len]))))
    }

    unsafe fn register(
        &self,
        _ptr: *mut u8,
        _len: usize,
        _access: Access,
    ) -> Result<Bytes, RegisterError> {
        unreachable!("nobody registers")
    }

    fn create_qp(&self, init: &QpBuilder<'_, Self>) -> Result<Qp, CreateError> {
        self.with(|made| {
            if made.refuses {
                return Err(REFUSED);
            }
            made.qps.push(([init.send_cq.0, init.recv_cq.0], init.srq.is_some(), init.caps));
            Ok(Qp::default())
        })
    }

    fn create_srq(&self, init: &SrqInit) -> Result<Qp, CreateError> {
        self.with(|made| {
            if made.refuses {
                return Err(REFUSED);
            }
            made.srqs.push(*init);
            Ok(Qp::default())
        })
    }

    fn create_ah(&self, _to: &AddressVector) -> Result<u32, AddressError> {
        unreachable!("nobody sends datagrams")
    }

    fn ah_from_wc(&self, _port: &Port, _wc: &Wc, _grh: &[u8; 40]) -> Result<u32, AddressError> {
        unreachable!("nobody sends datagrams")
    }
}

impl Destroy for Fake {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        Ok(())
    }
}

/// Memory at address 0x1000.
#[derive(Clone, Debug)]
pub(super) struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Region for Bytes {
    fn registered(&self) -> Registered {
        Registered { addr: 0x1000, len: self.0.lock().unwrap().len(), lkey: 7, rkey: 9 }
    }
}

impl Memory for Bytes {
    fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError> {
        self.registered().address(offset, to.len())?;
        to.copy_from_slice(&self.0.lock().unwrap()[offset..][..to.len()]);
        Ok(())
    }

    fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError> {
        self.registered().address(offset, from.len())?;
        self.0.lock().unwrap()[offset..][..from.len()].copy_from_slice(from);
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Channel(descriptor::Receiver);

impl Events for Channel {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        self.0.take_event()
    }
}

impl Block for Channel {
    type Instant = Instant;

    fn block(&mut self, deadline: Option<Instant>) -> Result<Woken, EventError> {
        self.0.block(deadline)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Destroy for Channel {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        Ok(())
    }
}

/// A completion queue that is always empty.
#[derive(Debug)]
pub(super) struct Cq {
    handle: Handle,
    capacity: u32,
}

impl PollCq for Cq {
    type Entry = Wc;

    fn poll_into(&mut self, _out: &mut [Wc]) -> Result<usize, PollError> {
        Ok(0)
    }
}

impl Arm for Cq {
    fn arm(&mut self, _on: Notify) -> Result<Armed, ArmError> {
        Ok(Armed::Armed)
    }

    fn key(&self) -> CqKey {
        KEY
    }
}

/// A queue's handle: its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(u32);

impl AsRef<Self> for Handle {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<Handle> for Cq {
    fn as_ref(&self) -> &Handle {
        &self.handle
    }
}

impl Destroy for Cq {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        Ok(())
    }
}

impl Capacity for Cq {
    fn capacity(&self) -> usize {
        self.capacity as usize
    }
}

impl cq_verbs::device::DeviceCq for Cq {
    type Handle = Handle;

    fn handle(&self) -> Handle {
        self.handle
    }

    fn resize(&mut self, _capacity: u32) -> Result<u32, ResizeError> {
        unreachable!("nobody resizes")
    }

    fn moderate(&mut self, _count: u16, _period: u16) -> Result<(), ModerateError> {
        unreachable!("nobody moderates")
    }
}

/// Waits for a time on whatever device, of whatever clock.
fn waits_for<D: Device>(device: &mut D, time: Duration) -> Result<bool, WaitError> {
    let mut channel = device.create_channel().unwrap();
    let mut cq = CompletionQueue::new(device.cq(1).channel(&channel).create().unwrap());
    let mut buffer = [Wc::default()];
    let batch = cq.wait_timeout(&mut buffer, &mut channel, time)?;
    Ok(batch.is_empty() && device.wait_async_timeout(time)?.is_none())
}

#[test]
fn n10_a_wait_on_any_device_has_a_timeout() {
    assert_eq!(waits_for(&mut Fake::default(), Duration::from_millis(2)), Ok(true));
}

type Tracked = TrackedQp<Qp, ()>;

/// So many queues of 300 entries.
fn queues<const N: usize>(device: &Fake) -> [Budgeted<Cq, Arc<Budget>>; N] {
    [(); N].map(|()| Budgeted::new(device.cq(300).create().unwrap()))
}

#[test]
fn a_queue_pair_reserves_its_capacities_on_its_queue() {
    let device = Fake::default();
    let [cq] = queues(&device);
    let qp = Tracked::create(&device, &cq.handle(), 200, 50).unwrap();
    let usual = QpCaps::USUAL.max_send_wr(200).max_recv_wr(50);
    assert_eq!(device.with(|made| made.qps.clone()), [([1, 1], false, usual)]);
    assert_eq!((cq.budget().available(), qp.max_sends(), qp.max_receives()), (50, 200, 50));
    let overdrawn = OverdrawnError { asked: 200, available: 50, pending: false };
    let refused = Tracked::create(&device, &cq.handle(), 200, 50).unwrap_err();
    assert_eq!(refused, CreateTrackedError::Overdrawn(overdrawn));
}

#[test]
fn what_is_refused_reserves_nothing_not_even_until_the_queue_is_empty() {
    let device = Fake::default();
    let [sends, receives] = queues(&device);
    let create = || {
        Tracked::create_with(&device, [&sends.handle(), &receives.handle()], |init| {
            init.caps(init.caps.max_send_wr(200).max_recv_wr(50))
        })
    };
    device.with(|made| made.refuses = true);
    assert_eq!(create().unwrap_err(), CreateTrackedError::Create(REFUSED));
    let _others = reserve(receives.budget(), 251).unwrap();
    let overdrawn = OverdrawnError { asked: 50, available: 49, pending: false };
    assert_eq!(create().unwrap_err(), CreateTrackedError::Overdrawn(overdrawn));
    assert_eq!((sends.budget().available(), receives.budget().available()), (300, 49));
}

#[test]
fn a_queue_pair_is_created_with_what_the_program_changes_and_reserves_no_more() {
    let device = Fake::default();
    let [sends, receives, other] = queues(&device);
    let (sends, receives, other) = (sends.handle(), receives.handle(), other.handle());
    let qp = Tracked::create_with(&device, [&sends, &receives], |init| {
        let caps = init.caps.max_send_wr(20).max_recv_wr(50).max_inline(9);
        init.caps(caps).send_cq(other.unbudgeted()) // has no say: the reservation is on the other one
    })
    .unwrap();
    let caps = QpCaps::USUAL.max_send_wr(20).max_recv_wr(50).max_inline(9);
    assert_eq!(device.with(|made| made.qps.clone()), [([1, 2], false, caps)]);
    assert_eq!((qp.max_sends(), qp.max_receives()), (20, 50));
    assert_eq!([&sends, &receives].map(|cq| cq.budget().available()), [280, 250]);
    // With a shared receive queue, it has none of its own.
    let srq = Qp::default();
    let queues = [&sends, &receives];
    let qp = Tracked::create_with(&device, queues, |init| {
        init.srq(&srq).caps(init.caps.max_send_wr(200))
    })
    .unwrap();
    let (_, has_srq, caps) = device.with(|made| made.qps[1]);
    assert_eq!((has_srq, caps.max_recv_wr, qp.max_receives()), (true, 0, 0));
    assert_eq!([&sends, &receives].map(|cq| cq.budget().available()), [80, 250]);
}

#[test]
fn a_shared_receive_queue_reserves_its_receives_on_each_queue() {
    type Shared = TrackedSrq<Qp, ()>;
    let device = Fake::default();
    let [one, other] = queues(&device);
    let (one, other) = (one.handle(), other.handle());
    let free = || [&one, &other].map(|cq| cq.budget().available());
    let srq = Shared::create(&device, &[&one, &other], 100).unwrap();
    assert_eq!((srq.available(), free()), (100, [200; 2]));
    assert_eq!(device.with(|made| made.srqs.clone()), [SrqInit::new(100)]);
    let _others = reserve(other.budget(), 50).unwrap();
    let overdrawn = OverdrawnError { asked: 160, available: 150, pending: false };
    let refused = Shared::create(&device, &[&one, &other], 160).unwrap_err();
    assert_eq!(refused, CreateTrackedError::Overdrawn(overdrawn));
    device.with(|made| made.refuses = true);
    let refused = Shared::create(&device, &[&one, &other], 150).unwrap_err();
    assert_eq!((refused, free()), (CreateTrackedError::Create(REFUSED), [200, 150]));
}

#[test]
fn slots_are_parts_of_memory() {
    let device = Fake::default();
    let slots = Slots::allocate(&device, 3, 16, Access::LOCAL_WRITE).unwrap();
    assert_eq!((slots.count(), slots.size(), slots.get_ref().len()), (3, 16, 48));
    assert_eq!(slots.sge(2), Sge { addr: 0x1020, length: 16, lkey: 7 });
    assert_eq!(slots.part(1, 5), Ok(Sge { addr: 0x1010, length: 5, lkey: 7 }));
    assert_eq!(slots.remote(1), RemoteAddr { addr: 0x1010, rkey: 9 });
    let mut bytes = [0; 16];
    slots.write(1, b"hello").unwrap();
    slots.read(1, &mut bytes).unwrap();
    assert_eq!(&bytes, b"hello\0\0\0\0\0\0\0\0\0\0\0");
    slots.get_ref().read(16, &mut bytes[..5]).unwrap();
    assert_eq!(&bytes[..5], b"hello");
    // Nothing reaches across the end of a slot.
    let long = RangeError { offset: 0, len: 17, available: 16 };
    assert_eq!(slots.write(1, &[0; 17]), Err(long));
    assert_eq!(slots.read(1, &mut [0; 17]), Err(long));
    assert_eq!(slots.part(1, 17), Err(long));
    for none in [3, usize::MAX] {
        let error = slots.part(none, 1).unwrap_err();
        assert_eq!((error.len, error.available), (1, 48));
        assert!(catch_unwind(|| slots.sge(none)).is_err());
        assert!(catch_unwind(|| slots.remote(none)).is_err());
    }
}

#[test]
fn memory_has_as_many_slots_as_fit() {
    let device = Fake::default();
    let slots = |size| Slots::new(device.allocate(48, Access::LOCAL_WRITE).unwrap(), size);
    assert_eq!([1, 16, 20, 48, 49, 0].map(|size| slots(size).count()), [48, 3, 2, 1, 0, 0]);
    let refused = Slots::allocate(&device, usize::MAX, 2, Access::LOCAL_WRITE).unwrap_err();
    assert!(matches!(refused, RegisterError::NoMemory { len: usize::MAX, .. }));
}
