//! Implementing the traits for a transport.

/// For transports: implements the traits of [`device`](crate::device) by the methods of the same names that the types of
/// a transport have.
#[macro_export]
macro_rules! device_traits {
    (
        $context:ty, $pd:ty, $memory:ty, $region:ty, $channel:ty, $cq:ty, $cq_handle:ty, $srq:ty, $ah:ty, $qp:ty
    ) => {
        const _: () = {
            use $crate::device as d;
            use $crate::setup::*;
            use $crate::transport::PostError;
            use $crate::wc::Wc;
            use $crate::wr::{RecvWr, RemoteAddr, SendWr, Sge};

            impl d::Device for $context {
                type Pd = $pd;
                type Memory = $memory;
                type Region = $region;
                type Channel = $channel;
                type Cq = $cq;
                type CqHandle = $cq_handle;
                type Srq = $srq;
                type Ah = $ah;
                type Qp = $qp;

                fn name(&self) -> &str {
                    self.name()
                }

                fn attributes(&self) -> DeviceAttr {
                    self.attributes()
                }

                fn port(&self, number: u8) -> Result<Port, DeviceError> {
                    self.port(number)
                }

                fn alloc_pd(&self) -> Result<$pd, CreateError> {
                    self.alloc_pd()
                }

                fn create_channel(&self) -> Result<$channel, CreateError> {
                    self.create_channel()
                }

                fn create_cq(
                    &self,
                    capacity: u32,
                    channel: Option<&$channel>,
                ) -> Result<$cq, CreateError> {
                    self.create_cq(capacity, channel)
                }
            }

            impl d::ProtectionDomain for $pd {
                type Device = $context;

                fn allocate(&self, len: usize, access: Access) -> Result<$memory, RegisterError> {
                    self.allocate(len, access)
                }

                #[allow(unsafe_code)]
                unsafe fn register(
                    &self,
                    ptr: *mut u8,
                    len: usize,
                    access: Access,
                ) -> Result<$region, RegisterError> {
                    // SAFETY: the caller upholds the same contract.
                    unsafe { self.register(ptr, len, access) }
                }

                fn create_qp(&self, init: &QpInit<'_, $cq_handle, $srq>) -> Result<$qp, CreateError> {
                    self.create_qp(init)
                }

                fn create_srq(&self, init: &SrqInit) -> Result<$srq, CreateError> {
                    self.create_srq(init)
                }

                fn create_ah(&self, to: &AddressVector) -> Result<$ah, AddressError> {
                    self.create_ah(to)
                }

                fn ah_from_wc(
                    &self,
                    port: &Port,
                    wc: &Wc,
                    grh: &[u8; 40],
                ) -> Result<$ah, AddressError> {
                    self.ah_from_wc(port, wc, grh)
                }
            }

            $crate::device_traits!(@destroy $pd, $channel, $cq, $srq);
            $crate::device_traits!(@region $memory, $region);

            impl d::Cq for $cq {
                fn capacity(&self) -> u32 {
                    self.capacity()
                }

                fn resize(&mut self, capacity: u32) -> Result<u32, ResizeError> {
                    self.resize(capacity)
                }

                fn moderate(&mut self, count: u16, period: u16) -> Result<(), ModerateError> {
                    self.moderate(count, period)
                }
            }

            impl d::SharedReceiveQueue for $srq {
                fn number(&self) -> u32 {
                    self.number()
                }

                fn caps(&self) -> SrqInit {
                    self.caps()
                }

                fn post_recv(&mut self, list: &[RecvWr<'_>]) -> Result<(), PostError> {
                    self.post_recv(list)
                }

                fn arm_limit(&mut self, limit: u32) -> Result<(), ArmLimitError> {
                    self.arm_limit(limit)
                }

                fn limit(&self) -> Result<u32, DeviceError> {
                    self.limit()
                }
            }

            impl d::QueuePair for $qp {
                type Ah = $ah;

                fn number(&self) -> u32 {
                    self.number()
                }

                fn qp_type(&self) -> QpType {
                    self.qp_type()
                }

                fn caps(&self) -> QpCaps {
                    self.caps()
                }

                fn state(&self) -> Result<QpState, DeviceError> {
                    self.state()
                }

                fn modify(&mut self, attr: &QpAttr) -> Result<(), ModifyError> {
                    self.modify(attr)
                }

                fn endpoint(&self, port: &Port) -> Endpoint {
                    self.endpoint(port)
                }

                fn connect(&mut self, port: &Port, peer: &Endpoint) -> Result<(), ModifyError> {
                    self.connect(port, peer)
                }

                fn activate(&mut self, port: &Port, qkey: u32) -> Result<(), ModifyError> {
                    self.activate(port, qkey)
                }

                fn post_to(
                    &mut self,
                    to: &Destination<'_, $ah>,
                    list: &[SendWr<'_>],
                ) -> Result<(), PostError> {
                    $crate::transport::Post::post_send(&mut self.to(to), list)
                }
            }

            impl d::Memory for $memory {
                fn read(&self, offset: usize, to: &mut [u8]) -> Result<(), RangeError> {
                    self.read(offset, to)
                }

                fn write(&self, offset: usize, from: &[u8]) -> Result<(), RangeError> {
                    self.write(offset, from)
                }
            }
        };
    };
    (@region $($region:ty),+) => {
        $(impl d::Region for $region {
            fn len(&self) -> usize {
                self.len()
            }

            #[inline]
            fn sge(&self, offset: usize, len: usize) -> Result<Sge, RangeError> {
                self.sge(offset, len)
            }

            #[inline]
            fn remote(&self, offset: usize) -> Result<RemoteAddr, RangeError> {
                self.remote(offset)
            }
        })+
    };
    (@destroy $($object:ty),+) => {
        $(impl $crate::device::Destroy for $object {
            fn destroy(self) -> Result<(), $crate::setup::InUse<Self>> {
                self.destroy()
            }
        })+
    };
}
