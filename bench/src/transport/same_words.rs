//! The set-up that both transports have in the same words. Only the types differ, and their crates call them
//! the same, so each transport brings its own into scope.

/// What is attempted when a peer's address is used.
pub const CONNECT: &str = "connect to the peer";

/// What [`Memory`](super::Memory) says of its offsets.
pub const INSIDE: &str = "offset and length are inside the memory";

/// The associated types of a transport, and its `end`: with a `context` and a `domain`.
macro_rules! end {
    () => {
        type Queue = Cq;
        type Channel = CompletionChannel;
        type Pair = QueuePair;
        type Memory = Messages<OwnedRegion, MemoryRegion>;

        fn end(&self, needs: &Needs) -> Result<End<Self>, SetUpError> {
            let channel = needs
                .events
                .then(|| self.context.create_channel())
                .transpose()
                .attempt("create a completion channel")?;
            let queue = self
                .context
                .create_cq(needs.completions(), channel.as_ref())
                .attempt("create a completion queue")?;
            let caps = QpCaps {
                max_send_wr: needs.sends,
                max_recv_wr: needs.receives,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline: 0,
            };
            let pair = self
                .domain
                .create_qp(&QpInit { caps, ..QpInit::new(&queue) })
                .attempt("create a queue pair")?;
            let (bytes, access) = (needs.bytes, needs.access());
            let memory = match needs.memory {
                MemoryKind::Fabric => self.domain.allocate(bytes, access).map(Messages::Fabric),
                MemoryKind::Heap => Heap::new(bytes, |ptr, len| {
                    // SAFETY: the memory is the heap's that `Heap` keeps: it stays where it is until its
                    // registration is dropped, and is reached by atomic accesses only.
                    unsafe { self.domain.register(ptr, len, access) }
                })
                .map(Messages::Heap),
            };
            let memory = memory.attempt("register memory for the messages")?;
            Ok(End { pair, queue, channel, memory })
        }
    };
}
pub(crate) use end;

/// How requests name a memory region.
macro_rules! names {
    () => {
        #[inline]
        fn sge(&self, at: usize, len: u32) -> Sge {
            Self::sge(self, at, len as usize).expect(same_words::INSIDE)
        }

        #[inline]
        fn remote(&self, at: usize) -> RemoteAddr {
            Self::remote(self, at).expect(same_words::INSIDE)
        }
    };
}
pub(crate) use names;

/// The memory of a transport: its own, and the heap's that it has registered.
macro_rules! memory {
    () => {
        impl Memory for OwnedRegion {
            #[inline]
            fn write(&mut self, at: usize, bytes: &[u8]) {
                Self::write(self, at, bytes).expect(same_words::INSIDE);
            }

            #[inline]
            fn read(&self, at: usize, bytes: &mut [u8]) {
                Self::read(self, at, bytes).expect(same_words::INSIDE);
            }

            same_words::names!();
        }

        impl Registration for MemoryRegion {
            same_words::names!();
        }
    };
}
pub(crate) use memory;
