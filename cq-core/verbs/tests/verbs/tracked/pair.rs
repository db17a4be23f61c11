//! A queue pair that a test carries out.

use super::*;

/// A queue pair that shares its state with its completion queue.
#[derive(Clone, Default)]
pub struct Qp {
    pub(super) pair: Arc<Mutex<Pair>>,
    /// What it was modified to.
    pub(super) states: Arc<Mutex<Vec<QpState>>>,
    /// Its number, less 1.
    pub nth: u32,
    pub refuses: Arc<Mutex<Option<ModifyError>>>,
}

impl std::fmt::Debug for Qp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Qp")
    }
}

pub const REFUSED: ModifyError = ModifyError::Illegal { from: QpState::RESET, to: QpState::ERR };

impl Qp {
    pub fn with<T>(&self, change: impl FnOnce(&mut Pair) -> T) -> T {
        change(&mut self.pair.lock().unwrap())
    }

    /// Its completion queue, with a budget of this size.
    pub fn cq(&self, capacity: u32) -> (Queue, Arc<Budget>) {
        let queue = Budgeted::with_capacity(Cq(self.pair.clone()), capacity as usize);
        let budget = queue.budget().clone();
        (CompletionQueue::new(queue), budget)
    }
}

impl Post for Qp {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.with(|pair| pair.post_send(list))
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.with(|pair| pair.post_recv(list))
    }

    fn quiesce(&mut self) -> bool {
        self.with(Post::quiesce)
    }

    fn check_send(&self, wr: &SendWr<'_>) -> Result<(), WrError> {
        self.with(|pair| pair.check_send(wr))
    }

    fn check_recv(&self, wr: &RecvWr<'_>) -> Result<(), WrError> {
        self.with(|pair| pair.check_recv(wr))
    }
}

impl DeviceQp for Qp {
    type Ah = u32;
    type Directed<'a> = Qp;

    fn number(&self) -> u32 {
        1 + self.nth
    }

    fn qp_type(&self) -> QpType {
        QpType::RC
    }

    fn caps(&self) -> QpCaps {
        QpCaps::USUAL
    }

    fn state(&self) -> Result<QpState, DeviceError> {
        Ok(*self.states.lock().unwrap().last().unwrap_or(&QpState::RESET))
    }

    fn attributes(&self) -> Result<QpAttr, DeviceError> {
        Ok(QpAttr::new())
    }

    fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
        if let Some(error) = *self.refuses.lock().unwrap() {
            return Err(error);
        }
        let state = attr.state.expect("every change here is one of the state");
        self.states.lock().unwrap().push(state);
        self.with(|pair| match state {
            QpState::ERR => pair.fail(),
            QpState::RESET => {
                pair.sends.clear();
                pair.receives.clear();
                pair.has_failed = false;
            }
            _ => {}
        });
        Ok(())
    }

    fn endpoint(&self, _port: &Port) -> Endpoint {
        Endpoint::new(DeviceQp::number(self))
    }

    fn connect(&mut self, _port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
        self.with(|pair| {
            pair.peer = peer.qp_num;
            let illegal = ModifyError::Illegal { from: QpState::RESET, to: QpState::RTR };
            if pair.connects { Ok(()) } else { Err(illegal) }
        })
    }

    fn activate(&mut self, _port: &Port, qkey: u32) -> Result<(), ModifyError> {
        assert_eq!(qkey, 7);
        Err(ModifyError::Illegal { from: QpState::RESET, to: QpState::RTS })
    }

    fn to<'a>(&'a mut self, destination: &Destination<'a, u32>) -> Qp {
        assert_eq!(destination.qp_num, 5);
        self.clone()
    }
}

impl Destroy for Qp {
    fn destroy(self) -> Result<(), InUseError<Self>> {
        if self.with(|pair| pair.is_used) {
            return Err(InUseError::new(self, "queue", "its users"));
        }
        Ok(())
    }
}

/// As a shared receive queue.
impl DeviceSrq for Qp {
    fn number(&self) -> u32 {
        1
    }

    fn caps(&self) -> SrqInit {
        SrqInit::new(8)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        Post::post_recv(self, list)
    }

    fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
        Err(ArmLimitError::TooMany { asked: limit, max: 8 })
    }

    fn limit(&self) -> Result<u32, DeviceError> {
        Ok(3)
    }
}

/// Its completion queue.
pub struct Cq(pub Arc<Mutex<Pair>>);

impl PollCq for Cq {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        self.0.lock().unwrap().poll_into(out)
    }
}
