//! The paper's printed capacities with the paper's own constants, by the arithmetic that admission uses.

use rota_admission::{Framing, LinkModel};
use rota_units::{BitRate, Octets, Span};

const TRT: Span = Span::from_nanos(33_333_333);
const MPEG_I: Octets = Octets::new(6_250);
/// Eq. 7 charges bare octets.
const BARE: Framing = Framing { mtu: 1_500, overhead_octets: 0, min_wire_octets: 0, rota_octets: 0 };

fn model(mbit: u64, per_frame: Span, per_visit: Span, hop: Span) -> LinkModel {
    let rate = BitRate::from_mbit(mbit);
    LinkModel { per_frame, per_visit, hop, ..LinkModel::new(rate, BARE, 0) }
}

fn streams(link: &LinkModel) -> u64 {
    TRT.count_down(link.unit_span_up(MPEG_I) + link.hop)
}

fn us(n: u64) -> Span {
    Span::from_micros(n)
}

#[test]
fn five_streams_on_10_mbit() {
    assert_eq!(streams(&model(10, us(140), us(650), us(247))), 5);
}

#[test]
fn forty_streams_on_100_mbit_when_all_of_eq_7_is_divided() {
    // a, b and the wire by 10; of the hop only the two token copies of 31 and 29 us, by 7.
    let hop = Span::from_nanos(187_000 + 60_000_u64.div_ceil(7));
    assert_eq!(streams(&model(100, us(14), us(65), hop)), 40);
    // Any part left undivided loses streams.
    assert_eq!(streams(&model(100, us(14), us(65), us(247))), 37);
    assert_eq!(streams(&model(100, us(140), us(65), hop)), 22);
    assert_eq!(streams(&model(100, us(140), us(650), us(247))), 15);
}

#[test]
fn a_kilobyte_is_1024_octets() {
    // 28 KB a frame are 69 % of 10 Mbit/s and 26 KB are 64 %, rounded; with 1,000 octets they are 67 and 62.
    let per_mille = |octets: u64| octets * 8 * 1_000 * 1_000_000_000 / (TRT.as_nanos() * 10_000_000);
    assert_eq!([28 * 1_024, 26 * 1_024, 28_000, 26_000].map(per_mille), [688, 638, 672, 624]);
}
