//! Implementing the traits for a transport.

/// For transports: implements the traits of [`device`](crate::device) by the methods of the same names that the types of
/// a transport have.
#[doc(hidden)]
#[macro_export]
macro_rules! device_traits {
    (
        $context:ty, $pd:ty, $memory:ty, $region:ty, $channel:ty, $cq:ty, $cq_handle:ty, $srq:ty, $ah:ty, $qp:ty, $directed:ident
    ) => {
        const _: () = {
            use $crate::device as d;
            use $crate::setup::*;
            use $crate::post::PostError;
            use ::cq_core::wc::Wc;
            use $crate::wr::{RecvWr, RemoteAddr, Sge};

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

                $crate::device_traits!(@same self: &Self;
                    fn name() -> &str;
                    fn attributes() -> DeviceAttr;
                    fn port(number: u8) -> Result<Port, DeviceError>;
                    fn alloc_pd() -> Result<$pd, CreateError>;
                    fn create_channel() -> Result<$channel, CreateError>;
                    fn port_with_gid(number: u8, index: u8) -> Result<Port, DeviceError>;
                    fn create_cq(init: &d::CqBuilder<'_, Self>) -> Result<$cq, CreateError>;
                );

                fn gids(&self, port: u8) -> Result<impl Iterator<Item = (u8, Gid)>, DeviceError> {
                    Ok(self.gids(port)?.into_iter())
                }
            }

            impl $context {
                /// Begins a completion queue that holds at least `capacity` completions
                /// ([O1](cq_core::contract#o1)).
                #[doc(alias("ibv_create_cq", "ibv_create_cq_ex"))]
                pub const fn cq(&self, capacity: u32) -> d::CqBuilder<'_, Self> {
                    d::CqBuilder::new(self, capacity)
                }
            }

            impl $pd {
                /// Begins a queue pair whose requests complete in `cq`: a completion queue, what wraps it, or its
                /// handle. It is a reliable connection with the [usual capacities](cq_verbs::setup::QpCaps::USUAL),
                /// unless the result says otherwise.
                #[doc(alias("ibv_create_qp", "ibv_create_qp_ex"))]
                pub fn qp<'a>(&'a self, cq: &'a impl AsRef<$cq_handle>) -> d::QpBuilder<'a, Self> {
                    d::QpBuilder::new(self, cq)
                }
            }

            impl AsRef<$cq_handle> for $cq_handle {
                fn as_ref(&self) -> &Self {
                    self
                }
            }

            impl $qp {
                $crate::posted_without_import!();
            }

            impl $directed<'_> {
                $crate::posted_without_import!();
            }

            impl $cq {
                ::cq_core::polled_without_import!(Wc);
            }

            impl d::DevicePd for $pd {
                type Device = $context;

                $crate::device_traits!(@same self: &Self;
                    fn allocate(len: usize, access: Access) -> Result<$memory, RegisterError>;
                    fn allocate_with(len: usize, access: Access, options: &MemoryOptions) -> Result<$memory, RegisterError>;
                    fn create_qp(init: &d::QpBuilder<'_, Self>) -> Result<$qp, CreateError>;
                    fn create_srq(init: &SrqInit) -> Result<$srq, CreateError>;
                    fn create_ah(to: &AddressVector) -> Result<$ah, AddressError>;
                    fn ah_from_wc(port: &Port, wc: &Wc, grh: &[u8; 40]) -> Result<$ah, AddressError>;
                );

                #[allow(unsafe_code)]
                unsafe fn register(
                    &self,
                    ptr: *mut u8,
                    len: usize,
                    access: Access,
                ) -> Result<$region, RegisterError> {
                    // SAFETY: the caller upholds the contract of the trait, which is the one of the transport.
                    unsafe { self.register(ptr, len, access) }
                }
            }

            impl ::cq_core::transport::Capacity for $cq {
                $crate::device_traits!(@same self: &Self;
                    fn capacity() -> usize;
                );
            }

            impl d::DeviceCq for $cq {
                type Handle = $cq_handle;

                $crate::device_traits!(@same self: &Self;
                    fn handle() -> $cq_handle;
                );
                $crate::device_traits!(@same self: &mut Self;
                    fn resize(capacity: u32) -> Result<u32, ResizeError>;
                    fn moderate(count: u16, period: u16) -> Result<(), ModerateError>;
                );
            }

            impl d::DeviceSrq for $srq {
                $crate::device_traits!(@same self: &Self;
                    fn number() -> u32;
                    fn caps() -> SrqInit;
                    fn limit() -> Result<u32, DeviceError>;
                );
                $crate::device_traits!(@same self: &mut Self;
                    fn post_recv(list: &[RecvWr<'_>]) -> Result<(), PostError>;
                    fn arm_limit(limit: u32) -> Result<(), ArmLimitError>;
                );
            }

            impl d::DeviceQp for $qp {
                type Ah = $ah;
                type Directed<'a> = $directed<'a>;

                $crate::device_traits!(@same self: &Self;
                    fn number() -> u32;
                    fn qp_type() -> QpType;
                    fn caps() -> QpCaps;
                    fn state() -> Result<QpState, DeviceError>;
                    fn attributes() -> Result<QpAttr, DeviceError>;
                    fn endpoint(port: &Port) -> Endpoint;
                );
                $crate::device_traits!(@same self: &mut Self;
                    fn modify(attr: &QpAttr) -> Result<(), ModifyError>;
                    fn connect(port: &Port, peer: &Endpoint) -> Result<(), ModifyError>;
                    fn activate(port: &Port, qkey: u32) -> Result<(), ModifyError>;
                );

                fn to<'a>(&'a mut self, destination: &Destination<'a, $ah>) -> $directed<'a> {
                    self.to(destination)
                }
            }

            impl d::Memory for $memory {
                $crate::device_traits!(@same self: &Self;
                    fn read(offset: usize, to: &mut [u8]) -> Result<(), RangeError>;
                    fn write(offset: usize, from: &[u8]) -> Result<(), RangeError>;
                );
            }

            $crate::device_traits!(@region $memory, $region);
            $crate::device_traits!(@destroy $pd, $channel, $cq, $srq);
        };
    };
    (@region $($region:ty),+) => {
        $(impl d::Region for $region {
            $crate::device_traits!(@same self: &Self;
                fn registered() -> Registered;
            );
        })+
    };
    (@destroy $($object:ty),+) => {
        $(impl d::Destroy for $object {
            fn destroy(self) -> Result<(), InUseError<Self>> {
                self.destroy()
            }
        })+
    };
    (@same $this:ident: $receiver:ty; $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        $(#[inline]
        fn $name($this: $receiver $(, $argument: $type)*) -> $result {
            Self::$name($this $(, $argument)*)
        })+
    };
}
