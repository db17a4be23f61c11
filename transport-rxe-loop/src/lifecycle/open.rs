//! Opening a fabric: attaches to it, and creates the device of this process once.

use super::deaths;
use super::device::{Device, DeviceOptions, FORMAT};
use crate::shm::error::AttachError;
use crate::shm::name::FabricPath;
use crate::shm::registry::REGISTRY;
use crate::shm::shape::Shape;
use crate::trace;

impl Device {
    /// The device of the fabric with this path, which is created with this shape if it does not exist. The options of
    /// the first opening in this process apply.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn open(
        path: &FabricPath,
        wanted: &Shape,
        options: DeviceOptions,
    ) -> Result<&'static Self, AttachError> {
        let attachment = REGISTRY.attach(path, wanted, &FORMAT)?;
        let mut is_new = false;
        let device = attachment.device(|| {
            is_new = true;
            Self::new(attachment, options)
        })?;
        if is_new {
            let is_created = attachment.is_created;
            trace::event!(
                DEBUG,
                fabric = path.file_name(),
                created = is_created,
                pid = std::process::id(),
                "fabric attached"
            );
        }
        device.shm.thread.serves(|| device.serve());
        // The service thread of no process may be watching, if none is connected to another process.
        deaths::look(device);
        Ok(device)
    }
}
