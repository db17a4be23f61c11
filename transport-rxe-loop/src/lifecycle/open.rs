//! Opening a fabric: attaches to it, and creates the device of this process once.

use super::deaths;
use super::device::{Device, DeviceOptions, FORMAT};
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
        let device = attachment.device(|| {
            let failed =
                |errno| AttachError::system("mapping what this process needs", path.file(), errno);
            Self::new(attachment, options).map_err(failed)
        })?;
        device.shm.thread().serves(|| device.serve());
        // The service thread of no process may be watching, if none is connected to another process.
        deaths::look(device);
        Ok(device)
    }

    /// The device of the unit tests.
    #[cfg(test)]
    pub fn of_tests() -> &'static Self {
        let path = FabricPath::new(&FabricName::from_env().unwrap());
        let options = DeviceOptions { by_service: false, policy: Policy::new(None, false) };
        Self::open(&path, &Limits::default().shape(), options).unwrap()
    }
}
