//! What the node tells about itself.

use crate::NodeSpec;
use crate::data::DataCounts;
use crate::door::Guests;
use crate::guardian::Guardian;
use crate::ledger::Ledger;
use crate::links::LinksView;
use crate::privileges::Privileges;
use crate::queues::Queues;
use crate::quota::Quota;
use hdrhistogram::Histogram;
use rota_admission::cpu::{Fits, Over};
use rota_contract::{ChannelId, CpuShare, NodeId};
use rota_driver::realtime::Realtime;
use rota_driver::stall::StallEvent;
use rota_driver::tunnel::Trouble;
use rota_proto::{
    ChannelDetail, CpuStatus, GroupStatus, LlcSettings, PartitionStatus, PortId, Settings, Status,
    TimersInForce,
};
use rota_shm::control::{
    GroupInfo, LlcInfo, MemberInfo, PartitionInfo, PortInfo, ReservationInfo, StatusInfo, TokenInfo,
};
use rota_shm::{CounterTable, TraceFile};
use rota_units::Span;
use rota_wire::{MacAddr, Slot, Verdict};
use serde_json::json;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// One sentence: who does not take part, and why.
pub(crate) fn refusal(mac: MacAddr, why: Verdict, here: bool) -> String {
    let reason = match why {
        Verdict::Settings => {
            "their settings differ; give all stations the same ones, and one calibration file or none"
        }
        Verdict::Full => {
            "with one station more the reservations would break their promise; state more with --stations"
        }
        Verdict::HeldOff => {
            "it took more of the ring than its share, or sent outside its slots, and has to wait"
        }
        Verdict::Prove | Verdict::Behind => "it has not answered a challenge",
    };
    if here {
        format!("station {mac} does not let this station into its ring: {reason}")
    } else {
        format!("station {mac} does not take part here: {reason}")
    }
}

/// The facts of a port that do not change.
#[derive(Clone, Debug, Default)]
pub(crate) struct PortFacts {
    pub(crate) interface: String,
    pub(crate) trt_ns: u64,
    pub(crate) watch: Span,
    /// The configured death timer.
    pub(crate) configured: Span,
    pub(crate) link_bps: u64,
    /// Of a tunnel.
    pub(crate) trouble: Option<Arc<Trouble>>,
}

impl PortFacts {
    fn of((interface, settings): (&str, &Settings)) -> Self {
        Self {
            interface: interface.to_owned(),
            trt_ns: settings.trt.as_nanos(),
            watch: settings.watch(),
            configured: settings.death_timeout,
            link_bps: settings.link.rate.as_bps(),
            trouble: None,
        }
    }
}

impl PortFacts {
    /// The counts of a tunnel.
    fn tunnel(&self) -> Option<serde_json::Value> {
        let [too_long, unreachable, foreign] = self.trouble.as_deref()?.counts();
        let interface = &self.interface;
        let counts = json!({ "too_long": too_long, "unreachable": unreachable, "foreign": foreign });
        Some(json!({ "interface": interface, "counts": counts }))
    }
}

/// What does not change.
pub(crate) struct Facts {
    pub(crate) name: String,
    pub(crate) node_id: NodeId,
    /// Why it is for this run only.
    pub(crate) node_id_note: Option<String>,
    /// Of each port: by the number of a port, also of one that is gone.
    pub(crate) ports: Vec<PortFacts>,
    /// Octets of a unit that fit into one frame of any port.
    pub(crate) payload_max: u32,
    pub(crate) lab_key: bool,
    /// What whoever watches may map.
    pub(crate) counters: CounterTable,
    pub(crate) log: Option<OwnedFd>,
    pub(crate) quota: Quota,
    pub(crate) ledger: Ledger,
    pub(crate) guests: Option<Guests>,
    pub(crate) privileges: Privileges,
    pub(crate) llc: LlcSettings,
    /// Of each port.
    pub(crate) guardians: Vec<Option<Guardian>>,
    /// Where the node has neighbours.
    pub(crate) links: Option<LinksView>,
    pub(crate) queues: Queues,
}

