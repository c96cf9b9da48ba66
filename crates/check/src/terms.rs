//! The parts of a certificate, with the name and the kind of each number.

/// The version of the format.
pub const VERSION: u64 = 5;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Assumed or asked for: the statement is about it.
    Free,
    /// Follows from free ones, and is compared by equality.
    Derived,
}

macro_rules! terms {
    ($($name:ident $doc:literal { $($field:ident: $kind:ident $what:literal,)* })*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name { $(#[doc = $what] pub $field: u64,)* }

        impl $name {
            /// Names and kinds, in the order of the format.
            pub const FIELDS: &'static [(&'static str, Kind)] = &[$((stringify!($field), Kind::$kind)),*];

            /// The numbers, in the same order.
            pub fn values(&self) -> impl Iterator<Item = u64> + use<> {
                [$(self.$field),*].into_iter()
            }

            /// The places of the numbers, for a reader.
            pub fn places(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$field),*].into_iter()
            }
        }
    )*};
}

terms! {
    Channel "What the client asked for." {
        x_min: Free "Least time between messages.", x_ave: Free "Least average time between messages.",
        interval: Free "The interval of the average.", s_max: Free "Largest message.",
        delay_max: Free "D_max.", jitter_max: Free "J_max; 0 where none was asked for.",
        packet_max: Free "Largest payload of a packet.", octets_least: Free "Payload of the shortest one.",
        host_slack: Free "How late the sending host may hand over.",
        clocks: Free "By how many millionths two clocks of the path may differ.",
        begins: Free "When its first message comes.", ends: Free "When its last one has; 0 where it stays.",
    }
    Packets "The packets of the messages." {
        count: Derived "Packets of the largest message.", octets: Derived "Payload of the largest.",
        burst: Derived "Packets in any interval.", x_min: Derived "Least time between packets.",
        spread: Derived "From the first packet of a message to its last.",
        counted_x_min: Derived "The time between packets on any clock behind any regulator.",
        counted_interval: Derived "The interval likewise.",
    }
    HopTerms "One node of the way to some receiver, and the link behind it." {
        before: Free "The place of the hop before it, from 1; 0 at the source.",
        regulator: Free "It holds packets: 0 not, 1 rate-jitter, 2 by what was ahead, 3 by the timestamp.",
        error: Free "Of its clock, or of the time that a packet carries, or 0.",
        delay: Free "d, host slack included.", link_least: Free "Shortest time of the link behind it.",
        link_most: Free "Longest time.", service_least: Derived "Shortest time in which a packet passes.",
        buffers: Derived "Packets for which it has room.",
    }
    Frame "What a frame costs." {
        rate: Free "Of the slowest port.", mtu: Free "Largest frame payload.",
        overhead: Free "Octets on the wire beside it.", wire_least: Free "Those of the shortest frame.",
        headers: Free "Octets of all headers and the tag.", per_frame: Free "What the host adds to each.",
        prepare: Free "What it needs to prepare one.", host_slack: Free "How late the node may wake.",
    }
    Flow "A channel at a port." {
        x_min: Free "Least time between its packets.", interval: Free "The interval of its burst.",
        burst: Free "Packets in any such interval.", octets: Free "Payload of its largest packet.",
        delay: Free "Its bound on the port.", from: Free "When it begins to count.",
        until: Free "When it counts no more; 0 where it stays.",
        service: Derived "The time of its largest packet.",
    }
    Port "A port that serves the earliest deadline first, or levels." {
        levels: Free "1 if it serves levels, each named by its bound.",
        card_ahead: Free "Wire time of other traffic in the card, beside a full frame.",
        window: Free "In each so long", above: Free "so much work goes before all packets.",
        own: Free "The place of this channel.", ordinary: Derived "The largest blocking of other traffic.",
        horizon: Derived "End of the busy period.",
        slack: Derived "The least left at a deadline in it, or at a level's bound.",
    }
    Rether "A slot of a share of a RETHER segment, as it is from some moment on." {
        from: Free "This moment; slots of one moment carry a packet together.",
        per_visit: Free "What the host adds to each visit.", hop: Free "One hop of the token.",
        trt: Free "The cycle.", stations: Free "Live stations.",
        broadcasts: Free "Of the master, in a cycle.", t_nrt: Free "The reserve for ordinary traffic.",
        octets: Free "Of a packet, in this slot.", offset: Free "All slots before it.",
        units: Free "Packets a cycle.", cycles: Free "Cycles a packet.",
        periodic: Free "1 if it asked for the strict ring.", joined: Free "1 if the slot continues a visit.",
        receives: Free "1 if its visit may begin behind a frame.", packet_time: Derived "Of one packet.",
        tht: Derived "The slot.", wait: Derived "For a place in it, and the place.",
        transit: Derived "To the end of reception.", bound: Derived "Of the segment.",
        spare: Derived "What the slot leaves of the cycle.",
    }
    Slots "Slots of a link, which go before its packets: a packet's parts open a window apart." {
        window: Free "No more of them than the packets of a cycle open in so long.",
        per_visit: Free "The host's part of each.",
        above: Free "Slots before its own, and announcements, in a window.",
        card_ahead: Free "Wire time of other traffic in the card, beside a full frame.",
        units: Free "Packets a cycle.", cycles: Free "Cycles a packet.",
        packet_time: Derived "A packet's part in a cycle.", slot: Derived "Its slots of a window.",
        ordinary: Derived "The largest blocking of other traffic.",
        spare: Derived "The rest of the window.",
    }
    Promise "What a receiver is promised." {
        hop: Free "The place of its last hop, from 1.",
        delay: Derived "The end-to-end bound of a message.", delay_spare: Derived "What it leaves of D_max.",
        jitter: Derived "The bound of jitter.", jitter_spare: Derived "What it leaves of J_max, or 0.",
    }
}

