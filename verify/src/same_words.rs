//! What transports say in the same words, so that code moves from one to another by changing a type: put
//! into the words of [`device`](crate::device) once for all of them.

/// Implements the traits of handles for the transport `$transport`, whose queue pairs take an `$av` as the
/// peer's address, and of whose shared receive queues `$limit` finds the limit, and `$refusal` translates why it is
/// not set; and makes functions that translate what things are made with.
macro_rules! same_words {
    ($transport:ident, $av:ty, $limit:expr, $refusal:expr) => {
        impl $crate::device::Destroy for $transport::ProtectionDomain {
            fn destroy(self) -> Result<(), Self> {
                Self::destroy(self).map_err(|in_use| in_use.handle)
            }
        }

        impl $crate::device::Destroy for $transport::CompletionChannel {
            fn destroy(self) -> Result<(), Self> {
                Self::destroy(self).map_err(|in_use| in_use.handle)
            }
        }

        impl $crate::device::Destroy for $transport::Cq {
            fn destroy(self) -> Result<(), Self> {
                Self::destroy(self).map_err(|in_use| in_use.handle)
            }
        }

        impl $crate::device::Destroy for $transport::SharedReceiveQueue {
            fn destroy(self) -> Result<(), Self> {
                Self::destroy(self).map_err(|in_use| in_use.handle)
            }
        }

        impl $crate::device::Srq for $transport::SharedReceiveQueue {
            fn number(&self) -> u32 {
                self.number()
            }

            fn caps(&self) -> $crate::device::SrqInit {
                self.caps()
            }

            fn post_recv(
                &mut self,
                list: &[cq_core::wr::RecvWr<'_>],
            ) -> Result<(), cq_core::transport::PostError> {
                self.post_recv(list)
            }

            fn arm_limit(&mut self, limit: u32) -> Result<(), $crate::device::Refusal> {
                self.arm_limit(limit).map_err($refusal)
            }

            fn limit(&self) -> u32 {
                $limit(self)
            }
        }

        impl $crate::device::Mr for $transport::OwnedRegion {
            fn addr(&self) -> u64 {
                self.addr()
            }

            fn lkey(&self) -> u32 {
                self.lkey()
            }

            fn rkey(&self) -> u32 {
                self.rkey()
            }

            fn read(&self, offset: usize, to: &mut [u8]) {
                self.read(offset, to).expect("it is inside");
            }

            fn write(&self, offset: usize, from: &[u8]) {
                self.write(offset, from).expect("it is inside");
            }
        }

        fn attributes(
            attr: &$crate::device::Attr,
            state: fn($crate::device::State) -> $transport::QpState,
            address: impl Fn(u8) -> $av,
        ) -> $transport::QpAttr {
            let mut to = $transport::QpAttr::new();
            $crate::same_words::give! { attr, to;
                state => state by state;
                cur_state => cur_state by state;
                sqd_async_notify => en_sqd_async_notify;
                access => access;
                qkey => qkey;
                pkey_index => pkey_index;
                port => port;
                av => av by address;
                path_mtu => path_mtu;
                dest_qp_num => dest_qp_num;
                rq_psn => rq_psn;
                sq_psn => sq_psn;
                max_dest_rd_atomic => max_dest_rd_atomic;
                max_rd_atomic => max_rd_atomic;
                min_rnr_timer => min_rnr_timer;
                timeout => timeout;
                retry_cnt => retry_cnt;
                rnr_retry => rnr_retry;
            }
            to
        }
    };
}
pub(crate) use same_words;

/// Hands on the attributes that are given, each to its setter.
macro_rules! give {
    ($attr:ident, $to:ident; $($field:ident => $setter:ident $(by $translate:ident)?;)+) => {$(
        if let Some(value) = $attr.$field {
            $to = $to.$setter($($translate)?(value));
        }
    )+};
}
pub(crate) use give;
