//! The device: what a process has of a fabric, created when it is first opened and never dropped, so that everything
//! in it can be borrowed for `'static`.

use crate::completion::{self, Completions, Counts};
use crate::connections::Connections;
use crate::connections::registry::{self, Ports};
use crate::engine::port::link_layer::LinkLayer;
use crate::engine::recovery::{CompletionQueues, QueuePairs, RemoteRequests, SharedReceiveQueues};
use crate::engine::{self, Engine};
use crate::memory::{self, Memory};
use crate::policy::Policy;
use crate::shm::Shm;
use crate::shm::attachment::Attachment;
use crate::shm::error::AttachError;
use crate::shm::header::ForeignFileError;
use crate::shm::plan::{Format, Plan};
use crate::shm::recovery::DeathRecovery;
use crate::shm::shape::Shape;
use crate::shm::table::opaque;

/// The names of the entries of a fabric's [shape](Shape), in their order.
const KINDS: [&str; 5] =
    ["queue pairs", "completion queues", "memory regions", "shared receive queues", "channels"];

/// The layout of a fabric in this build.
pub const FORMAT: Format = Format {
    kinds: &KINDS,
    tables: |shape, plan| {
        // While the layout is measured there are no tables.
        let _ = place(shape, plan);
    },
};

type Tables<'m> =
    (memory::Tables<'m>, completion::Tables<'m>, engine::Tables<'m>, registry::Tables<'m>);

/// Places all tables of the device; `None` if the memory is too small.
pub fn place<'m>(shape: &Shape, plan: &mut Plan<'m>) -> Option<Tables<'m>> {
    let [qps, cqs, regions, srqs, channels, ..] = shape.entries;
    let memory = memory::Tables::place(plan, regions, shape.processes);
    let completion = completion::Tables::place(plan, Counts { cqs, channels, srqs, qps });
    let engine = engine::Tables::place(plan, qps, srqs);
    let ports = registry::Tables::place(plan, qps, shape.processes);
    Some((memory?, completion?, engine?, ports?))
}

/// The device.
pub struct Device {
    pub shm: &'static Shm,
    pub memory: &'static Memory,
    pub completions: &'static Completions,
    pub engine: &'static Engine,
    pub connections: Connections,
    /// The tables whose entries die with their process, in the order of recovery.
    pub tables: [&'static dyn DeathRecovery; 8],
}

/// Options of this process.
#[derive(Debug)]
pub struct DeviceOptions {
    /// The service thread of the owner copies from and to its memory; no system call does.
    pub by_service: bool,
    /// Whether the polls of this process are counted.
    pub counts_polls: bool,
    /// Faults and imitation.
    pub policy: Policy,
    /// The link layer that this process asks for, if any. The first process of a fabric decides.
    pub link_layer: Option<LinkLayer>,
}

impl Device {
    /// The device of an attachment.
    ///
    /// # Errors
    /// The system is out of memory, the file is too small, or the addresses of this machine can't be read.
    pub fn new(
        attachment: &'static Attachment,
        options: DeviceOptions,
    ) -> Result<Self, AttachError> {
        // The header was checked, so the tables fit.
        let damaged = || AttachError::NotOurs {
            path: attachment.path.file(),
            why: ForeignFileError::Damaged,
        };
        let (shm, (memory, completion, engine, ports)) =
            Shm::new(attachment, place).ok_or_else(damaged)?;
        let shm: &'static Shm = leak(shm);
        let memory: &'static Memory =
            leak(Memory::new(shm, memory, engine.queue_pairs(), options.by_service)?);
        let completions: &'static Completions =
            leak(Completions::new(memory, completion, options.counts_polls));
        let engine: &'static Engine =
            leak(Engine::new(completions, engine, options.policy, options.link_layer)?);
        let ports: &'static Ports = leak(Ports { shm, tables: ports });
        let tables: [&'static dyn DeathRecovery; 8] = [
            leak(memory),
            leak(QueuePairs(engine)),
            leak(SharedReceiveQueues(engine)),
            leak(CompletionQueues(engine)),
            leak(completions),
            leak(RemoteRequests(engine)),
            ports,
            shm,
        ];
        let connections = Connections::new(shm, ports);
        Ok(Self { shm, memory, completions, engine, connections, tables })
    }
}

/// Keeps a part until the process ends.
fn leak<T>(part: T) -> &'static T {
    Box::leak(Box::new(part))
}

opaque!(Device);

#[cfg(test)]
mod tests;