/// The kind of network behind a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network<'c> {
    /// A port with its scheduler.
    Port(Port, &'c [Flow]),
    /// The slots of a share of a RETHER segment, at each moment at which some slot of the list changes.
    Rether(&'c [Rether]),
    /// Slots of a link.
    Slots(Slots),
}

/// One node and the network behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop<'c> {
    /// The numbers of every kind of network.
    pub terms: HopTerms,
    /// The cost of a frame there.
    pub frame: Frame,
    /// The test.
    pub network: Network<'c>,
}

/// The whole document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certificate<'c> {
    /// [`VERSION`].
    pub version: u64,
    /// The request.
    pub channel: Channel,
    /// In packets.
    pub packets: Packets,
    /// Each behind the one before it.
    pub hops: &'c [Hop<'c>],
    /// One for each receiver.
    pub promises: &'c [Promise],
    /// See the head of the crate.
    pub seal: u64,
}

impl Certificate<'_> {
    /// The seal of these numbers, in the order of the format, and the largest of them.
    pub fn sealed(&self) -> (u64, u64) {
        let (mut sum, mut power, mut largest) = (0u64, 1u64, 0);
        let mut add = |value: u64| {
            power = power.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            sum = sum.wrapping_add(value.wrapping_mul(power));
            largest = largest.max(value);
        };
        add(self.version);
        self.channel.values().chain(self.packets.values()).for_each(&mut add);
        for hop in self.hops {
            hop.terms.values().chain(hop.frame.values()).for_each(&mut add);
            match &hop.network {
                Network::Port(port, flows) => {
                    port.values().chain(flows.iter().flat_map(Flow::values)).for_each(&mut add);
                }
                Network::Rether(all) => all.iter().flat_map(Rether::values).for_each(&mut add),
                Network::Slots(slots) => slots.values().for_each(&mut add),
            }
        }
        self.promises.iter().flat_map(Promise::values).for_each(add);
        (sum, largest)
    }
}