impl Facts {
    pub(crate) fn of(
        spec: &NodeSpec,
        ports: &[(&str, &Settings)],
        counters: CounterTable,
        log: Option<&TraceFile>,
        privileges: Privileges,
    ) -> Result<Self, crate::NodeError> {
        let log = log.map(|log| log.descriptor().try_clone_to_owned()).transpose();
        Ok(Self {
            log: log.map_err(crate::system("the event log cannot be shared"))?,
            name: spec.name.clone(),
            node_id: spec.node_id.get(),
            node_id_note: spec.node_id.note().map(str::to_owned),
            payload_max: ports
                .iter()
                .map(|(_, of)| of.link.framing.unit_payload_max() as u32)
                .max()
                .unwrap_or(0),
            ports: ports.iter().copied().map(PortFacts::of).collect(),
            lab_key: spec.key.lab,
            counters,
            quota: spec.quota,
            ledger: Ledger::new(spec.quota),
            guests: spec.guests.clone(),
            privileges,
            llc: spec.settings.llc.clone(),
            guardians: Vec::new(),
            links: None,
            queues: Queues::begin(false, &[]),
        })
    }

    /// The facts of a port.
    pub(crate) fn port(&self, port: PortId) -> &PortFacts {
        let found = self.ports.get(usize::from(port.0)).or(self.ports.first());
        found.expect("a node has a port")
    }

    /// A note of a port: of a node with several it names the interface.
    pub(crate) fn of_port(&self, port: PortId, note: String) -> String {
        match self.ports.len() {
            0 | 1 => note,
            _ => format!("{}: {note}", self.port(port).interface),
        }
    }
}

/// A member, as the data thread copied it.
#[derive(Debug)]
pub(crate) struct MemberCopy {
    pub(crate) node_id: NodeId,
    pub(crate) station: u16,
    pub(crate) name: String,
    pub(crate) mac: MacAddr,
    pub(crate) alive: bool,
}

impl MemberCopy {
    fn info(&self) -> MemberInfo {
        let Self { station, alive, .. } = *self;
        MemberInfo { station, name: self.name.clone(), mac: self.mac.to_string(), alive }
    }
}

fn reservation(slot: &Slot, name: &str) -> ReservationInfo {
    let Slot { station, tht_ns, periodic, .. } = *slot;
    ReservationInfo { station, name: name.to_owned(), tht_ns: tht_ns.into(), periodic }
}

fn partition(of: &PartitionStatus) -> PartitionInfo {
    let name = of.name.map_or_else(|| "rest".to_owned(), |name| name.to_string());
    let (channels, work_ns) = (of.load.channels as u64, of.load.work.as_nanos());
    PartitionInfo { name, percent: of.percent, channels, work_ns }
}

fn group(of: &GroupStatus) -> GroupInfo {
    let GroupStatus { uid, name, at_once, members, held } = *of;
    GroupInfo { name: name.to_string(), uid, at_once, members: members as u64, held }
}

/// A port, as the data thread copied it.
#[derive(Debug)]
pub(crate) struct PortCopy {
    pub(crate) port: PortId,
    pub(crate) status: Status,
    /// How often the token was passed on.
    pub(crate) holds: u64,
    pub(crate) timers: TimersInForce,
    pub(crate) members: Vec<MemberCopy>,
    /// The CPU is admitted for its channels.
    pub(crate) admits_cpu: bool,
}

impl PortCopy {
    /// The name of a station; empty while it is not known.
    pub(crate) fn name_of(&self, station: u16) -> &str {
        self.members.iter().find(|member| member.station == station).map_or("", |member| &*member.name)
    }

    fn info(&self, facts: &Facts) -> PortInfo {
        let (facts, status) = (facts.port(self.port), &self.status);
        let (counters, slots) = (&status.counters, status.slots.iter());
        PortInfo {
            interface: facts.interface.clone(),
            station: (status.station != 0).then_some(status.station),
            mode: status.mode,
            members: self.members.iter().map(MemberCopy::info).collect(),
            reservations: slots.map(|slot| reservation(slot, self.name_of(slot.station))).collect(),
            partitions: status.partitions.iter().map(partition).collect(),
            groups: status.groups.iter().map(group).collect(),
            trt_ns: facts.trt_ns,
            link_bps: facts.link_bps,
            token: TokenInfo {
                accepted: counters.tokens_accepted,
                passed: self.holds,
                stale: counters.tokens_stale,
                retransmitted: counters.tokens_retransmitted,
                generation: u64::from(status.generation),
                claims: counters.claims,
                unauthentic: counters.frames_unproven,
            },
            timers: crate::timers::info(self, facts),
        }
    }

