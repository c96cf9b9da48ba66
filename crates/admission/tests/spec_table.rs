//! The recovery table in `specs/rether.md` holds what the code computes.

use rota_admission::{RecoveryModel, SegmentParams, Timers};
use rota_units::{BitRate, Octets, Span};

/// The six columns: rate in Mbit/s and live stations.
const COLUMNS: [(u64, u16); 6] = [(10, 5), (10, 20), (100, 5), (100, 20), (1_000, 5), (1_000, 20)];

struct Column {
    params: SegmentParams,
    lease: Span,
    timers: Timers,
    /// N − 1.
    others: u16,
}

fn column(mbit: u64, stations: u16) -> Column {
    let params = SegmentParams::new(BitRate::from_mbit(mbit), stations);
    let lease = (params.trt * 2).div_down(5);
    let buffer = Octets::new(if mbit >= 1_000 { 1_000_000 } else { 150_000 });
    let timers = Timers::new(RecoveryModel::proven(&params, lease, buffer));
    Column { params, lease, timers, others: stations - 1 }
}

/// The same with the product's own timers.
fn product(mbit: u64, stations: u16) -> Column {
    let buffer = Octets::new(if mbit >= 1_000 { 1_000_000 } else { 150_000 });
    let (params, lease) = (column(mbit, stations).params, RecoveryModel::LEASE_LAB);
    Column { params, lease, timers: Timers::new(RecoveryModel::lab(&params, buffer)), others: stations - 1 }
}

/// Milliseconds with three decimals, rounded up.
fn ms(span: Span) -> String {
    let us = span.as_nanos().div_ceil(1_000);
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

type Row = (&'static str, fn(&Column) -> Span);

const ROWS: [Row; 25] = [
    ("h", |c| c.params.link.hop),
    ("D = h + w_max", |c| c.params.link.one_way()),
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
    ("R(0): any fault that silences nobody", |c| c.timers.after_silent_crash(0, true)),
    ("R(N − 1): one that silences all others", |c| c.timers.after_silent_crash(c.others, true)),
    ("two faults that silence nobody", |c| c.timers.after_two(0, 0)),
    ("two faults that silence one station", |c| c.timers.after_two(1, 0).max(c.timers.after_two(0, 1))),
    ("two faults that silence one station each", |c| c.timers.after_two(1, 1)),
    ("two faults that silence all others", |c| c.timers.after_two(c.others, 0)),
    ("initiator crash in the switch", |c| c.timers.after_initiator_crash()),
    ("two rings that meet are one", |c| c.timers.after_merge()),
    ("two rings of strangers are one", |c| c.timers.after_merge_of_strangers()),
    ("lost switch back to plain Ethernet", |c| c.timers.after_lost_switch_back()),
];

/// The rows of the second table, of the product's own timers.
const PRODUCT: [&str; 16] = [
    "L",
    "T_a = 2D + g",
    "T_w, rank 0",
    "W, m = 1, the master",
    "one token frame lost: T_a + h",
    "successor crash before its ack",
    "the same, it was master",
    "holder crash after its ack",
    "the same, it was master (or the master at rest)",
    "R(0): any fault that silences nobody",
    "R(N − 1): one that silences all others",
    "two faults that silence nobody",
    "two faults that silence one station each",
    "two faults that silence all others",
    "two rings that meet are one",
    "two rings of strangers are one",
];

fn line(row: &Row, columns: &[Column]) -> String {
    let cells: Vec<String> = columns.iter().map(|c| ms((row.1)(c))).collect();
    format!("| {} | {} |", row.0, cells.join(" | "))
}

#[test]
fn the_recovery_tables_of_the_specification_are_what_the_code_computes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../specs/rether.md");
    let spec = std::fs::read_to_string(path).expect("specs/rether.md is part of the repository");
    let proven: Vec<Column> = COLUMNS.iter().map(|&(mbit, n)| column(mbit, n)).collect();
    let lab: Vec<Column> = COLUMNS.iter().map(|&(mbit, n)| product(mbit, n)).collect();
    let (first, second) = spec.split_once("### The product's own timers").expect("two tables");
    let mut missing: Vec<String> = ROWS.iter().map(|row| line(row, &proven)).collect();
    missing.retain(|row| !first.contains(row.as_str()));
    let rows = ROWS.iter().filter(|row| PRODUCT.contains(&row.0));
    let lab: Vec<String> = rows.map(|row| line(row, &lab)).collect();
    assert_eq!(lab.len(), PRODUCT.len(), "every row of the second table is one of the first");
    missing.extend(lab.into_iter().filter(|row| !second.contains(row.as_str())));
    assert!(missing.is_empty(), "specs/rether.md should hold these rows:\n{}", missing.join("\n"));
}
