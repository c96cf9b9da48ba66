//! Traffic and service of a channel on the command line: in the terms of the Tenet paper (Tables 2 and 3),
//! and in the spellings of IEEE 802.1Qcc.

use rota::{
    AskedChange, AskedTerms, Chances, Group, GroupName, OpenRequest, PartitionName, TrafficSpec, Via,
};
use rota_answer::Failure;
use rota_units::{BitRate, Octets, Span, parse_octets, parse_rate, parse_span};

/// One unit each cycle of a 30 Hz segment.
pub const PERIOD_DEFAULT: Span = Span::from_nanos(33_333_333);

/// The classes of the paper.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Each unit is in time.
    Guaranteed,
    /// So large a part of the units as --timely states is in time.
    Statistical,
}

/// The delay and the jitter that are borne.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Service {
    /// The longest delay of a unit that is borne (Dmax; in 802.1Qcc MaxLatency): refused where the way cannot
    /// keep it
    #[arg(long, visible_alias = "max-latency", value_parser = parse_span, value_name = "TIME")]
    pub delay: Option<Span>,
    /// The largest difference of two delays that is borne (Jmax)
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub jitter: Option<Span>,
    /// Let the way lead over a network without Rota (a tunnel), where nothing is guaranteed; both programs
    /// are told from which node to which
    #[arg(long)]
    pub allow_withdrawn: bool,
    /// For how long another path is looked for when the one across segments fails; the node's own time
    /// unless given, a minute at most
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub reroute: Option<Span>,
    /// End with the cause when the path fails, and look for no other one
    #[arg(long, conflicts_with = "reroute")]
    pub no_reroute: bool,
    /// Count in the partition of this name on each segment of the way that has one, of a channel across
    /// segments; refused where none has it
    #[arg(long, value_name = "NAME")]
    pub partition: Option<PartitionName>,
    /// Share what each link reserves with the other members of this group, of a channel across segments:
    /// those of the same user and name, each with the same traffic
    #[arg(long, value_name = "NAME")]
    pub group: Option<GroupName>,
    /// How many members of the group send at a time: each link reserves for so many of them
    #[arg(long, value_name = "N", requires = "group", default_value_t = 1, hide_default_value = true)]
    pub at_once: u8,
    /// Reserve a second path over other gateways beforehand, and go on over it at once when the first one
    /// fails; refused where there is none
    #[arg(long)]
    pub backup: bool,
    /// Take a path through these gateways, in this order, such as g1,g2; of a channel across segments
    #[arg(long, value_name = "NODES")]
    pub via: Option<Via>,
    /// Reserve it for later: it begins in so much time from now, of a channel across segments
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub from_time: Option<Span>,
    /// It ends by itself in so much time from now, of a channel across segments
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub until: Option<Span>,
    /// 'guaranteed', or 'statistical' with --timely: links then carry more channels than peak rates allow
    #[arg(long, value_enum, value_name = "CLASS")]
    pub class: Option<Class>,
    /// The least part of the units that is to be in time, such as 0.99 or 99.9% (Zmin): statistical
    #[arg(long, value_parser = probability, value_name = "P")]
    pub timely: Option<Probability>,
    /// The least part of the units that is to find room (Wmin); that of --timely unless given
    #[arg(long, value_parser = probability, value_name = "P", requires = "timely")]
    pub no_loss: Option<Probability>,
}

/// A probability, as the parts of 10^9 that are missing to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probability(u32);

fn probability(text: &str) -> Result<Probability, String> {
    rota::parse_probability(text).map(Probability).ok_or_else(|| {
        "it is no probability above 0 and up to 1; write 0.99 or 99%, with up to nine digits behind the point"
            .to_owned()
    })
}

impl Service {
    /// The chances that the words state.
    fn chances(&self) -> Result<Chances, Failure> {
        let late = self.timely.map_or(0, |timely| timely.0);
        let loss = self.no_loss.map_or(late, |no_loss| no_loss.0);
        let chances = Chances { late_ppb: late, loss_ppb: loss };
        match self.class {
            Some(Class::Statistical) if late == 0 => Err(Failure::wrong_use(
                "--class statistical needs --timely below 1, such as 0.99; otherwise all is guaranteed",
            )),
            Some(Class::Guaranteed) if !chances.is_guaranteed() => Err(Failure::wrong_use(
                "--class guaranteed keeps every unit: leave out --timely and --no-loss, or state --class \
                 statistical",
            )),
            _ if late == 0 && loss > 0 => Err(Failure::wrong_use(
                "--no-loss below 1 needs --timely below 1: a lost unit is not in time",
            )),
            _ => Ok(chances),
        }
    }

