//! A fabric as a process has it: made at the first opening and kept to the end, so that everything in it can be borrowed
//! for ever.

use std::fmt;

use rustix::io::Errno;

use super::deaths;
#[cfg(test)]
use crate::api::limits::Limits;
use crate::completion::{self, Completions, Counts};
use crate::engine::owners::{CompletionQueues, QueuePairs, RemoteRequests, SharedReceiveQueues};
use crate::engine::{self, Engine};
use crate::memory::{self, Memory};
use crate::policy::Policy;
use crate::shm::Shm;
use crate::shm::attach::Attachment;
use crate::shm::error::AttachError;
#[cfg(test)]
use crate::shm::name::FabricName;
use crate::shm::name::FabricPath;
use crate::shm::owners::Owners;
use crate::shm::plan::Plan;
use crate::shm::registry::REGISTRY;
use crate::shm::shape::{Format, Shape};

/// What the numbers of a fabric's [shape](Shape) are, in their order.
const KINDS: [&str; 5] =
    ["queue pairs", "completion queues", "memory regions", "shared receive queues", "channels"];

/// How this build lays a fabric out.
pub const FORMAT: Format = Format {
    kinds: &KINDS,
    tables: |shape, plan| {
        // While they are measured there are none.
        let _ = place(shape, plan);
    },
};

type Tables = (memory::Tables, completion::Tables, engine::Tables);

fn place(shape: &Shape, plan: &mut Plan) -> Option<Tables> {
    let [qps, cqs, regions, srqs, channels, ..] = shape.entries;
    let memory = memory::Tables::place(plan, regions, shape.processes);
    let completion = completion::Tables::place(plan, Counts { cqs, channels, srqs, qps });
    let engine = engine::Tables::place(plan, qps, srqs);
    Some((memory?, completion?, engine?))
}

/// The device.
pub struct Device {
    pub shm: &'static Shm,
    pub memory: &'static Memory,
    pub completions: &'static Completions,
    pub engine: &'static Engine,
    /// What processes have, in the order in which it is made unreachable and freed after a death.
    tables: [&'static dyn Owners; 7],
}

/// What a process does in its own way.
#[derive(Debug)]
pub struct Ways {
    /// All other processes copy by themselves.
    pub by_service: bool,
    /// What is otherwise.
    pub policy: Policy,
}

impl Device {
    /// The one whose files lie there, which is made with this shape if there is none. How this process goes about it, the
    /// first opening says.
    ///
    /// # Errors
    /// As [`AttachError`] tells.
    pub fn open(
        path: &FabricPath,
        wanted: &Shape,
        ways: Ways,
    ) -> Result<&'static Self, AttachError> {
        let attachment = REGISTRY.attach(path, wanted, &FORMAT)?;
        let device = attachment.device(|| {
            let failed =
                |errno| AttachError::system("mapping what this process needs", path.file(), errno);
            Self::new(attachment, ways).map_err(failed)
        })?;
        device.shm.thread().serves(|| device.serve());
        // Nobody may watch who is not connected to another process.
        deaths::look(device);
        Ok(device)
    }

    /// What a process has where it is attached.
    ///
    /// # Errors
    /// The system gives no memory, or the file is too small.
    pub fn new(attachment: &'static Attachment, ways: Ways) -> Result<Self, Errno> {
        let (shm, (memory, completion, engine)) =
            Shm::new(attachment, place).ok_or(Errno::NOMEM)?;
        let shm: &'static Shm = leak(shm);
        let memory: &'static Memory = leak(Memory::new(shm, memory, ways.by_service)?);
        let completions: &'static Completions = leak(Completions::new(memory, completion));
        let engine: &'static Engine = leak(Engine::new(completions, engine, ways.policy)?);
        let tables: [&'static dyn Owners; 7] = [
            leak(memory),
            leak(QueuePairs(engine)),
            leak(SharedReceiveQueues(engine)),
            leak(CompletionQueues(engine)),
            leak(completions),
            leak(RemoteRequests(engine)),
            shm,
        ];
        Ok(Self { shm, memory, completions, engine, tables })
    }

    /// The one of the unit tests.
    #[cfg(test)]
    pub fn of_tests() -> &'static Self {
        let path = FabricPath::new(&FabricName::from_env().unwrap());
        let ways = Ways { by_service: false, policy: Policy::new(None, false) };
        Self::open(&path, &Limits::default().shape(), ways).unwrap()
    }

    /// What processes have, which outlives them.
    pub fn tables(&self) -> &[&'static dyn Owners] {
        &self.tables
    }
}

/// Kept to the end of the process.
fn leak<T>(part: T) -> &'static T {
    Box::leak(Box::new(part))
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