    /// Stations whose address a stranger uses, and stations that do not take part.
    fn notes(&self, facts: &Facts) -> Vec<String> {
        let contested = self.status.contested.iter().map(|mac| self.contested(*mac, facts));
        // The journal names the settings that differ.
        let refused = self.status.refused.iter().filter(|told| told.why != Verdict::Settings);
        let refused = refused.map(|told| refusal(told.mac, told.why, told.here));
        let tunnel = facts.port(self.port).trouble.as_deref();
        let absent = tunnel.filter(|_| self.members.is_empty()).map(Trouble::unreachable);
        let of_tunnel = tunnel.map(Trouble::what).into_iter().chain(absent);
        let of_tunnel = of_tunnel.chain(tunnel.and_then(Trouble::too_long));
        let no_cpu = (!self.admits_cpu).then(|| {
            "the CPU is not admitted for channels: no file with the costs of circuits was given \
             (--calibration), or no share (--cpu-share)"
                .to_owned()
        });
        contested
            .chain(refused)
            .chain(of_tunnel)
            .chain(no_cpu)
            .map(|note| facts.of_port(self.port, note))
            .collect()
    }

    fn contested(&self, mac: MacAddr, facts: &Facts) -> String {
        let name = self.members.iter().find(|member| member.mac == mac).map(|member| &*member.name);
        let astray = self.status.astray.contains(&mac);
        let sentence = rota_shm::StationRow::contested_sentence(mac, name.unwrap_or(&facts.name), astray);
        format!("{sentence}; {}", "frames for it go to its group address meanwhile")
    }
}

/// The CPU that channels have, in words.
fn promised(cpu: CpuStatus) -> String {
    let CpuStatus { channels, share_ppm, delay, now } = cpu;
    match now {
        Ok(Fits { load_ppm, response }) => {
            let (load, share) = (CpuShare::percent(load_ppm), CpuShare::percent(share_ppm.into()));
            let ends = if channels == 1 { "end of a channel" } else { "ends of channels" };
            let response = response.printed_up();
            format!(
                "CPU: {load} of the {share} for channels is promised, with the token's part, to {channels} \
                 {ends}; the work of a unit is done within {response}, and may take {delay}"
            )
        }
        Err(Over { test, needed, most, .. }) => {
            format!(
                "CPU: none can be promised to channels ({test}): it would be {needed}, and {most} is \
                 allowed; measure the costs of circuits again, or give more by --cpu-share or --cpu-delay"
            )
        }
    }
}

/// The same in numbers.
fn cpu_numbers(cpu: CpuStatus) -> serde_json::Value {
    let CpuStatus { channels, share_ppm, delay, now } = cpu;
    json!({
        "channels": channels,
        "share_ppm": share_ppm,
        "load_ppm": now.map_or(None, |fits| Some(fits.load_ppm)),
        "within_ns": delay.as_nanos(),
        "response_ns": now.map_or(None, |fits| Some(fits.response.as_nanos())),
    })
}

/// A copy of what the data thread knows.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Those that are there, the first one first.
    pub(crate) ports: Vec<PortCopy>,
    /// A sentence for each port that is gone.
    pub(crate) lost: Vec<String>,
    pub(crate) hops: Histogram<u64>,
    pub(crate) rounds: Histogram<u64>,
    pub(crate) measured: DataCounts,
    pub(crate) counters: Vec<(String, u64)>,
    pub(crate) stalls: Vec<StallEvent>,
    pub(crate) llc: LlcInfo,
    /// Sources of frames that nothing proves, which the kernel drops for now.
    pub(crate) shut_out: Vec<MacAddr>,
    /// The frames of strangers are so many that only stations are heard most of the time.
    pub(crate) many_strangers: bool,
    /// Of each channel its sender's number, whether it is sent here, and its units so far.
    pub(crate) units: Vec<(ChannelId, bool, u64)>,
    /// The CPU that is promised; none where it is not admitted.
    pub(crate) cpu: Option<CpuStatus>,
    /// Of the channels that were asked for, each hop.
    pub(crate) details: Vec<(ChannelId, ChannelDetail)>,
}