    /// The terms of a channel with this service, whose average is its period.
    pub fn terms(&self) -> Result<AskedTerms, Failure> {
        let Self { delay, jitter, allow_withdrawn, partition, reroute, no_reroute, backup, .. } = *self;
        let reroute = if no_reroute { Some(Span::ZERO) } else { reroute };
        let chances = self.chances()?;
        let group = self.group.map(|name| Group { name, at_once: self.at_once });
        let (start, end) = (self.from_time, self.until);
        let terms = AskedTerms { delay, jitter, reroute, backup, start, end, ..AskedTerms::default() };
        Ok(AskedTerms { allow_withdrawn, partition, group, chances, via: self.via, ..terms })
    }

    /// True if any other path is asked for, or none.
    pub fn states_reroute(&self) -> bool {
        self.no_reroute || self.reroute.is_some() || self.backup || self.via.is_some()
    }
}

/// The terms of a channel's contract that are to change; the rest stays.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[group(required = true, multiple = true)]
pub struct Change {
    /// The new rate: units of the period carry so much
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, conflicts_with = "smax")]
    pub rate: Option<BitRate>,
    /// The new largest unit (Smax; in 802.1Qcc MaxFrameSize)
    #[arg(long, visible_alias = "max-frame-size", value_parser = parse_octets, value_name = "SIZE")]
    pub smax: Option<Octets>,
    /// From one unit to the next at least (Xmin); this and what follows for channels across segments only
    #[arg(long, visible_alias = "xmin", value_parser = parse_span, value_name = "TIME")]
    pub period: Option<Span>,
    /// The least average time between units (Xave)
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub xave: Option<Span>,
    /// The interval over which the average holds (I)
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub interval: Option<Span>,
    /// The longest delay of a unit that is borne (Dmax; in 802.1Qcc MaxLatency)
    #[arg(long, visible_alias = "max-latency", value_parser = parse_span, value_name = "TIME")]
    pub delay: Option<Span>,
    /// The largest difference of two delays that is borne (Jmax)
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub jitter: Option<Span>,
    /// The least part of the units that is to be in time (Zmin): the channel is statistical from then on
    #[arg(long, value_parser = probability, value_name = "P")]
    pub timely: Option<Probability>,
    /// The least part of the units that is to find room (Wmin); that of --timely unless given
    #[arg(long, value_parser = probability, value_name = "P", requires = "timely")]
    pub no_loss: Option<Probability>,
    /// Another path, through these gateways in this order, such as g1,g2; '' for any
    #[arg(long, value_name = "NODES")]
    pub via: Option<Via>,
}

impl Change {
    /// The change of a channel whose units come `period` apart now.
    pub fn asked(&self, period: Span) -> Result<AskedChange, Failure> {
        let rate = self.rate.map(|rate| unit_octets(rate, self.period.unwrap_or(period))).transpose()?;
        let octets = |smax: Octets| {
            u32::try_from(smax.get()).map_err(|_| too_much(&format!("a unit of {} octets", smax.get())))
        };
        let smax = self.smax.map(octets).transpose()?;
        let &Self { xave, interval, delay, jitter, timely, no_loss, via, .. } = self;
        let class = timely.map(|_| Class::Statistical);
        let wanted = Service { delay, jitter, class, timely, no_loss, via, ..Service::default() };
        let terms = AskedTerms { average: xave, interval, ..wanted.terms()? };
        Ok(AskedChange { unit_octets_max: rate.or(smax), period: self.period, terms })
    }
}

/// Traffic: a rate, or the numbers of a contract.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// The rate to reserve, such as 1.5mbit; or state --smax
    #[arg(long, value_parser = parse_rate, allow_hyphen_values = true, conflicts_with = "smax")]
    #[arg(required_unless_present = "smax")]
    pub rate: Option<BitRate>,
    /// From one unit to the next at least (Xmin), 33.333333ms unless given; the segment's cycle, a multiple
    /// or a whole part of it reserves least
    #[arg(long, visible_alias = "xmin", value_parser = parse_span, value_name = "TIME")]
    pub period: Option<Span>,
    /// The largest unit (Smax; in 802.1Qcc MaxFrameSize), such as 7200octets
    #[arg(long, visible_alias = "max-frame-size", value_parser = parse_octets, value_name = "SIZE")]
    pub smax: Option<Octets>,
    /// The least average time between units (Xave); Xmin unless given
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub xave: Option<Span>,
    /// The interval over which the average holds (I); Xave unless given
    #[arg(long, value_parser = parse_span, value_name = "TIME")]
    pub interval: Option<Span>,
    /// 802.1Qcc: so many frames of --smax in each --interval, all at once unless --xmin says how far apart:
    /// without it they are one unit
    #[arg(long, value_name = "N", conflicts_with_all = ["xave", "rate"])]
    #[arg(requires = "smax", requires = "interval")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub max_frames_per_interval: Option<u64>,
}

