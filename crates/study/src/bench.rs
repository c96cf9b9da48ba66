//! `rota bench`: what this machine and this program can do. Each benchmark prints; none of them judges.

mod admit;
mod bare;
mod forward;
pub(crate) mod hop;
mod idle;
mod interactive;
mod parts;
mod receive;
mod setup;
mod shipnet;
mod sim;
mod spare;
pub(crate) mod stage;
mod tcp;
mod tenet;
mod transport;

use rota_answer::{Exit, Failure, Format};

/// Arguments of `rota bench`.
#[derive(clap::Args)]
#[command(after_help = "Example: rota bench hop --json")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// A token hop among unmodified nodes against the hop of a bare AF_PACKET ring
    Hop(hop::Args),
    /// The rate of ordinary TCP: without Rota, in plain mode, in token mode with a tenth reserved
    Tcp(tcp::Args),
    /// The processor time of an idle station
    Idle(idle::Args),
    /// TCP request and response of two bystanders: plain mode, an idle ring, beside a flow
    Interactive(interactive::Args),
    /// How long a channel over a gateway takes to open and to close, and what many of them leave behind
    Setup(setup::Args),
    /// The Tenet paper's Figures 8 and 9: throughput and cost by message size, beside raw IP and UDP
    Tenet(tenet::Args),
    /// The processor time that a gateway spends on a packet, against a bare AF_PACKET forwarder
    Forward(forward::Args),
    /// How long the tests of one more channel take at a port of a link that has many
    Admit(admit::Args),
    /// The processor time of a received packet of UDP: the kernel's queue against one of the program's own
    Receive(receive::Args),
    /// How fast the simulator is, with all its checkers, on one core
    Sim(sim::Args),
    /// The SHIPNET paper's measurements: delay, load, broadcast, idle time, beside UDP and beside TCP
    Shipnet(shipnet::Args),
    /// Circuits, kernel TCP and other transports: streams, their processor time, and short round trips
    Transport(transport::Args),
    /// One end of a stream or of round trips
    #[command(hide = true)]
    TransportEnd(transport::end::Args),
    /// The answering station of the SHIPNET measurements
    #[command(hide = true)]
    ShipnetPeer(shipnet::peer::Args),
    /// One station of the bare ring
    #[command(hide = true)]
    Bare(bare::Args),
    /// A bare forwarder
    #[command(hide = true)]
    BareForward(forward::BareArgs),
}

/// Runs the command.
pub fn run(args: &Args, format: Format) -> Result<Exit, Failure> {
    match &args.what {
        What::Hop(args) => hop::run(args, format)?,
        What::Tcp(args) => tcp::run(args, format)?,
        What::Idle(args) => idle::run(args, format)?,
        What::Interactive(args) => interactive::run(args, format)?,
        What::Setup(args) => setup::run(args, format)?,
        What::Tenet(args) => tenet::run(args, format)?,
        What::Admit(args) => admit::run(args, format)?,
        What::Receive(args) => receive::run(args, format)?,
        What::Sim(args) => sim::run(args, format)?,
        What::Shipnet(args) => shipnet::run(args, format)?,
        What::Transport(args) => transport::run(args, format)?,
        What::TransportEnd(args) => transport::end::run(args)?,
        What::ShipnetPeer(args) => shipnet::peer::run(args)?,
        What::Bare(args) => bare::run(args)?,
        What::Forward(args) => forward::run(args, format)?,
        What::BareForward(args) => forward::run_bare(args)?,
    }
    Ok(Exit::Done)
}

/// The middle one; of an even number the lower of the two.
pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// The median of the rounds' own ratios, rounded to thousandths: neighbours share the machine's slow and fast
/// phases.
fn median_ratio(each: impl Iterator<Item = f64>) -> Option<f64> {
    let mut each: Vec<f64> = each.collect();
    each.sort_by(f64::total_cmp);
    each.get(each.len().saturating_sub(1) / 2).map(|ratio| (ratio * 1_000.0).round() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_a_measured_value() {
        assert_eq!([vec![], vec![7], vec![9, 1], vec![3, 1, 2]].map(median), [0, 7, 1, 2]);
    }
}
