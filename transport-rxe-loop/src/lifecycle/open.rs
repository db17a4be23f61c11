//! Opening a fabric: attaching to it, and making the device of this process, once.

use super::deaths;
use super::device::{Device, FORMAT, Ways};
#[cfg(test)]
use crate::api::limits::Limits;
#[cfg(test)]
use crate::policy::Policy;
use crate::shm::error::AttachError;
#[cfg(test)]
use crate::shm::name::FabricName;
use crate::shm::name::FabricPath;
use crate::shm::registry::REGISTRY;
use crate::shm::shape::Shape;

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

    /// The one of the unit tests.
    #[cfg(test)]
    pub fn of_tests() -> &'static Self {
        let path = FabricPath::new(&FabricName::from_env().unwrap());
        let ways = Ways { by_service: false, policy: Policy::new(None, false) };
        Self::open(&path, &Limits::default().shape(), ways).unwrap()
    }
}
