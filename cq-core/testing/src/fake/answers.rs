//! The transport traits of a script. Each call is answered by the next step, if that step is for it.

use core::time::Duration;

use cq_core::transport::{
    Arm, ArmError, Armed, Block, CqKey, EventError, Events, Notify, PollCq, PollError, Signal,
    Woken,
};
use cq_core::wc::Wc;
use cq_verbs::async_event::{AsyncEvent, AsyncEvents, BlockAsync};
use cq_verbs::post::{Post, PostError, WrError};
use cq_verbs::wr::{RecvWr, SendWr};

use super::{ASLEEP_FOR_EVER, Call, Script, Side, State, Step};

/// Takes the answer of the next step, if the step is of this kind.
macro_rules! answer {
    ($state:ident, $kind:path) => {
        match $state.steps.front() {
            Some(&$kind(answer)) => {
                $state.steps.pop_front();
                Some(answer)
            }
            _ => None,
        }
    };
}

impl<const N: usize> State<N> {
    fn note(&mut self, call: Call) {
        if self.calls.push(call).is_ok() {
            return;
        }
        match self.calls.last_mut() {
            Some(Call::Unrecorded(count)) => *count += 1,
            Some(last) => *last = Call::Unrecorded(2),
            None => {}
        }
    }

    /// Moves the completions of the next poll to `out`.
    fn take(&mut self, out: &mut [Wc]) -> usize {
        let mut count = 0;
        while let (Some(entry), Some(&Step::Found(wc, last))) =
            (out.get_mut(count), self.steps.front())
        {
            *entry = wc;
            count += 1;
            self.steps.pop_front();
            if last {
                break;
            }
        }
        count
    }

    fn post(&mut self, side: Side, request: Call) -> Result<(), WrError> {
        let answer = match self.steps.front_mut() {
            Some(Step::Post(of, Ok(more))) if *of == side && *more > 1 => {
                *more -= 1;
                Ok(())
            }
            Some(Step::Post(of, answer)) if *of == side => {
                let answer = answer.map(drop);
                self.steps.pop_front();
                answer
            }
            _ => Ok(()),
        };
        self.note(if answer.is_ok() { request } else { request.refused() });
        answer
    }
}

impl<const N: usize> PollCq for &Script<N> {
    type Entry = Wc;

    fn poll_into(&mut self, out: &mut [Wc]) -> Result<usize, PollError> {
        let mut state = self.state.borrow_mut();
        state.note(Call::Poll(out.len()));
        if let Some(overrun) = state.overrun {
            return Err(overrun);
        }
        let answer = answer!(state, Step::Poll);
        if let Some(Err(error @ PollError::Overrun { .. })) = answer {
            state.overrun = Some(error);
        }
        answer.unwrap_or_else(|| Ok(state.take(out)))
    }
}

impl<const N: usize> Arm for &Script<N> {
    fn arm(&mut self, on: Notify) -> Result<Armed, ArmError> {
        let mut state = self.state.borrow_mut();
        state.note(Call::Arm(on));
        answer!(state, Step::Arm).unwrap_or_else(|| {
            let step = state.steps.front();
            let comes = matches!(step, Some(Step::Found(..) | Step::Poll(Err(_))));
            let missed = comes || state.overrun.is_some();
            Ok(if missed { Armed::MayHaveMissed } else { Armed::Armed })
        })
    }

    fn key(&self) -> CqKey {
        self.key
    }
}

impl<const N: usize> Events for &Script<N> {
    fn take_event(&mut self) -> Result<Option<CqKey>, EventError> {
        let mut state = self.state.borrow_mut();
        state.note(Call::Event);
        answer!(state, Step::Event).transpose()
    }
}

impl<const N: usize> AsyncEvents for &Script<N> {
    fn take_async_event(&mut self) -> Result<Option<AsyncEvent>, EventError> {
        let mut state = self.state.borrow_mut();
        state.note(Call::Async);
        answer!(state, Step::Async).transpose()
    }
}

impl<const N: usize> Block for &Script<N> {
    /// A time on the script's clock.
    type Instant = Duration;

    fn block(&mut self, deadline: Option<Duration>) -> Result<Woken, EventError> {
        self.sleep(deadline, |step| matches!(step, Step::Event(_)))
    }
}

impl<const N: usize> BlockAsync for &Script<N> {
    /// A time on the script's clock.
    type Instant = Duration;

    fn block_async(&mut self, deadline: Option<Duration>) -> Result<Woken, EventError> {
        self.sleep(deadline, |step| matches!(step, Step::Async(_)))
    }
}

impl<const N: usize> Script<N> {
    fn sleep(
        &self,
        deadline: Option<Duration>,
        is_event: fn(&Step) -> bool,
    ) -> Result<Woken, EventError> {
        let mut state = self.state.borrow_mut();
        state.note(Call::Block(deadline));
        match state.steps.front() {
            Some(step) if is_event(step) => return Ok(Woken::Event),
            Some(Step::Interrupt) => {
                state.steps.pop_front();
                return Ok(Woken::Interrupted);
            }
            _ => {}
        }
        let wakes = answer!(state, Step::Block).transpose()?.map(|after| state.now + after);
        if let Some(wakes) = wakes.filter(|wakes| deadline.is_none_or(|end| *wakes < end)) {
            state.now = wakes;
            return Ok(Woken::Event);
        }
        let end = deadline.ok_or(ASLEEP_FOR_EVER)?;
        state.now = state.now.max(end);
        Ok(Woken::DeadlinePassed)
    }

    fn post<W: Copy + Into<Call>>(&self, side: Side, list: &[W]) -> Result<(), PostError> {
        let mut state = self.state.borrow_mut();
        for (posted, &wr) in list.iter().enumerate() {
            state.post(side, wr.into()).map_err(|why| PostError { posted, why })?;
        }
        Ok(())
    }
}

impl<const N: usize> Post for &Script<N> {
    fn post_send(&mut self, list: &[SendWr<'_>]) -> Result<(), PostError> {
        self.post(Side::Send, list)
    }

    fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
        self.post(Side::Recv, list)
    }

    /// No device reads or writes a buffer.
    fn quiesce(&mut self) -> bool {
        true
    }
}

impl<const N: usize> Signal for &Script<N> {
    fn key(&self) -> CqKey {
        self.key
    }

    fn raise(&self) {
        self.state.borrow_mut().note(Call::Raise(self.key));
    }
}
