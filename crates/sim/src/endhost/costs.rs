//! The host of the paper (ENDHOST-4-1 to 4): one 68040 of 25 MHz, and what the way of a packet to its program
//! costs it.
//!
//! **Printed** are 12 µs of a context switch ("under 12 µs") and 1.8 µs of a system call, by the paper's
//! own source on EMERALDS [7]; and three shares: bypass takes 20 % less than LRP alone, one copy 15 to 22 %
//! less than two. **Our reading** of them: 15 % is a message that fills one packet, 22 % one that fills four,
//! the longest full one up to 6,000 octets; 20 % is the shortest message, of 20. **Our choice** is the cost
//! of copying, 50 ns an octet (a long word read and written in five clocks), the same from the card and from
//! memory. **Derived**, with a copy of k an octet: the packet costs P, the message M; from
//! 1,500k = 0.15·(M + P + 2,972k) and 6,000k = 0.22·(M + 4P + 11,912k) follow P = 138.88 µs and
//! M = 212.52 µs, and IP with UDP have 0.2·(M + P + 68k) = 70.96 µs. They scale with k. **Our choice** again:
//! IP, in each packet, and UDP, once in a message, have half of that each; the rest of P is the interrupt
//! with driver and filter, the rest of M the socket layer.
//!
//! Not modelled: mbufs, caches one by one, DMA that takes the bus, and the sender.

use rota_units::Span;

/// The costs of the steps of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCosts {
    /// Interrupt, driver and filter, for each packet.
    pub interrupt: Span,
    /// The IP layer, for each packet.
    pub ip: Span,
    /// The UDP layer, for each message.
    pub udp: Span,
    /// The socket layer, for each message.
    pub socket: Span,
    /// The receive call.
    pub call: Span,
    /// A switch to another thread.
    pub switch: Span,
    /// Copying, picoseconds an octet.
    pub copy_ps: u64,
}

impl HostCosts {
    /// The 68040 of 25 MHz.
    pub const PAPER: Self = Self {
        interrupt: Span::from_nanos(103_400),
        ip: Span::from_nanos(35_480),
        udp: Span::from_nanos(35_480),
        socket: Span::from_nanos(163_240),
        call: Span::from_nanos(1_800),
        switch: Span::from_micros(12),
        copy_ps: 50_000,
    };
    /// A processor that takes no time.
    pub const NONE: Self = Self {
        interrupt: Span::ZERO,
        ip: Span::ZERO,
        udp: Span::ZERO,
        socket: Span::ZERO,
        call: Span::ZERO,
        switch: Span::ZERO,
        copy_ps: 0,
    };

    /// The layers of a packet, which begins a message or not.
    pub fn layers(&self, is_first: bool) -> Span {
        self.ip + if is_first { self.udp } else { Span::ZERO }
    }

    /// A copy of so many octets.
    pub fn copy(&self, octets: u16) -> Span {
        Span::from_nanos(self.copy_ps * u64::from(octets) / 1_000)
    }
}

/// Where the time of the processor went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Interrupts, driver, filter.
    pub interrupt: Span,
    /// Copies out of the card into the host's memory.
    pub copy_out: Span,
    /// Copies to the program.
    pub copy: Span,
    /// The layers of IP and UDP.
    pub layers: Span,
    /// The socket layer, and the call.
    pub socket: Span,
    /// Switches between threads.
    pub switch: Span,
}

impl Spent {
    /// All of it.
    pub fn total(&self) -> Span {
        let Self { interrupt, copy_out, copy, layers, socket, switch } = *self;
        interrupt + copy_out + copy + layers + socket + switch
    }
}
