//! The recovery table in `specs/rether.md` holds what the code computes.

use rota_admission::{RecoveryModel, SegmentParams, Timers};
use rota_units::{BitRate, Octets, Span};

/// The six columns: rate in Mbit/s and live stations.
const COLUMNS: [(u64, u16); 6] = [(10, 5), (10, 20), (100, 5), (100, 20), (1_000, 5), (1_000, 20)];

struct Column {
    params: SegmentParams,
    lease: Span,
    timers: Timers,
}

fn column(mbit: u64, stations: u16) -> Column {
    let params = SegmentParams::new(BitRate::from_mbit(mbit), stations);
    let lease = (params.trt * 2).div_down(5);
    let buffer = Octets::new(if mbit >= 1_000 { 1_000_000 } else { 150_000 });
    Column { params, lease, timers: Timers::new(RecoveryModel::proven(&params, lease, buffer)) }
}

/// Milliseconds with three decimals, rounded up.
fn ms(span: Span) -> String {
    let us = span.as_nanos().div_ceil(1_000);
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

type Row = (&'static str, fn(&Column) -> Span);

const ROWS: [Row; 19] = [
    ("h", |c| c.params.link.hop),
    ("D = h + w_max", |c| c.params.link.hop + c.params.link.frame_span_max()),
    ("L", |c| c.lease),
    ("T_a = 2D + g", |c| c.timers.ack()),
    ("T_w, rank 0", |c| c.timers.silence(0)),
    ("W, m = 1", |c| c.timers.drain(1, false)),
    ("W, m = 1, the master", |c| c.timers.drain(1, true)),
    ("T_to", |c| c.timers.switch_timeout()),
    ("T_switch, all retries", |c| c.timers.switch_bound()),
    ("one token frame lost: T_a + h", |c| c.timers.after_token_loss()),
    ("successor crash before its ack", |c| c.timers.after_successor_crash(false)),
    ("the same, it was master", |c| c.timers.after_successor_crash(true)),
    ("holder crash after its ack", |c| c.timers.after_silent_crash(1, false)),
    ("the same, it was master (or the master at rest)", |c| c.timers.after_silent_crash(1, true)),
    ("holder and monitor crash, one was master", |c| c.timers.after_silent_crash(2, true)),
    ("two crashes, the second in the recovery from the first", |c| {
        c.timers.after_silent_crash(1, true) + c.timers.after_silent_crash(2, true)
    }),
    ("initiator crash in the switch", |c| c.timers.after_initiator_crash()),
    ("merge of two parts", |c| c.timers.after_merge(0)),
    ("lost switch back to plain Ethernet", |c| c.timers.after_lost_switch_back()),
];

#[test]
fn the_recovery_table_of_the_specification_is_what_the_code_computes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/rether.md");
    let spec = std::fs::read_to_string(path).expect("specs/rether.md is part of the repository");
    let columns: Vec<Column> = COLUMNS.iter().map(|&(mbit, n)| column(mbit, n)).collect();
    let rows: Vec<String> = ROWS
        .iter()
        .map(|(name, value)| {
            let cells: Vec<String> = columns.iter().map(|c| ms(value(c))).collect();
            format!("| {name} | {} |", cells.join(" | "))
        })
        .collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !spec.contains(row.as_str())).collect();
    assert!(missing.is_empty(), "specs/rether.md should hold these rows:\n{}", rows.join("\n"));
}