impl Traffic {
    /// The request for a channel with this traffic, and this service where the way can keep it.
    pub fn request(&self, to: &str, service: u16, wanted: &Service) -> Result<OpenRequest, Failure> {
        let (unit, period, average, interval) = match (self.max_frames_per_interval, self.interval) {
            (Some(frames), Some(interval)) => self.of_frames(frames, interval),
            _ => (self.unit()?, self.period(), self.xave, self.interval),
        };
        let unit = u32::try_from(unit).map_err(|_| too_much(&format!("a unit of {unit} octets")))?;
        let terms = AskedTerms { average, interval, ..wanted.terms()? };
        // Before a node is looked for: what contradicts itself fits nowhere.
        terms.check(period).map_err(|bad| Failure::wrong_use(bad.to_string()))?;
        Ok(OpenRequest { terms, ..OpenRequest::new(to, service, unit, period) })
    }

    /// The period; the cycle of a 30 Hz segment unless given.
    pub fn period(&self) -> Span {
        self.period.unwrap_or(PERIOD_DEFAULT)
    }

    fn unit(&self) -> Result<u64, Failure> {
        match (self.smax, self.rate) {
            (Some(smax), _) => Ok(smax.get()),
            (None, Some(rate)) => unit_octets(rate, self.period()).map(u64::from),
            (None, None) => Err(Failure::wrong_use("give --rate, such as --rate 1.5mbit, or --smax")),
        }
    }

    /// 802.1Qcc lets the frames of an interval come at once: they are one unit then, once in the interval.
    fn of_frames(&self, frames: u64, interval: Span) -> (u64, Span, Option<Span>, Option<Span>) {
        let smax = self.smax.map_or(0, Octets::get);
        match self.period {
            // Rounded down, the interval still holds so many.
            Some(xmin) => (smax, xmin, Some(interval.div_down(frames)), Some(interval)),
            None => (smax.saturating_mul(frames), interval, None, None),
        }
    }
}

fn too_much(what: &str) -> Failure {
    Failure::wrong_use(format!("{what} is more than one channel can carry; 5000000 octets can be"))
}

/// Octets of a unit that carries so much each period.
pub fn unit_octets(rate: BitRate, period: Span) -> Result<u32, Failure> {
    // Rounded up, because what was asked for must fit, but not further: the offer of a refusal must fit too.
    let octets = rate.octets_in_down(period);
    let is_enough = BitRate::carrying_up(octets, period).is_some_and(|carried| carried >= rate);
    u32::try_from(octets.get() + u64::from(!is_enough)).map_err(|_| too_much(&rate.to_string()))
}