impl Snapshot {
    /// Units of a channel so far.
    pub(crate) fn units_of(&self, channel: ChannelId, sending: bool) -> Option<u64> {
        self.units.iter().find(|of| (of.0, of.1) == (channel, sending)).map(|of| of.2)
    }

    fn member(&self, mac: MacAddr) -> Option<&MemberCopy> {
        self.ports.iter().flat_map(|port| &port.members).find(|member| member.mac == mac)
    }

    /// The number of another station on its segment; 0 while it has none.
    pub(crate) fn number_of(&self, mac: MacAddr) -> u16 {
        self.member(mac).map_or(0, |member| member.station)
    }

    /// The node of another station, once it has announced itself.
    pub(crate) fn node_of(&self, mac: MacAddr) -> NodeId {
        self.member(mac).map_or(NodeId::UNKNOWN, |member| member.node_id)
    }

    /// As `rota status` prints it.
    pub(crate) fn info(&self, facts: &Facts, realtime: &Realtime) -> StatusInfo {
        let ports: Vec<PortInfo> = self.ports.iter().map(|port| port.info(facts)).collect();
        let mut extra = self.extra();
        extra["ports"] = json!(ports);
        extra["tunnels"] = facts.ports.iter().filter_map(PortFacts::tunnel).collect();
        let mut notes = vec![format!("real-time: {realtime}")];
        notes.extend(facts.privileges.notes());
        extra["privileges"] = facts.privileges.json();
        extra["links"] = facts.links.as_ref().map_or(serde_json::Value::Null, LinksView::json);
        if facts.lab_key {
            notes.push("the well-known lab key is in use: anybody can make frames of this segment".into());
        }
        notes.extend(facts.node_id_note.clone());
        let guardians = facts.guardians.iter().flatten();
        notes.extend(guardians.map(|guardian| format!("guardian: {}", guardian.state())));
        notes.extend(self.lost.iter().cloned());
        notes.extend(crate::stood::note(&self.stalls, rota_driver::clock::now()));
        notes.extend(self.cpu.map(promised));
        notes.extend(self.shut_out.iter().map(|mac| {
            format!(
                "{mac} sends more than 640 frames a second that no key proves; the kernel drops them here"
            )
        }));
        notes.extend(self.many_strangers.then(|| {
            "more than 5,120 frames a second come that no key proves; the kernel drops those that name no \
             station of this segment, and a station that joins may wait longer"
                .to_owned()
        }));
        notes.extend(self.ports.iter().flat_map(|port| port.notes(facts)));
        let first = ports.into_iter().next().unwrap_or_default();
        let PortInfo { interface, station, mode, members, reservations, .. } = first;
        StatusInfo {
            pid: std::process::id(),
            station,
            name: facts.name.clone(),
            node_id: facts.node_id,
            interface,
            mode,
            members,
            reservations,
            trt_ns: first.trt_ns,
            link_bps: first.link_bps,
            token: first.token,
            timers: first.timers,
            key: if facts.lab_key { "lab" } else { "segment" }.into(),
            notes,
            llc: self.llc.clone(),
            extra,
        }
    }

    fn extra(&self) -> serde_json::Value {
        let named = self.counters.iter().map(|(name, value)| (name.clone(), json!(value)));
        let counters: serde_json::Map<String, serde_json::Value> = named.collect();
        let stalls = self.stalls.iter().map(|stall| {
            let kind = format!("{:?}", stall.kind);
            json!({ "from_ns": stall.from.as_nanos(), "to_ns": stall.to.as_nanos(), "kind": kind })
        });
        let stalls: Vec<_> = stalls.collect();
        let part = |total: u64| total / self.measured.hops_split.max(1);
        json!({
            "counters": counters,
            "hop": {
                "count": self.hops.len(),
                "p50_ns": self.hops.value_at_quantile(0.5),
                "p99_ns": self.hops.value_at_quantile(0.99),
                "p999_ns": self.hops.value_at_quantile(0.999),
                "max_ns": self.hops.max(),
                "round_p50_ns": self.rounds.value_at_quantile(0.5),
                "split_ns": {
                    "receive": part(self.measured.receive_ns),
                    "handle": part(self.measured.handle_ns),
                    "build": part(self.measured.build_ns),
                    "transmit": part(self.measured.transmit_ns),
                },
            },
            "stalls": stalls,
            "cpu": self.cpu.map(cpu_numbers),
        })
    }
}
