//! Captures for Wireshark: pcapng with nanosecond stamps and a comment on every frame.
//!
//! Four kinds of blocks of one shape are all that is written, so that this is shorter than the use of a
//! library would be; `draft-ietf-opsawg-pcapng`, sections 3 and 4.

use super::entry::{Entry, Who};
use super::text;
use rota::{ChannelId, TRACE_SNAP_OCTETS, TraceEvent, TraceVerdict};
use rota_answer::{Failure, Output};
use std::path::Path;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const DESCRIPTION: u16 = 3;
const RESOLUTION: u16 = 9;
const FLAGS: u16 = 2;
const ETHERNET: u16 = 1;

/// Writes the events to a file; returns how many are frames. An event that is no frame stands in the comment
/// of the next one, or of the section where none follows.
pub fn save(path: &Path, entries: &[Entry], interfaces: &[String], station: &str) -> Result<usize, Failure> {
    let mut out = Output::open(path)?;
    out.put(&capture(entries, interfaces, station))?;
    out.finish()?;
    Ok(entries.iter().filter(|entry| entry.is_frame()).count())
}

/// The octets of the file.
pub fn capture(entries: &[Entry], interfaces: &[String], station: &str) -> Vec<u8> {
    // Noted in the order in which they were dealt with; a frame's stamp is of when it came.
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by_key(|entry| entry.record.at_ns);
    let last_frame = entries.iter().rposition(|entry| entry.is_frame()).map_or(0, |at| at + 1);
    let after: Vec<String> = entries[last_frame..].iter().map(|entry| text::line(entry)).collect();
    let mut file = section(&after);
    // In the order of the ports: a packet names its interface by its place.
    for interface in interfaces {
        file.extend(interface_block(interface, station));
    }
    let mut before = Vec::new();
    for entry in &entries[..last_frame] {
        if entry.is_frame() {
            before.push(comment(entry));
            file.extend(packet(entry, &before));
            before.clear();
        } else {
            before.push(format!("before this frame: {}", text::line(entry)));
        }
    }
    file
}

/// Channel, deadline and verdict of a frame.
pub fn comment(entry: &Entry) -> String {
    let record = &entry.record;
    let who = |who: &Option<Who>| who.as_ref().map_or_else(|| "?".into(), Who::called);
    let kind = entry.kind().unwrap_or("unknown");
    let (from, to) = (who(&entry.src), who(&entry.dst));
    let channel = match (record.channel, record.label) {
        (ChannelId::NONE, 0) => "no channel".to_owned(),
        (ChannelId::NONE, label) => format!("no channel of this station (label {label})"),
        (channel, _) => format!("channel {channel}, unit {}", record.number),
    };
    let deadline = text::deadline(entry).unwrap_or_else(|| "no deadline".into());
    let verdict = match (record.verdict, record.event) {
        (TraceVerdict::None, TraceEvent::Dropped) => "dropped",
        (TraceVerdict::None, _) => "nothing to object to",
        (verdict, _) => verdict.word(),
    };
    let event = record.event.word();
    format!("{event}: {kind} from {from} to {to}; {channel}; {deadline}; verdict: {verdict}")
}

fn section(comments: &[String]) -> Vec<u8> {
    let mut body = BYTE_ORDER.to_le_bytes().to_vec();
    // Version 1.0, and a length that is not told.
    body.extend([1, 0, 0, 0]);
    body.extend([0xff; 8]);
    option(&mut body, APPLICATION, concat!("rota ", env!("CARGO_PKG_VERSION")).as_bytes());
    for comment in comments {
        option(&mut body, COMMENT, format!("after the last frame: {comment}").as_bytes());
    }
    block(SECTION, body)
}

fn interface_block(interface: &str, station: &str) -> Vec<u8> {
    let mut body = ETHERNET.to_le_bytes().to_vec();
    body.extend([0, 0]);
    body.extend((TRACE_SNAP_OCTETS as u32).to_le_bytes());
    option(&mut body, NAME, interface.as_bytes());
    let description = format!("frames that the Rota node of {station} sent, received and dropped");
    option(&mut body, DESCRIPTION, description.as_bytes());
    option(&mut body, RESOLUTION, &[9]);
    block(INTERFACE, body)
}

fn packet(entry: &Entry, comments: &[String]) -> Vec<u8> {
    let at = entry.wall(entry.record.at_ns);
    let mut body = u32::from(entry.record.port.unwrap_or(0)).to_le_bytes().to_vec();
    body.extend(((at >> 32) as u32).to_le_bytes());
    body.extend((at as u32).to_le_bytes());
    let kept = entry.octets.len().min(usize::from(entry.record.length));
    body.extend((kept as u32).to_le_bytes());
    body.extend(u32::from(entry.record.length).to_le_bytes());
    body.extend(&entry.octets[..kept]);
    body.resize(body.len().next_multiple_of(4), 0);
    for comment in comments {
        option(&mut body, COMMENT, comment.as_bytes());
    }
    let inbound = entry.record.event == TraceEvent::Received;
    option(&mut body, FLAGS, &(if inbound { 1u32 } else { 2 }).to_le_bytes());
    block(PACKET, body)
}

fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Ends the options, and puts type and length around.
fn block(kind: u32, mut body: Vec<u8>) -> Vec<u8> {
    body.extend([0; 4]);
    let length = (body.len() as u32 + 12).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, &body, &length].concat()
}