/// The same traffic with room to grow: to units of so many octets, or twice as large as now.
pub fn with_room(traffic: TrafficSpec, room: Option<u32>) -> TrafficSpec {
    match room {
        // Less than a unit is refused with its reason.
        Some(room_octets) => TrafficSpec { room_octets, ..traffic },
        None => traffic.with_room_for(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        traffic: Traffic,
        #[command(flatten)]
        service: Service,
    }

    fn asked(words: &str) -> Result<OpenRequest, String> {
        let words = std::iter::once("x").chain(words.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.traffic.request("n4", 3, &line.service).map_err(|failure| failure.sentence)
    }

    fn ms(n: u64) -> Option<Span> {
        Some(Span::from_millis(n))
    }

    #[test]
    fn the_terms_of_the_paper_are_those_of_the_request() {
        let words = "--xmin 20ms --xave 40ms --interval 1s --smax 7200B --delay 400ms --jitter 100ms";
        let request = asked(words).unwrap();
        assert_eq!((&*request.to, request.service), ("n4", 3));
        assert_eq!((request.traffic.unit_octets_max, request.traffic.period), (7_200, Span::from_millis(20)));
        let most = AskedTerms { delay: ms(400), jitter: ms(100), ..AskedTerms::default() };
        let terms = AskedTerms { average: ms(40), interval: ms(1_000), ..most };
        assert_eq!(request.terms, terms);
        let reroute = |words: &str| asked(words).map(|request| request.terms.reroute);
        assert_eq!(reroute("--rate 1mbit --reroute 500ms"), Ok(ms(500)));
        assert_eq!(reroute("--rate 1mbit --no-reroute"), Ok(ms(0)));
        let named = asked("--smax 7200B --partition studio").unwrap().terms.partition;
        assert_eq!(named.map(|name| name.to_string()).as_deref(), Some("studio"));
        let group = asked("--smax 7200B --group talk --at-once 2").unwrap().terms.group;
        assert_eq!(
            group.map(|group| group.words()).as_deref(),
            Some("2 members of group talk send at a time")
        );
        assert_eq!(
            asked("--smax 7200B --group talk").unwrap().terms.group.map(|group| group.at_once),
            Some(1)
        );
        assert!(asked("--rate 1mbit --backup").unwrap().terms.backup);
        // A rate alone asks for what it always did.
        let request = asked("--rate 1.5mbit").unwrap();
        assert_eq!((request.traffic.unit_octets_max, request.traffic.period), (6_250, PERIOD_DEFAULT));
        assert_eq!(request.terms, AskedTerms::default());
    }

    #[test]
    fn the_spellings_of_802_1qcc_mean_the_same() {
        let qcc = "--max-frame-size 1000B --max-frames-per-interval 4 --interval 20ms --max-latency 90ms";
        let request = asked(qcc).unwrap();
        assert_eq!((request.traffic.unit_octets_max, request.traffic.period), (4_000, Span::from_millis(20)));
        assert_eq!(request.terms, AskedTerms { delay: ms(90), ..AskedTerms::default() });
        let apart = asked(&format!("{qcc} --xmin 2ms")).unwrap();
        assert_eq!((apart.traffic.unit_octets_max, apart.traffic.period), (1_000, Span::from_millis(2)));
        assert_eq!((apart.terms.average, apart.terms.interval), (ms(5), ms(20)));
    }

    #[test]
    fn traffic_that_cannot_be_is_refused_with_what_would_be_right() {
        for (words, expected) in [
            ("--xmin 20ms --xave 10ms --smax 100B", "it must be 20 ms or longer"),
            ("--xmin 20ms --xave 40ms --interval 30ms --smax 100B", "it must be 40 ms or longer"),
            ("--smax 100B --delay 0ms", "a delay of 0 cannot be kept"),
            ("--smax 100B --jitter 0ms", "a jitter of 0 cannot be kept"),
            ("--smax 100B --reroute 61s", "60 s at most"),
            ("--smax 100B --reroute 1s --no-reroute", "cannot be used with"),
            ("--smax 5000MiB", "5000000 octets can be"),
            ("--smax 100B --rate 1mbit", "cannot be used with"),
            ("--delay 90ms", "--rate"),
            ("--rate 1mbit --max-frames-per-interval 2", "cannot be used with"),
            ("--smax 100B --max-frames-per-interval 2", "--interval"),
            ("--smax 100", "unit"),
            ("--smax 100B --partition rest", "leave it out"),
            ("--smax 100B --group talk --at-once 17", "1 to 16 members send at once, not 17"),
            ("--smax 100B --group talk --timely 0.9", "a member of a group has no start"),
            ("--smax 100B --at-once 2", "--group"),
            ("--smax 100B --group a/b", "1 to 16 letters"),
            ("--smax 100B --partition a/b", "1 to 16 letters"),
            // Frames that are closer together on average than at least.
            ("--smax 9B --max-frames-per-interval 9 --interval 9ms --xmin 2ms", "it must be 2 ms or longer"),
        ] {
            let said = asked(words).unwrap_err();
            assert!(said.contains(expected), "{words}: {said}");
        }
    }

    #[test]
    fn the_class_follows_from_the_probabilities() {
        let chances = |words: &str| asked(&format!("--smax 100B {words}")).map(|of| of.terms.chances);
        let of = |late_ppb, loss_ppb| Ok(Chances { late_ppb, loss_ppb });
        assert_eq!(chances(""), of(0, 0));
        assert_eq!(chances("--class guaranteed --timely 1"), of(0, 0));
        assert_eq!(chances("--class statistical --timely 0.99"), of(10_000_000, 10_000_000));
        assert_eq!(chances("--timely 99% --no-loss 0.999"), of(10_000_000, 1_000_000));
        // Without loss by buffers nothing may be late either, and the request says so.
        assert_eq!(chances("--timely 0.99 --no-loss 1"), of(10_000_000, 0));
        for (words, expected) in [
            ("--class statistical", "needs --timely below 1"),
            ("--class statistical --timely 1", "needs --timely below 1"),
            ("--class guaranteed --timely 0.9", "leave out --timely"),
            ("--timely 1 --no-loss 0.9", "a lost unit is not in time"),
            ("--no-loss 0.9", "--timely"),
            ("--timely 0", "no probability"),
            ("--timely 1.5", "no probability"),
        ] {
            let said = chances(words).unwrap_err();
            assert!(said.contains(expected), "{words}: {said}");
        }
    }

    #[test]
    fn room_is_twice_the_unit_unless_it_is_stated() {
        let traffic = asked("--smax 100B").unwrap().traffic;
        assert_eq!(with_room(traffic, None).room_octets, 200);
        assert_eq!(with_room(traffic, Some(50)).room_octets, 50, "the node refuses it with its reason");
    }
}
